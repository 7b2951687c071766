//! Arbitrary content always gives a valid object.

use proptest::prelude::*;
use test_support::extent;

use super::misp_events::stored;
use super::*;
use crate::domain::draft::ItemDefaults;
use crate::domain::misp;

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        "[ -~]{0,40}".prop_map(Value::from),
        "https?://[!-~]{0,30}".prop_map(Value::from),
        "(CVE|CWE|CAPEC|T|G|S|M|TA)-?[0-9]{1,5}([.-][0-9]{1,6})?".prop_map(Value::from),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2}))?"
            .prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    prop_oneof![
        leaf.clone(),
        proptest::collection::vec(leaf, 0..4).prop_map(Value::from)
    ]
}

const KEYS: [&str; 18] = [
    "tags",
    "aliases",
    "external_ids",
    "url",
    "references",
    "source_url",
    "first_seen",
    "last_seen",
    "published",
    "kill_chain",
    "value",
    "ioc_type",
    "kind",
    "pattern",
    "pattern_type",
    "galaxy_type",
    "to_ids",
    "misp_type",
];

const KINDS: [&str; 22] = [
    "ipv4",
    "ipv6",
    "cidr",
    "domain",
    "url",
    "email",
    "md5",
    "sha256",
    "file-name",
    "file-path",
    "registry-key",
    "asn",
    "mutex",
    "user-agent",
    "yara",
    "snort",
    "stix2-pattern",
    "email-subject",
    "mac-address",
    "port",
    "tlsh",
    "ssdeep",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(250, 2000)))]

    #[test]
    fn any_node_is_a_valid_object(
        kind in 0..7usize, name in any::<String>(), description in any::<String>(),
        properties in proptest::collection::hash_map(proptest::sample::select(&KEYS[..]), anything(), 0..12),
    ) {
        let properties: Map<String, Value> = properties.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        let mut node = node(NodeType::ALL[kind], &name, Value::Object(properties));
        node.description = description;
        made(&node);
    }

    #[test]
    fn any_value_of_any_kind_is_a_valid_object(
        kind in 0..KINDS.len(), value in prop_oneof![any::<String>(), "[ -~]{1,40}", "[a-f0-9:./\\\\'|-]{1,70}"],
    ) {
        made(&node(NodeType::Ioc, &value, json!({"ioc_type": KINDS[kind], "value": value})));
    }

    #[test]
    fn any_misp_attribute_goes_out_valid(
        kind in 0..KINDS.len(), value in prop_oneof![any::<String>(), "[ -~]{1,40}"], comment: String,
    ) {
        let event = json!({"uuid": "e", "Attribute": [{"type": KINDS[kind], "value": value, "comment": comment}]});
        let plan = misp::plan(event.as_object().unwrap(), ItemDefaults { tlp: Tlp::Amber, confidence: 0.6 }).unwrap();
        stored(plan).iter().for_each(|node| { made(node); });
    }
}
