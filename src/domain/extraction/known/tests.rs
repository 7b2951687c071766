use proptest::prelude::*;

use super::super::{Extractor, entities_of, entities_with};
use super::*;
use crate::domain::staging::{AMBIGUOUS, Extraction};

fn thing(kind: EntityKind, name: &str, aliases: &[&str]) -> Arc<KnownThing> {
    Arc::new(KnownThing {
        kind,
        name: name.to_owned(),
        value: name.to_owned(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        external_ids: Vec::new(),
    })
}

/// What a memory answers that knows these things.
fn known_in(text: &str, things: &[Arc<KnownThing>]) -> KnownNames {
    let mut known = KnownNames::default();
    each_phrase_of(
        text,
        |_| true,
        |phrase| {
            let key = canonical_name(phrase);
            for thing in things {
                if thing.names().any(|name| canonical_name(name) == key) {
                    known.add(phrase, thing);
                }
            }
        },
    );
    known
}

fn read(text: &str, things: &[Arc<KnownThing>]) -> Extraction {
    entities_with(text, &known_in(text, things))
}

fn names(text: &str, things: &[Arc<KnownThing>]) -> Vec<String> {
    let found = read(text, things).entities;
    found.into_iter().map(|entity| entity.name).collect()
}

fn memory() -> Vec<Arc<KnownThing>> {
    let technique = KnownThing {
        value: "T9917".into(),
        external_ids: vec!["T9917".into()],
        ..KnownThing::clone(&thing(EntityKind::AttckTechnique, "Sap Drain", &[]))
    };
    vec![
        thing(EntityKind::Malware, "Carbvane", &["Vanecarb", "CV-7b"]),
        thing(
            EntityKind::Actor,
            "Quillmoor Spider",
            &["UNQ-77", "Лазурный Паук"],
        ),
        thing(EntityKind::Actor, "Lathe Group", &["海潮莲花", "الجراد الأزرق"]),
        thing(EntityKind::AttckCampaign, "Operation Tinbark", &[]),
        thing(EntityKind::Tool, "Ropewalk", &["カーブベイン", "카브베인"]),
        thing(EntityKind::Vulnerability, "Brackenbleed", &[]),
        thing(EntityKind::Malware, "Kettle", &[]),
        thing(EntityKind::Malware, "Gatehouse", &["Gate-7b"]),
        thing(EntityKind::Malware, "Main Module", &[]),
        Arc::new(technique),
    ]
}

#[test]
fn known_names_are_found_as_texts_write_them() {
    for (text, want) in [
        ("Carbvane was seen on two hosts.", "Carbvane"),
        ("We found Vanecarb in memory.", "Carbvane"),
        ("the sample is carbvane, we think", "Carbvane"),
        ("CARBVANE again", "Carbvane"),
        ("Two Carbvanes were stopped.", "Carbvane"),
        ("The cv7b loader", "Carbvane"),
        ("a host with gate-7b on it", "Gatehouse"),
        ("(Carbvane/CV-7b)", "Carbvane"),
        ("Carbvane-infected hosts", "Carbvane"),
        ("They blame Quillmoor\nSpider for it.", "Quillmoor Spider"),
        ("QUILLMOOR SPIDER again.", "Quillmoor Spider"),
        ("quillmoor spider again", "Quillmoor Spider"),
        ("Traffic matches UNQ 77 activity.", "Quillmoor Spider"),
        ("Traffic matches unq77 activity.", "Quillmoor Spider"),
        ("Группа Лазурный Паук атаковала завод.", "Quillmoor Spider"),
        ("Lathe Group's tools", "Lathe Group"),
        ("LATHE GROUP’S tools", "Lathe Group"),
        ("据报道海潮莲花组织发动了攻击。", "Lathe Group"),
        ("قال الباحثون إن الجراد الأزرق هاجم المصنع", "Lathe Group"),
        ("Das war Teil der Operation Tinbark.", "Operation Tinbark"),
        ("攻撃者はカーブベインを使用した。", "Ropewalk"),
        ("攻撃者はRopewalkを使用した。", "Ropewalk"),
        ("공격자는 카브베인을 사용했다.", "Ropewalk"),
        ("공격자는 Ropewalk를 사용했다.", "Ropewalk"),
        ("The exploit for Brackenbleed was used.", "Brackenbleed"),
        ("They used Sap Drain.", "Sap Drain"),
        ("the Kettle ransomware", "Kettle"),
        ("They deployed malware called Kettle.", "Kettle"),
    ] {
        let found = names(text, &memory());
        assert_eq!(found, [want], "{text}");
    }
}

#[test]
fn ordinary_words_and_parts_of_other_words_are_no_names() {
    for text in [
        "Kettle prices rose last week.",
        "They bought a Kettle at the shop.",
        "put the kettle on",
        "the sap drain is clogged",
        "The Main Module starts first.",
        "main module",
        "Carbvanessa called.",
        "xCarbvane",
        "カーブベインズ社",
        "[a link](https://x.example/Carbvane)",
        "Nothing of note happened.",
    ] {
        let found = read(text, &memory()).entities;
        assert!(
            found
                .iter()
                .all(|entity| entity.kind.is_some_and(|kind| !kind.is_name())),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn an_ordinary_word_counts_where_the_text_names_it_elsewhere() {
    let text = "The Kettle ransomware encrypts files. Later, on Monday, Kettle was sold.";
    let found = read(text, &memory()).entities;
    assert_eq!(found.len(), 1);
    assert!(
        found[0].reasoning.contains("2 mentions"),
        "{}",
        found[0].reasoning
    );
}

#[test]
fn an_entity_carries_what_the_memory_knows_of_it() {
    let found = read("We found Vanecarb in memory.", &memory()).entities;
    assert_eq!(
        (found[0].name.as_str(), found[0].kind),
        ("Carbvane", Some(EntityKind::Malware))
    );
    assert_eq!(
        found[0].properties["aliases"],
        serde_json::json!(["Vanecarb", "CV-7b"])
    );
    let found = read("Technique T9917 was used (Sap Drain).", &memory()).entities;
    assert_eq!(found.len(), 1, "id and name are one technique");
    assert_eq!(found[0].name, "T9917");
    assert_eq!(found[0].properties["external_ids"], serde_json::json!(["T9917"]));
}

#[test]
fn what_a_text_names_by_its_id_has_the_id_as_its_name() {
    let known = |kind, name: &str, value: &str, ids: &[&str]| {
        Arc::new(KnownThing {
            value: value.into(),
            external_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..KnownThing::clone(&thing(kind, name, &[]))
        })
    };
    let technique = EntityKind::AttckTechnique;
    for (thing, text, name) in [
        (
            known(technique, "Sap Drain", "Sap Drain", &["CAPEC-163", "T9917"]),
            "Technique T9917 was used (Sap Drain).",
            "T9917",
        ),
        (
            known(technique, "Sap Drain", "Sap Drain", &["T9917.001"]),
            "T9917.001 was used (Sap Drain).",
            "T9917.001",
        ),
        (
            known(technique, "Sap Drain", "Sap Drain", &["T9917"]),
            "Sap Drain (T9917) was used.",
            "Sap Drain",
        ),
        (
            known(technique, "Sap Drain", "Sap Drain", &["XQ-77"]),
            "XQ-77 was used.",
            "Sap Drain",
        ),
        (
            known(
                EntityKind::Cve,
                "Brackenbleed",
                "CVE-2024-99123",
                &["CVE-2024-99123"],
            ),
            "They used CVE-2024-99123 (Brackenbleed).",
            "CVE-2024-99123",
        ),
    ] {
        assert_eq!(names(text, std::slice::from_ref(&thing)), [name], "{text}");
    }
}

#[test]
fn a_name_of_several_things_is_in_dispute() {
    let things = [
        thing(EntityKind::Malware, "ChargenVole", &["ChronosVole"]),
        thing(EntityKind::Malware, "RushVole", &["ChronosVole"]),
    ];
    assert_eq!(names("We saw CHRONOSVOLE on a server.", &things), ["ChronosVole"]);
    let things = [
        thing(EntityKind::Actor, "Carbvane", &[]),
        thing(EntityKind::Malware, "Carbvane", &[]),
    ];
    let types = |text: &str| -> Vec<NodeType> {
        read(text, &things)
            .entities
            .iter()
            .map(|entity| entity.node_type)
            .collect()
    };
    assert_eq!(types("The group Carbvane came."), [NodeType::Actor]);
    assert_eq!(types("the Carbvane backdoor"), [NodeType::Tool]);
    let unclear = read("Carbvane again.", &things).entities;
    assert_eq!(unclear.len(), 2);
    for entity in unclear {
        assert!(
            entity.needs_reviewer() && entity.warnings[0].starts_with(AMBIGUOUS),
            "{entity:?}"
        );
    }
}

#[test]
fn a_further_name_that_a_text_gives_is_an_alias_of_what_is_known() {
    for text in [
        "Carbvane, also known as Torvold, was active in May.",
        "Researchers saw a backdoor dubbed Marrowgate, also known as Torvold, at the refinery.",
    ] {
        let found = read(text, &memory()).entities;
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        let aliases = found[0].properties["aliases"].as_array().unwrap();
        assert!(aliases.contains(&"Torvold".into()), "{text}");
    }
}

#[test]
fn phrases_are_bounded_by_the_length_of_the_text() {
    for unit in ["Ab ", "海", "ab-Cd.", "카 ", "A1/", "의", "Б ", "1 ", "ا "] {
        let count = |times: usize| {
            let mut phrases = 0;
            each_phrase_of(&unit.repeat(times), |_| true, |_| phrases += 1);
            phrases
        };
        let (short, long) = (count(1_000), count(4_000));
        assert!(
            long <= 4 * short + 100 && long <= 30 * 4_000,
            "{unit}: {short}, {long}"
        );
    }
}

fn any_name() -> impl Strategy<Value = String> {
    let word = "[A-Z][bcdfgkmptvz][aeiou][bdgkmptvz][aeiou][kmnrst]{1,2}";
    prop_oneof![
        word.prop_map(|word| word),
        (word, word).prop_map(|(one, other)| format!("{one} {other}")),
        (word, 1..9999_u32).prop_map(|(word, number)| format!("{word}-{number}")),
        (word, word, word).prop_map(|(one, two, three)| format!("{one} of {two}-{three}")),
        "[А-Я][бвгджзклмн][аеиоу][бвгджзклмн][аеиоу]{1,3}",
        "[가-깋]{4,6}",
        "[一-三十-千山-川]{3,6}",
    ]
}

proptest! {
    #[test]
    fn any_known_name_is_found_in_any_sentence(
        name in any_name(),
        kind in prop::sample::select(vec![
            EntityKind::Actor, EntityKind::Tool, EntityKind::Malware, EntityKind::AttckCampaign,
            EntityKind::Vulnerability, EntityKind::AttckTechnique,
        ]),
        sentence in prop::sample::select(vec![
            "It was seen on hosts, %.", "We think that % was behind this.", "(%)", "% again", "«%», dit-on",
            "Сообщают, что это % и всё.", "报告称：“%”。", "Es war % gewesen.",
        ]),
        as_alias in any::<bool>(),
    ) {
        let text = sentence.replace('%', &name);
        let known = if as_alias { thing(kind, "Other Thing", &[&name]) } else { thing(kind, &name, &[]) };
        prop_assume!(entities_of(&text).entities.is_empty());
        let found = read(&text, std::slice::from_ref(&known)).entities;
        prop_assert_eq!(found.len(), 1, "{}", text);
        prop_assert_eq!((&found[0].name, found[0].kind), (&known.name, Some(kind)));
        let span = found[0].span.unwrap();
        prop_assert_eq!(&text[span.0..span.1], name);
    }

    #[test]
    fn hits_never_overlap_and_what_is_not_named_changes_nothing(text in "[ A-Zа-я海潮a-z0-9.'\\-]{0,60}(Carbvane|Lathe Group)?[ -~]{0,40}") {
        let hits = Extractor::shared().extract_with(&text, &known_in(&text, &memory()));
        for pair in hits.windows(2) {
            prop_assert!(pair[0].span.end <= pair[1].span.start);
        }
        let unnamed = [thing(EntityKind::Actor, "Zzyxquorn Vexhollow", &[])];
        prop_assert_eq!(read(&text, &unnamed), entities_of(&text));
    }
}
