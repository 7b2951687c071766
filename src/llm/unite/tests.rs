use test_support::extent;

use super::*;
use crate::domain::extraction::entities_of;
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::staging::NOT_FOUND;
use crate::llm::belief::{MAX_CONFIDENCE, MAX_INFERRED, MAX_INVENTED};

fn said(name: &str, node_type: NodeType, quote: &str) -> AnswerEntity {
    AnswerEntity {
        name: name.into(),
        node_type,
        description: format!("about {name}"),
        confidence: 1.0,
        quote: quote.into(),
        aliases: Vec::new(),
        reasoning: "it is named".into(),
    }
}

fn stated(source: &str, relationship: &str, target: &str, quote: &str) -> AnswerRelation {
    AnswerRelation {
        source: source.into(),
        target: target.into(),
        relationship: relationship.into(),
        quote: quote.into(),
    }
}

fn united(text: &str, entities: Vec<AnswerEntity>, relations: Vec<AnswerRelation>) -> Extraction {
    unite(text, entities_of(text), vec![ChunkAnswer { entities, relations }])
}

fn find<'e>(extraction: &'e Extraction, name: &str) -> &'e ExtractedEntity {
    let found = extraction.entities.iter().find(|entity| entity.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {extraction:?}"))
}

#[test]
fn the_model_adds_names_and_descriptions_and_the_rules_keep_their_values() {
    let text = "Fancy Bear and the new gang SilkMoth used 1.2.3[.]4 and BlueLoader.";
    let extraction = united(
        text,
        vec![
            said("Fancy Bear", NodeType::Tool, text),
            said("1.2.3.4", NodeType::Actor, text),
            said("SilkMoth", NodeType::Actor, "the new gang SilkMoth"),
            said("silkmoth", NodeType::Actor, "the new gang SilkMoth"),
        ],
        Vec::new(),
    );
    assert_eq!(extraction.entities.len(), 3);
    let actor = find(&extraction, "APT28");
    assert_eq!(actor.node_type, NodeType::Actor);
    assert_eq!(actor.description, "about Fancy Bear");
    assert!(actor.reasoning.contains("rule gazetteer-name") && actor.reasoning.contains("language model: "));
    let address = find(&extraction, "1.2.3.4");
    assert_eq!((address.node_type, address.confidence), (NodeType::Ioc, 0.97));
    let gang = find(&extraction, "SilkMoth");
    assert_eq!((gang.confidence, gang.merge_by_name), (MAX_CONFIDENCE, true));
    let (from, to) = gang.span.unwrap();
    assert_eq!(&text[from..to], "SilkMoth");
    assert!(gang.warnings.is_empty());
    assert_eq!(gang.identity, identity_of(NodeType::Actor, "Silk Moth").0);
}

#[test]
fn what_is_not_in_the_text_is_marked_and_hardly_believed() {
    let text = "The attackers sent phishing mails. Version 4.3.2.1 is affected.";
    let extraction = united(
        text,
        vec![
            said("APT29", NodeType::Actor, "APT29 sent phishing mails"),
            said("Phishing", NodeType::Attck, "sent phishing mails"),
            said(
                "Spearphishing Attachment",
                NodeType::Attck,
                "The attackers sent phishing mails.",
            ),
            said("CVE-2024-3094", NodeType::Cve, "Version 4.3.2.1 is affected."),
            said("evil.com", NodeType::Ioc, "The attackers sent phishing mails."),
            said("4.3.2.1", NodeType::Ioc, "Version 4.3.2.1 is affected."),
        ],
        Vec::new(),
    );
    for name in ["APT29", "CVE-2024-3094", "evil.com"] {
        let entity = find(&extraction, name);
        assert_eq!(
            (entity.confidence, entity.warnings.as_slice(), entity.span),
            (MAX_INVENTED, &[NOT_FOUND.to_owned()][..], None),
            "{name}"
        );
    }
    assert!(find(&extraction, "Phishing").warnings.is_empty());
    for name in ["Spearphishing Attachment", "4.3.2.1"] {
        let entity = find(&extraction, name);
        assert_eq!(
            (entity.confidence, entity.warnings.len()),
            (MAX_INFERRED, 1),
            "{name}: {entity:?}"
        );
    }
}

#[test]
fn a_relation_needs_its_sentence_with_both_names() {
    let text = "SilkMoth runs BlueLoader. Fancy Bear is older. SilkMoth hates Fancy Bear.";
    let entities = vec![
        said("SilkMoth", NodeType::Actor, "SilkMoth runs"),
        said("BlueLoader", NodeType::Tool, "runs BlueLoader"),
    ];
    let extraction = united(
        text,
        entities,
        vec![
            stated("SilkMoth", "uses", "BlueLoader", "SilkMoth runs BlueLoader."),
            stated("SilkMoth", "uses", "BlueLoader", "SilkMoth runs BlueLoader."),
            stated("silkmoth", "targets", "APT28", "SilkMoth  hates Fancy Bear."),
            stated("APT28", "uses", "BlueLoader", "APT28 uses BlueLoader."),
            stated("APT28", "drops", "BlueLoader", "SilkMoth runs BlueLoader."),
            stated("SilkMoth", "uses", "Nobody", "SilkMoth runs BlueLoader."),
            stated("SilkMoth", "uses", "SilkMoth", "SilkMoth runs BlueLoader."),
        ],
    );
    let name = |at: usize| extraction.entities[at].name.as_str();
    let found: Vec<_> = extraction
        .relations
        .iter()
        .map(|r| (name(r.source), r.relationship.as_str(), name(r.target)))
        .collect();
    assert_eq!(
        found,
        [
            ("SilkMoth", "uses", "BlueLoader"),
            ("SilkMoth", "targets", "APT28")
        ]
    );
    assert!(extraction.relations.iter().all(|r| r.confidence <= RELATION));
    assert_eq!(
        extraction.warnings,
        [
            "dropped of the language model's answer: 1 relations between entities that it did not list",
            "dropped of the language model's answer: 2 relations whose sentence does not stand in the text or lacks a name",
        ]
    );
}

#[test]
fn relations_of_the_rules_are_not_doubled() {
    let text = "APT28 uses X-Agent.";
    let extraction = united(
        text,
        Vec::new(),
        vec![stated("Fancy Bear", "uses", "X-Agent", text)],
    );
    assert_eq!(extraction.relations.len(), 1);
    assert_eq!(extraction.relations[0].confidence, 0.95);
}

#[test]
fn aliases_stand_in_the_text_and_are_nobody_elses() {
    let text = "SilkMoth (also Moth Team) was seen with Lazarus Group, 5.6.7[.]8 and BlueLoader.";
    let mut moth = said("SilkMoth", NodeType::Actor, "SilkMoth (also Moth Team)");
    moth.aliases = [
        "Moth Team",
        "moth team",
        "Lazarus Group",
        "Sandworm",
        "Nowhere",
        "5.6.7.8",
        "SilkMoth",
    ]
    .map(String::from)
    .to_vec();
    let extraction = united(text, vec![moth], Vec::new());
    assert_eq!(
        find(&extraction, "SilkMoth").properties["aliases"],
        serde_json::json!(["Moth Team"])
    );
    let lazarus = find(&extraction, "Lazarus Group");
    assert!(lazarus.description.is_empty());
}

#[test]
fn numbers_are_limited_whatever_is_answered() {
    let text = "nothing here";
    let many = |from: usize| ChunkAnswer {
        entities: (from..from + 400)
            .map(|at| said(&format!("thing {at}"), NodeType::Tool, ""))
            .collect(),
        relations: Vec::new(),
    };
    let extraction = unite(
        text,
        Extraction::default(),
        (0..20).map(|at| many(at * 400)).collect(),
    );
    assert_eq!(extraction.entities.len(), MAX_ENTITIES);
    assert_eq!(
        extraction.warnings,
        ["dropped of the language model's answer: 7500 entities above the limit"]
    );
}

#[test]
fn an_answer_made_to_be_slow_costs_little() {
    let text = "the the evil[.]com the group uses things ".repeat(extent(2_000, 10_000));
    let mut slow = said("the the missing", NodeType::Tool, &"the ".repeat(250));
    slow.aliases = (0..10).map(|at| format!("the alias {at}")).collect();
    let answer = ChunkAnswer {
        entities: vec![slow; 500],
        relations: vec![stated("a", "uses", "b", "c"); 1000],
    };
    let since = std::time::Instant::now();
    let extraction = unite(&text, Extraction::default(), vec![answer; extent(2, 50)]);
    assert_eq!(extraction.entities.len(), 1);
    assert!(since.elapsed().as_secs() < 60, "{:?}", since.elapsed());
    println!("{:?}", since.elapsed());
}
