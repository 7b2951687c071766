//! Names, aliases and identifiers are found in every usual spelling, and rank first.

use super::super::{KeyKind, StructuredQuery};
use super::*;

fn library() -> Arc<WorkspaceIndex> {
    let mut docs = vec![
        doc(1, "APT28", "Military intelligence group that phishes ministries."),
        doc(2, "APT29", "Foreign intelligence group, patient and quiet."),
        doc(3, "PowerShell", "Attackers run PowerShell commands and scripts."),
        doc(
            4,
            "Command and Scripting Interpreter",
            "Attackers run commands, scripts or binaries.",
        ),
        doc(
            5,
            "XZ Utils backdoor",
            "Malicious code in the liblzma library, CVE-2024-3094.",
        ),
        doc(6, "FIN7", "Financially motivated, attacks point of sale systems."),
        doc(
            7,
            "Beacon host",
            "Seen at hxxp://mail.evil[.]example/gate.php and 203.0.113.7.",
        ),
        doc(8, "Loader", "A dropped loader."),
        doc(
            9,
            "Other vulnerability",
            "CVE-2024-3095 is something else; fixed in 2024.",
        ),
        doc(
            10,
            "Report on many groups",
            "APT28, APT29, FIN7, T1059 and PowerShell all appear in this report.",
        ),
    ];
    docs[0].aliases = vec!["Fancy Bear".into(), "Sofacy".into()];
    docs[0].identifiers = vec!["G0007".into()];
    docs[1].aliases = vec!["Cozy Bear".into(), "UNC2452".into()];
    docs[1].identifiers = vec!["G0016".into()];
    docs[2].identifiers = vec!["T1059.001".into()];
    docs[2].node_type = NodeType::Attck;
    docs[3].identifiers = vec!["T1059".into(), "TA0002".into()];
    docs[3].node_type = NodeType::Attck;
    docs[4].identifiers = vec!["CVE-2024-3094".into()];
    docs[6].identifiers = vec!["mail.evil[.]example".into(), "203.0.113.7".into()];
    docs[7].identifiers = vec!["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into()];
    docs[8].identifiers = vec!["CVE-2024-3095".into()];
    holding(docs)
}

#[test]
fn every_spelling_of_a_name_finds_its_node_first() {
    let index = library();
    for (query, want) in [
        ("APT28", 1),
        ("apt 28", 1),
        ("APT-28", 1),
        ("Fancy Bear", 1),
        ("fancybear", 1),
        ("FANCY-BEAR", 1),
        ("g0007", 1),
        ("UNC2452", 2),
        ("unc 2452", 2),
        ("what do we know about Cozy Bear", 2),
        ("T1059.001", 3),
        ("T1059", 4),
        ("TA0002", 4),
        ("CVE-2024-3094", 5),
        ("cve 2024 3094", 5),
        ("FIN 7", 6),
        ("203[.]0[.]113[.]7", 7),
        ("mail.evil.example", 7),
        ("hxxp://mail[.]evil[.]example/gate.php", 7),
        (
            "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08",
            8,
        ),
        ("9f86d081", 8),
    ] {
        for mode in [Mode::Blended, Mode::Keyword] {
            let hits = found(&index, query, mode, &all(), 5);
            assert_eq!(hits.first(), Some(&id(want)), "{query} {mode:?}");
        }
    }
}

#[test]
fn a_part_finds_the_whole() {
    let index = library();
    for (query, want) in [
        ("T1059", 3),
        ("evil.example", 7),
        ("gate.php", 7),
        ("APT", 2),
        ("bears", 1),
    ] {
        let hits = found(&index, query, Mode::Keyword, &all(), 10);
        assert!(hits.contains(&id(want)), "{query}: {hits:?}");
    }
}

#[test]
fn a_name_alone_scores_above_a_text_that_mentions_it() {
    let index = library();
    let vector = quantize(&word_vector("Fancy Bear"));
    let hits = index
        .search("Fancy Bear", Some(&vector), Mode::Blended, &all(), 10)
        .unwrap();
    assert!(hits[0].score >= 0.9 && hits[1].score < 0.9, "{hits:?}");
}

#[test]
fn look_up_says_how_the_key_is_carried() {
    let index = library();
    let hits = index
        .lookup(&["fancy bear", "apt29", "nothing", "t1059.001"], &all())
        .unwrap();
    let seen: Vec<(usize, Uuid, &str)> = hits
        .iter()
        .map(|hit| (hit.key, hit.node_id, hit.kind.as_str()))
        .collect();
    assert_eq!(seen, [(0, id(1), "alias"), (1, id(2), "name"), (3, id(3), "id")]);
    assert!(KeyKind::Identifier > KeyKind::Alias);
}

#[test]
fn look_up_is_exact() {
    let index = library();
    assert_eq!(
        index
            .lookup(&["CVE-2024-309", "T10590.01", "203.0.11.37", ""], &all())
            .unwrap(),
        []
    );
}

#[test]
fn structured_search_takes_types_and_keys_or_else_words() {
    let index = library();
    let ask = |node_types: &[NodeType], keys: &[&str], text: &str| -> Vec<Uuid> {
        let query = StructuredQuery {
            node_types: node_types.to_vec(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            text: text.to_owned(),
        };
        index
            .search_structured(&query, None, &all(), 10)
            .unwrap()
            .into_iter()
            .map(|hit| hit.node_id)
            .collect()
    };
    assert_eq!(ask(&[], &["Cozy Bear", "CVE-2024-3094"], ""), [id(5), id(2)]);
    assert_eq!(ask(&[NodeType::Attck], &["Cozy Bear", "T1059.001"], ""), [id(3)]);
    assert_eq!(ask(&[NodeType::Attck], &[], "run scripts").len(), 2);
    assert_eq!(ask(&[NodeType::Ioc], &[], "run scripts"), NONE);
    assert_eq!(ask(&[], &[], ""), NONE);
}

#[test]
fn a_name_in_passing_is_listed_but_does_not_lead() {
    let mut docs = vec![
        doc(
            1,
            "Mimikatz",
            "Mimikatz is a credential tool. Mimikatz is popular.",
        ),
        doc(
            2,
            "Credential dumping",
            "Reading credentials from the memory of the security process.",
        ),
    ];
    docs[0].node_type = NodeType::Tool;
    docs[1].node_type = NodeType::Attck;
    let fillers = (3..40).map(|n| doc(n, &format!("Filler {n}"), "Something about networks and files."));
    docs.extend(fillers);
    let text = "During the second week the intruders used Mimikatz for reading credentials out of memory of the \
                security process on several servers";
    let hits = found(&holding(docs), text, Mode::Blended, &all(), 5);
    assert_eq!(hits[0], id(2));
    assert!(hits.contains(&id(1)));
}

#[test]
fn odd_queries_are_answered() {
    let index = library();
    for query in [
        "",
        " ",
        "\u{0}",
        "the",
        "\"",
        "(((",
        "[[.]]",
        "a".repeat(10_000).as_str(),
        "AND OR NOT *:*",
        "💥",
        "日本語",
    ] {
        for mode in MODES {
            found(&index, query, mode, &all(), 3);
        }
    }
    let long: String = (0..2000).map(|n| format!("word{n} ")).collect();
    found(&index, &long, Mode::Blended, &all(), 3);
}

#[test]
fn a_stix_id_and_its_uuid_find_their_node() {
    let mut named = doc(1, "Quiet Heron", "a group");
    named.identifiers = vec!["intrusion-set--899ce53f-13a0-479b-a0e4-67d46e241542".into()];
    let mut other = doc(2, "Loud Heron", "another group");
    other.identifiers = vec!["intrusion-set--899ce53f-13a0-479b-a0e4-67d46e241543".into()];
    let index = holding(vec![named, other]);
    for query in [
        "intrusion-set--899ce53f-13a0-479b-a0e4-67d46e241542",
        "899ce53f-13a0-479b-a0e4-67d46e241542",
        "What is 899CE53F-13A0-479B-A0E4-67D46E241542?",
    ] {
        for mode in [Mode::Keyword, Mode::Blended] {
            assert_eq!(
                found(&index, query, mode, &all(), 5).first(),
                Some(&id(1)),
                "{query} {mode:?}"
            );
        }
    }
}

#[test]
fn hashes_in_texts_are_found_whole_and_told_apart() {
    let digits = |first: &str, length: usize| format!("{first}{}", "ab12".repeat(32))[..length].to_owned();
    let index = open(None).workspace(id(0)).unwrap();
    let lengths = [(1, 32), (2, 40), (3, 64), (4, 128)];
    let hash = |n: u128, length| digits(&format!("{n:016x}"), length);
    let docs =
        lengths.map(|(n, length)| doc(n, "File", &format!("[file:hashes.MD5 = '{}']", hash(n, length))));
    index.apply(docs.to_vec(), 1).unwrap();
    for (n, length) in lengths {
        for query in [hash(n, length), hash(n, length).to_uppercase()] {
            assert_eq!(
                found(&index, &query, Mode::Keyword, &all(), 5),
                [id(n)],
                "{query}"
            );
        }
    }
    assert!(found(&index, &hash(5, 64), Mode::Keyword, &all(), 5).is_empty());
    // Machine code is no hash.
    assert!(found(&index, &hash(1, 50), Mode::Keyword, &all(), 5).is_empty());
}

#[test]
fn a_stix_id_that_gives_a_node_its_id_need_not_be_in_its_document() {
    let stix_id = "malware--31B940D4-6F77-4A6A-9026-81C1046B8F47".to_lowercase();
    let node = |workspace: u128, rev, tlp| IndexDoc {
        node_id: id_secret().ids_of(id(workspace)).node(&stix_id),
        rev,
        tlp,
        ..doc(1, "Quiet loader", "Steals credentials.")
    };
    let upper = stix_id.to_uppercase();
    let queries = [stix_id.as_str(), upper.as_str(), &stix_id["malware--".len()..]];
    for fresh_docs in [0, 100] {
        let settings = IndexSettings {
            fresh_docs,
            ..IndexSettings::default()
        };
        let index = open_with(None, "word-hash", settings).workspace(id(0)).unwrap();
        index
            .apply(vec![node(0, 1, Tlp::Amber), node(7, 1, Tlp::White)], 1)
            .unwrap();
        let named = node(0, 1, Tlp::Amber).node_id;
        for query in queries {
            assert_eq!(found(&index, query, Mode::Blended, &all(), 1), [named], "{query}");
            let low = Filter::up_to(Tlp::Green);
            assert!(!found(&index, query, Mode::Blended, &low, 5).contains(&named));
            assert_eq!(
                index.lookup(&[query], &low).unwrap(),
                [],
                "above the marking: {query}"
            );
        }
        let hits = index.lookup(&[&stix_id], &all()).unwrap();
        assert_eq!(
            hits.iter().map(|hit| (hit.node_id, hit.kind)).collect::<Vec<_>>(),
            [(named, KeyKind::Identifier)]
        );
        index.apply(vec![IndexDoc::removal(named, 2)], 2).unwrap();
        assert_eq!(index.lookup(&[&stix_id], &all()).unwrap(), []);
    }
}
