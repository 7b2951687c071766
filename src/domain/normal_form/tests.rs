mod spellings;

use proptest::prelude::*;

use super::*;
use crate::domain::draft::identity;
use crate::domain::extraction::{Extractor, entities_of};
use crate::domain::misp::value_of_attribute;
use crate::domain::naming::{canonical_value, indicator_identity, indicator_of};
use crate::domain::node::NodeType;
use spellings::{ALONE, SPELLINGS};

fn rows(
    table: &'static [(EntityKind, &'static str, &'static [&'static str])],
) -> impl Iterator<Item = (EntityKind, &'static str, String)> {
    table.iter().flat_map(|(kind, normal, spellings)| {
        spellings
            .iter()
            .map(|spelling| (*kind, *normal, spelling.replace("{}", normal)))
    })
}

/// The MISP type of a kind.
fn misp_type(kind: EntityKind) -> Option<&'static str> {
    Some(match kind {
        EntityKind::Cve => "vulnerability",
        EntityKind::Ipv4 | EntityKind::Ipv6 | EntityKind::Cidr => "ip-dst",
        EntityKind::Domain => "domain",
        EntityKind::Url => "url",
        EntityKind::Email => "email-src",
        EntityKind::Md5 => "md5",
        EntityKind::Sha1 => "sha1",
        EntityKind::Sha256 => "sha256",
        EntityKind::Sha512 => "sha512",
        EntityKind::FileName | EntityKind::FilePath => "filename",
        EntityKind::RegistryKey => "regkey",
        EntityKind::Asn => "AS",
        EntityKind::Bitcoin => "btc",
        EntityKind::Cwe
        | EntityKind::Capec
        | EntityKind::AttckTechnique
        | EntityKind::AttckTactic
        | EntityKind::AttckGroup
        | EntityKind::AttckSoftware
        | EntityKind::AttckMitigation
        | EntityKind::AttckCampaign
        | EntityKind::YaraRule
        | EntityKind::SigmaRule
        | EntityKind::Vulnerability
        | EntityKind::Actor
        | EntityKind::Tool
        | EntityKind::Malware => return None,
    })
}

#[test]
fn every_spelling_has_the_normal_form_of_its_kind_in_every_way_in() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (kind, normal, spelling) in rows(SPELLINGS).chain(rows(ALONE)) {
        count += 1;
        let mut same = |way: &str, found: &str| {
            if found != normal {
                wrong.push(format!("{way} {kind} {spelling:?}: {found}"));
            }
        };
        same("form", &normal_form(kind, &spelling));
        same("canonical", &canonical_value(kind, &format!(" \"{spelling}\" ")));
        if let Some(misp_type) = misp_type(kind) {
            same("misp", &value_of_attribute(misp_type, &spelling).1);
        }
        if kind.node_type() == NodeType::Ioc {
            let stated = indicator_identity(kind.as_str(), &spelling);
            let folded = if kind.row().case == Case::AsWritten {
                normal.to_lowercase()
            } else {
                normal.to_owned()
            };
            assert_eq!(stated, identity(["ioc", kind.as_str(), &folded]), "{spelling:?}");
        }
    }
    for (kind, normal, spelling) in rows(SPELLINGS) {
        let mut same = |way: &str, found: String| {
            if found != format!("{kind} {normal}") {
                wrong.push(format!("{way} {kind} {spelling:?}: {found}"));
            }
        };
        let text = format!("We saw {spelling} today.");
        let hits = Extractor::shared().extract(&text);
        let found: Vec<String> = hits
            .iter()
            .map(|hit| format!("{} {}", hit.kind, hit.value))
            .collect();
        same("text", found.join(", "));
        let entities = entities_of(&text).entities;
        if kind.node_type() == NodeType::Ioc {
            let values: Vec<&str> = entities
                .iter()
                .filter_map(|one| one.properties["value"].as_str())
                .collect();
            same("entity", format!("{kind} {}", values.join(", ")));
            let alone = indicator_of(&spelling);
            same("alone", format!("{} {}", alone.kind_name(), alone.value));
        }
    }
    assert!(count >= 200, "{count} spellings");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_normal_form_of_a_normal_form_is_itself() {
    for (kind, normal, spelling) in rows(SPELLINGS).chain(rows(ALONE)) {
        assert_eq!(normal_form(kind, normal), normal, "{kind}");
        for other in EntityKind::ALL {
            let once = normal_form(*other, &spelling);
            assert_eq!(normal_form(*other, &once), once, "{other} {spelling:?}");
        }
    }
}

#[test]
fn an_internationalised_host_is_one_entity_that_is_shown_as_spelled_first() {
    for (text, name) in [
        ("Seen: bücher.de and xn--bcher-kva.de today.", "bücher.de"),
        ("Seen: xn--bcher-kva.de and bücher.de today.", "xn--bcher-kva.de"),
    ] {
        let entities = entities_of(text).entities;
        assert_eq!(entities.len(), 1, "{entities:?}");
        assert_eq!(entities[0].name, name);
        assert_eq!(entities[0].properties["value"], "xn--bcher-kva.de");
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "evil",
        "Evil",
        "com",
        ".",
        "[.]",
        "(dot)",
        "\\.",
        "/",
        "\\/",
        "\\",
        "\\\\",
        ":",
        "://",
        "hxxp",
        "http",
        "@",
        "[at]",
        "198",
        "51",
        "2001",
        "db8",
        "::",
        "[",
        "]",
        "%",
        "ü",
        "пример",
        "рф",
        "例",
        "xn--",
        "bcher-kva",
        "CVE",
        "-",
        "_",
        " ",
        "2014",
        "1001",
        "AS",
        "N",
        "HKLM",
        "HKCU:",
        "Software",
        "<",
        ">",
        "REGISTRY",
        "MACHINE",
        "T1059",
        "001",
        "attack.",
        "&amp;",
        "amp;",
        "&lt;",
        "\n",
        "0x",
        "deadbeef",
        "?",
        "#",
        "İ",
        "ß",
        "。",
        "．",
        "DOT",
        "AT",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_normal_form_is_stable_for_values_of_any_pieces(value in pieces()) {
        for kind in EntityKind::ALL {
            let once = normal_form(*kind, &value);
            prop_assert_eq!(normal_form(*kind, &once), once.clone(), "{} {:?}", kind, value);
        }
    }
}
