//! Markings and confidences of nodes, edges and evidence.

use super::*;

/// Distribution and tags of event, object (`None`: not in an object) and attribute; the default is GREEN.
#[test]
fn the_most_restrictive_of_distribution_and_tags_wins() {
    let table = [
        (json!({"distribution": "3"}), None, json!({}), Tlp::Green),
        (json!({"distribution": "0"}), None, json!({}), Tlp::Red),
        (
            json!({"distribution": "0"}),
            None,
            json!({"distribution": "5"}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "1"}),
            None,
            json!({"distribution": 5}),
            Tlp::Amber,
        ),
        (
            json!({"distribution": 0}),
            None,
            json!({"distribution": null}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "3"}),
            None,
            json!({"distribution": "0"}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "3"}),
            None,
            json!({"distribution": 1.0}),
            Tlp::Amber,
        ),
        (json!({}), None, json!({"distribution": "4"}), Tlp::Green),
        (json!({}), None, json!({"distribution": "5"}), Tlp::Green),
        (
            json!({"distribution": "3"}),
            Some(json!({"distribution": "0"})),
            json!({"distribution": "5"}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "0"}),
            Some(json!({"distribution": "5"})),
            json!({"distribution": "5"}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "0"}),
            Some(json!({"distribution": "1"})),
            json!({}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "0"}),
            None,
            json!({"distribution": "3"}),
            Tlp::Red,
        ),
        (
            json!({"distribution": "1"}),
            Some(json!({"distribution": "2"})),
            json!({"distribution": "3"}),
            Tlp::Amber,
        ),
        (
            json!({"distribution": "3"}),
            Some(json!({"distribution": "1"})),
            json!({"distribution": "2"}),
            Tlp::Amber,
        ),
        (
            json!({"distribution": "3"}),
            Some(json!({"distribution": "2"})),
            json!({"distribution": "1"}),
            Tlp::Amber,
        ),
        (
            json!({"Tag": [{"name": "tlp:white"}]}),
            None,
            json!({"distribution": "1"}),
            Tlp::Amber,
        ),
        (
            json!({"Tag": [{"name": "TLP:RED"}]}),
            None,
            json!({"distribution": "3"}),
            Tlp::Red,
        ),
        (
            json!({"Tag": [{"name": "tlp:amber"}]}),
            None,
            json!({"Tag": [{"name": "tlp:green"}]}),
            Tlp::Amber,
        ),
        (json!({"Tag": {"name": "tlp:red"}}), None, json!({}), Tlp::Red),
        (json!({"Tag": "tlp:red"}), None, json!({}), Tlp::Red),
        (
            json!({"EventTag": [{"Tag": {"name": "tlp:red"}}]}),
            None,
            json!({}),
            Tlp::Red,
        ),
        (
            json!({}),
            None,
            json!({"AttributeTag": [{"Tag": {"name": "tlp:red"}}]}),
            Tlp::Red,
        ),
        (
            json!({}),
            None,
            json!({"Tag": [{"name": "tlp:amber+strict"}]}),
            Tlp::AmberPk,
        ),
        (
            json!({}),
            None,
            json!({"Tag": [{"name": "tlp:clear"}]}),
            Tlp::Green,
        ),
        (json!({}), None, json!({"Tag": [{"name": "tlp: red"}]}), Tlp::Red),
        (json!({}), None, json!({"Tag": [{"name": "TLP-RED"}]}), Tlp::Red),
        (
            json!({"Tag": [{"name": "tlp=\"amber\""}]}),
            None,
            json!({}),
            Tlp::Amber,
        ),
        (
            json!({}),
            None,
            json!({"Tag": [{"name": "tlp:amber-strict"}]}),
            Tlp::AmberPk,
        ),
        (
            json!({}),
            None,
            json!({"Tag": [{"name": "iep:traffic-light-protocol=\"RED\""}]}),
            Tlp::Red,
        ),
        (
            json!({}),
            None,
            json!({"Tag": [{"name": "tlp:unclear"}]}),
            Tlp::Red,
        ),
        (
            json!({}),
            None,
            json!({"Tag": [{"name": "tlp:green"}, {"name": "tlp:ex:chr"}]}),
            Tlp::Red,
        ),
        (
            json!({}),
            Some(json!({"Tag": [{"name": "tlp:amber"}]})),
            json!({}),
            Tlp::Amber,
        ),
    ];
    for (mut members, object, mut attribute, want) in table {
        let shown = format!("{members} {object:?} {attribute}");
        attribute["type"] = "domain".into();
        attribute["value"] = "evil.example".into();
        match object {
            Some(mut object) => {
                object["Attribute"] = json!([attribute]);
                members["Object"] = json!([object]);
            }
            None => members["Attribute"] = json!([attribute]),
        }
        let plan = planned(members);
        assert_eq!(named(&plan, "evil.example").tlp, want, "{shown}");
    }
}

#[test]
fn an_undefined_marking_is_refused_not_replaced() {
    let tagged = json!({"Attribute": [], "Tag": [{"name": "tlp:pink"}]});
    let (field, rule) = plan(&event(tagged), DEFAULTS).unwrap_err();
    assert_eq!(field, "event.Tag");
    assert!(
        rule.starts_with("tlp:pink: a TLP tag must be one of TLP:WHITE"),
        "{rule}"
    );
    let (field, _) = plan(&event(json!({"Attribute": [], "distribution": "all"})), DEFAULTS).unwrap_err();
    assert_eq!(field, "event.distribution");
    let plan = planned(json!({
        "Attribute": [
            {"type": "domain", "value": "a.example", "Tag": [{"name": "tlp:pink"}]},
            {"type": "domain", "value": "b.example", "distribution": {}},
            {"type": "domain", "value": "c.example"},
        ],
        "Object": [{"Tag": [{"name": "tlp:"}], "Attribute": [{"type": "domain", "value": "d.example"}]}],
    }));
    assert_eq!(names(&plan), ["c.example"]);
    assert_eq!(
        reasons(&plan),
        json!({"attribute has an unknown TLP tag": 1, "distribution is not a number": 1,
               "object has an unknown TLP tag": 1})
    );
}

#[test]
fn one_value_in_two_attributes_has_the_stricter_marking_and_both_attributes() {
    let plan = planned(json!({"Attribute": [
        {"type": "ip-dst", "value": "198.51.100.3", "uuid": "a", "distribution": "3", "first_seen": "2020-01-02"},
        {"type": "ip-src", "value": "198[.]51[.]100[.]3", "uuid": "b", "distribution": "0", "to_ids": true,
         "first_seen": "2020-01-01", "Sighting": [{"type": "0"}, {"type": 1}]},
    ]}));
    let [node] = plan.drafts.nodes.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(node.tlp, Tlp::Red);
    assert_eq!(node.properties.map()["attribute_uuids"], json!(["a", "b"]));
    assert_eq!(node.properties.map()["attribute_count"], 2);
    assert_eq!(node.properties.map()["to_ids"], true);
    assert_eq!(node.properties.map()["first_seen"], "2020-01-01");
    assert_eq!(
        node.properties.map()["sightings"],
        json!({"seen": 1, "false_positive": 1, "expired": 0})
    );
    assert_eq!(
        node.properties.map()["misp_attributes"][1]["value"],
        "198[.]51[.]100[.]3"
    );
}

#[test]
fn confidence_tags_count_from_the_inside_out() {
    let tag = |level: &str| json!([{"name": format!("misp:confidence-level=\"{level}\"")}]);
    let plan = planned(json!({
        "Tag": tag("rarely-confident"),
        "Attribute": [
            {"type": "text", "value": "a", "Tag": tag("completely-confident")},
            {"type": "text", "value": "b", "Tag": tag("confidence-cannot-be-evalued")},
        ],
    }));
    assert_eq!(named(&plan, "a").confidence, 1.0);
    assert_eq!(named(&plan, "b").confidence, 0.25);
    assert_eq!(named(&attribute("text", "c"), "c").confidence, 0.6);
}

#[test]
fn nothing_in_a_secret_event_is_open() {
    let plan = planned(json!({
        "info": "Operation Secret", "distribution": "0", "Tag": [{"name": "secret-source"}, {"name": "tlp:white"}],
        "Galaxy": [{"type": "threat-actor", "GalaxyCluster": [
            {"type": "threat-actor", "value": "Sofacy", "distribution": "3"}]}],
        "Attribute": [{"type": "domain", "value": "loose.example", "distribution": "3", "comment": "seen"}],
        "Object": [{"uuid": "o", "distribution": "3",
            "Attribute": [{"uuid": "a", "type": "domain", "value": "inside.example", "distribution": "2"}],
            "ObjectReference": [{"referenced_uuid": "a", "relationship_type": "same"}]}],
    }));
    assert_eq!(plan.drafts.nodes.len(), 3);
    assert!(
        plan.drafts.nodes.iter().all(|node| node.tlp == Tlp::Red),
        "{plan:?}"
    );
    assert!(plan.drafts.edges.iter().all(|edge| edge.tlp == Tlp::Red));
    assert_eq!(plan.drafts.evidence[0].tlp, Tlp::Red);
    let loose = named(&plan, "loose.example");
    assert_eq!(loose.description, "seen\nMISP event: Operation Secret");
    assert_eq!(loose.properties.map()["tags"], json!(["secret-source"]));
}

#[test]
fn a_distribution_that_can_not_be_read_anywhere_on_the_way_costs_the_attribute() {
    let plan = planned(json!({"Object": [{"distribution": "all", "Attribute": [
        {"type": "domain", "value": "a.example", "distribution": "3"}, {"type": "domain", "value": "b.example"}]}]}));
    assert!(plan.drafts.nodes.is_empty());
    assert_eq!(reasons(&plan), json!({"distribution is not a number": 2}));
}
