//! Findings of the rules keep their names after a language model has read the text too.

use std::collections::BTreeSet;

use super::{BACKING_OFF, IDLE, PROCESSING, mentions_of, status_of};
use crate::domain::extraction::{Gazetteer, entities_of, entity_of_name};
use crate::domain::memory::entity::{EntityDraft, mentions_in};
use crate::domain::node::NodeType;

/// The keys of all mentioned entities.
fn keys(entities: &[EntityDraft]) -> BTreeSet<String> {
    entities.iter().map(|entity| entity.key.to_string()).collect()
}

#[test]
fn a_model_that_finds_nothing_leaves_every_entity_and_relationship_as_the_rules_named_it() {
    let entries = Gazetteer::shared().entries().iter();
    let named = entries.map(|entry| format!("The {} malware, group and tool were seen.", entry.name));
    let kinds = [
        "TA0001 and T1566.001 against CVE-2024-3094 (CWE-79, CAPEC-66), mitigation M1036, group G0007, software S0367.",
        "Campaign C0024 of G9999 used S9999.",
        "10.1.2.3, 2001:db8::1, 10.0.0.0/8, evil.example.com, hxxp://evil[.]example[.]com/A, a@evil.example.com",
        "d41d8cd98f00b204e9800998ecf8427e, C:\\Windows\\evil.exe, evil.dll, HKLM\\Software\\Evil, AS64500",
        "Emotet uses Mimikatz. Sandworm uses Industroyer. APT28 uses X-Agent.",
    ];
    for text in named.chain(kinds.map(str::to_owned)) {
        let extraction = entities_of(&text);
        let is_dual_use = extraction
            .entities
            .iter()
            .any(|entity| entity.properties.contains_key("dual_use"));
        let (again, rules) = (mentions_of(extraction), mentions_in(&text));
        // Weak findings are left to the rules, as are programs that anybody may use.
        assert!(keys(&again.entities).is_subset(&keys(&rules.entities)), "{text}");
        assert!(!again.entities.is_empty() || is_dual_use, "{text}");
        for relation in &again.relations {
            let ends = |mentions: &super::Mentions, source: usize, target: usize| {
                [source, target].map(|at| mentions.entities[at].key.clone())
            };
            let here = ends(&again, relation.source, relation.target);
            let known = rules.relations.iter().any(|other| {
                other.relationship == relation.relationship
                    && ends(&rules, other.source, other.target) == here
            });
            assert!(known, "{text}: {relation:?}");
        }
    }
}

#[test]
fn a_name_that_a_model_gives_is_what_the_rules_would_take_it_for() {
    for (node_type, name, wanted) in [
        (NodeType::Tool, "emotet", Some("malware:emotet")),
        (NodeType::Tool, "S0367", Some("malware:emotet")),
        (NodeType::Tool, "BlueLoader", Some("tool:blueloader")),
        (NodeType::Actor, "Fancy Bear", Some("actor:apt28")),
        (NodeType::Attck, "TA0001", Some("tactic:ta0001")),
        (NodeType::Attck, "Phishing (T1566)", Some("attack_pattern:t1566")),
        (NodeType::Vulnerability, "CWE-79", Some("cwe:cwe-79")),
        (
            NodeType::Vulnerability,
            "Log4Shell",
            Some("vulnerability:log4shell"),
        ),
        (NodeType::Ioc, "10.1.2.3", Some("ipv4:10.1.2.3")),
        (NodeType::Ioc, "Global\\Mutex", None),
    ] {
        let draft = EntityDraft::of_extracted(&entity_of_name(node_type, name));
        assert_eq!(
            draft.map(|draft| draft.key.to_string()).as_deref(),
            wanted,
            "{name}"
        );
    }
}

#[test]
fn the_status_is_what_the_worker_does_whatever_waits() {
    for (on, depth, status, wanted) in [
        (true, 0, IDLE, "idle"),
        (true, 5, IDLE, "idle"),
        (true, 1, PROCESSING, "processing"),
        (true, 0, PROCESSING, "processing"),
        (true, 0, BACKING_OFF, "backing_off"),
        (true, 3, BACKING_OFF, "backing_off"),
        // Without a model, waiting notes stay queued.
        (false, 3, IDLE, "paused"),
        (false, 0, IDLE, "idle"),
    ] {
        assert_eq!(status_of(on, depth, status), wanted, "{on} {depth} {status}");
    }
}
