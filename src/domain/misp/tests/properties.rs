//! Arbitrary input never causes a panic or a weaker marking than stated.

use proptest::prelude::*;
use test_support::extent;

use super::*;
use crate::domain::draft::PassageDraft;

const KEYS: [&str; 24] = [
    "uuid",
    "Attribute",
    "Object",
    "Event",
    "response",
    "Tag",
    "name",
    "distribution",
    "type",
    "value",
    "deleted",
    "Galaxy",
    "GalaxyCluster",
    "meta",
    "synonyms",
    "ObjectReference",
    "referenced_uuid",
    "relationship_type",
    "Sighting",
    "info",
    "comment",
    "to_ids",
    "Orgc",
    "first_seen",
];

const TEXTS: [&str; 20] = [
    "0",
    "5",
    "tlp:red",
    "tlp:x",
    "filename|sha256",
    "a|b",
    "|",
    "ip-dst|port",
    "1.2.3.4|80",
    "yara",
    "rule x {",
    "",
    "\0",
    "vulnerability",
    "CVE-2017-0144",
    "threat-actor",
    "misp-galaxy:tool=\"x\"",
    "C:\\x\\",
    "domain",
    "…",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..7i64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        proptest::sample::select(&TEXTS[..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let key = proptest::sample::select(&KEYS[..]).prop_map(str::to_owned);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..8).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// A distribution in the forms that senders use.
fn distribution() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (0..7i64).prop_map(Value::from),
        (0..7i64).prop_map(|level| level.to_string().into()),
    ]
}

fn tags() -> impl Strategy<Value = Value> {
    let names = [
        "tlp:white",
        "tlp:green",
        "TLP:AMBER",
        "tlp:amber+strict",
        "tlp:red",
        "tlp:unclear",
        "other",
    ];
    let tag = proptest::sample::select(names.to_vec()).prop_map(|name| json!({"name": name}));
    proptest::collection::vec(tag, 0..3).prop_map(Value::from)
}

fn carrier() -> impl Strategy<Value = Value> {
    (distribution(), tags())
        .prop_map(|(distribution, tags)| json!({"distribution": distribution, "Tag": tags}))
}

fn tag_floor(carrier: &Value) -> Tlp {
    let levels = carrier["Tag"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tag| match tag["name"].as_str() {
            Some("tlp:green") => Tlp::Green,
            Some("TLP:AMBER") => Tlp::Amber,
            Some("tlp:amber+strict") => Tlp::AmberPk,
            Some("tlp:red" | "tlp:unclear") => Tlp::Red,
            _ => Tlp::White,
        });
    levels.max().unwrap_or(Tlp::White)
}

fn floor(chain: &[&Value], default: Tlp) -> Tlp {
    let level = |carrier: &&Value| match carrier["distribution"].to_string().trim_matches('"') {
        "5" | "null" => None,
        "0" => Some(Tlp::Red),
        "1" => Some(Tlp::Amber),
        _ => Some(default),
    };
    let stated = chain.iter().filter_map(level).max().unwrap_or(default);
    chain
        .iter()
        .map(|carrier| tag_floor(carrier))
        .fold(stated, Tlp::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(300, 1000)))]

    #[test]
    fn any_json_is_planned_or_refused(given in json_value(), with_uuid: bool) {
        if let Ok(mut event) = unwrap_event(given) {
            if with_uuid {
                event.insert("uuid".to_owned(), UUID.into());
                event.entry("Attribute").or_insert_with(|| json!([]));
            }
            if let Ok(plan) = plan(&event, DEFAULTS) {
                let nodes = plan.drafts.nodes.len();
                for node in &plan.drafts.nodes {
                    prop_assert!(!node.name.is_empty() && !node.identity.is_empty());
                    prop_assert!((0.0..=1.0).contains(&node.confidence));
                }
                for edge in &plan.drafts.edges {
                    prop_assert!(edge.source < nodes && edge.target < nodes && edge.source != edge.target);
                }
                let shown = json!(plan.drafts.nodes.iter().map(|node| node.properties.map()).collect::<Vec<_>>());
                prop_assert!(!shown.to_string().contains("\\u0000"));
            }
        }
    }

    #[test]
    fn any_attribute_list_is_planned(attributes in proptest::collection::vec(json_value(), 0..6), kind in 0..TEXTS.len(), value: String) {
        let mut attributes = attributes;
        attributes.push(json!({"type": TEXTS[kind], "value": value}));
        let plan = planned(json!({"Attribute": attributes.clone(), "Object": [{"uuid": "o", "Attribute": attributes}]}));
        for node in &plan.drafts.nodes {
            prop_assert!(!node.name.trim().is_empty(), "{:?}", node);
        }
    }

    #[test]
    fn no_marking_is_weaker_than_stated(
        event in carrier(), object in carrier(), inside in proptest::collection::vec(carrier(), 0..4),
        loose in proptest::collection::vec(carrier(), 0..4), default in 0..5usize,
    ) {
        let default = Tlp::ALL[default];
        let attributes = |list: &[Value], name: &str| -> Vec<Value> {
            let each = list.iter().enumerate();
            each.map(|(at, carrier)| {
                let mut attribute = carrier.clone();
                attribute["type"] = "text".into();
                attribute["value"] = format!("{name}{at}").into();
                attribute
            }).collect()
        };
        let mut whole = event.clone();
        let mut holder = object.clone();
        holder["Attribute"] = attributes(&inside, "inside").into();
        whole["uuid"] = UUID.into();
        whole["Attribute"] = attributes(&loose, "loose").into();
        whole["Object"] = json!([holder]);
        let plan = plan(whole.as_object().unwrap(), ItemDefaults { tlp: default, confidence: 0.5 }).unwrap();
        prop_assert_eq!(plan.drafts.nodes.len(), inside.len() + loose.len());
        for (at, carrier) in inside.iter().enumerate() {
            let want = floor(&[carrier, &object, &event], default);
            prop_assert_eq!(named(&plan, &format!("inside{at}")).tlp, want);
        }
        for (at, carrier) in loose.iter().enumerate() {
            prop_assert_eq!(named(&plan, &format!("loose{at}")).tlp, floor(&[carrier, &event], default));
        }
        prop_assert_eq!(plan.drafts.evidence[0].tlp, floor(&[&event], default));
    }
}

#[test]
fn every_comment_is_searched_and_each_once() {
    let domain = |comment: &str, distribution: &str| {
        let value = "a.example";
        json!({"type": "domain", "value": value, "comment": comment, "distribution": distribution})
    };
    let many = (0..40).map(|n| domain(&format!("seen in the campaign number {n}"), "3"));
    let first = "resolved by the first\nstage of the dropper";
    let attributes = [
        domain(first, "3"),
        domain(first, "3"),
        domain("short one", "3"),
        domain("named in the ransom note", "0"),
    ];
    let attributes: Vec<Value> = attributes.into_iter().chain(many).collect();
    let file = |n: usize| json!({"type": "filename", "value": format!("{n}.exe"), "comment": ""});
    let files: Vec<Value> = (0..17).map(file).collect();
    let plan = planned(json!({"Attribute": attributes, "distribution": "3", "Object": [
        {"name": "file", "comment": "dropped by the loader of the group", "Attribute": files}]}));
    assert!(named(&plan, "a.example").description.starts_with(first));
    let passages = &plan.drafts.passages;
    let about = |name: &str| -> Vec<&PassageDraft> {
        let place = plan
            .drafts
            .nodes
            .iter()
            .position(|node| node.name == name)
            .unwrap();
        let said = passages.iter().filter(|passage| passage.about == [place; 2]);
        said.collect()
    };
    let said = about("a.example");
    assert_eq!(said.len(), 16);
    assert_eq!(said[0].text, "named in the ransom note");
    assert_eq!(said[1].text, "seen in the campaign number 0");
    assert!(said[0].tlp > said[1].tlp, "{said:?}");
    for (name, commented) in [("0.exe", true), ("15.exe", true), ("16.exe", false)] {
        let said: Vec<&str> = about(name).iter().map(|passage| passage.text.as_str()).collect();
        let expected = ["dropped by the loader of the group"];
        assert_eq!(said, expected.get(..usize::from(commented)).unwrap(), "{name}");
    }
}
