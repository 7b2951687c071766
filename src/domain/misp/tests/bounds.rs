//! Bounds on what an event may repeat.

use super::*;

#[test]
fn what_is_repeated_is_counted_for_each_node_that_shows_it() {
    let tags = json!([{"name": "0123456789"}, {"Tag": {"name": "01234"}}, "01234"]);
    let event = event(json!({
        "uuid": "u", "info": "four", "Orgc": {"name": "ab"}, "Org": {"name": "abc"}, "Tag": tags,
        "Attribute": [{"type": "domain"}, {"type": "filename|md5"}, {"type": "malware-sample"}, "broken"],
        "Object": [{"name": "file", "uuid": "o", "Attribute": [
            {"type": "domain", "Tag": [{"name": "misp-galaxy:tool=\"x\""}, {"name": "y"}]}],
            "ObjectReference": [{}, {}]}],
    }));
    let of_event = 1 + 4 + 3 + 20;
    // Six for the loose attributes, one in the object with its cluster, and two references that name the object.
    assert_eq!(
        repeated_bytes(&event),
        Ok(6 * of_event + 2 * (of_event + 5) + 2 * 5)
    );
}

#[test]
fn a_title_that_is_too_long_for_every_node_stands_in_the_evidence_whole() {
    let info = "ä".repeat(501);
    let plan = planned(json!({"info": info, "Attribute": [{"type": "domain", "value": "a.example"}]}));
    assert_eq!(plan.drafts.evidence[0].title, info);
    assert_eq!(named(&plan, "a.example").description, "");
    assert_eq!(
        repeated_bytes(&event(json!({"uuid": "", "info": info, "Attribute": [{}]}))),
        Ok(0)
    );
}

#[test]
fn a_long_comment_is_whole_in_the_description_and_the_original() {
    let comment = "c".repeat(1001);
    let plan = planned(json!({"Attribute": [{"type": "domain", "value": "a.example", "comment": comment}]}));
    let node = named(&plan, "a.example");
    assert_eq!(node.description, comment);
    assert_eq!(
        node.properties.map()["misp_attributes"][0]["comment"],
        json!(comment)
    );
    assert!(!node.properties.map().contains_key("comment"));
}
