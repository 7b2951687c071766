use proptest::prelude::*;
use serde_json::json;

use super::*;

fn entry(uuid: &str, time: i64, to_ids: bool, comment: &str) -> Value {
    json!({"uuid": uuid, "timestamp": time.to_string(), "event_timestamp": 9, "to_ids": to_ids, "comment": comment})
}

fn properties(entries: Vec<Value>) -> Map<String, Value> {
    let shown =
        json!({"attribute_count": entries.len(), "to_ids": true, "comment": "first", ENTRIES: entries});
    shown.as_object().unwrap().clone()
}

fn deleted(uuid: &str, time: i64) -> AttributeEnd {
    AttributeEnd {
        uuid: uuid.into(),
        version: AttributeVersion::of(Some(time), Some(9)),
        is_deleted: true,
    }
}

#[test]
fn a_newer_version_takes_the_place_of_an_older_one_and_an_older_one_changes_nothing() {
    let mut shown = properties(vec![entry("A", 10, true, "first")]);
    assert!(unite_entries(
        &mut shown,
        vec![entry("a", 20, false, "false positive")]
    ));
    assert_eq!(
        (&shown["to_ids"], &shown["comment"]),
        (&json!(false), &json!("false positive"))
    );
    let newest = shown.clone();
    assert!(!unite_entries(&mut shown, vec![entry("a", 10, true, "first")]));
    assert_eq!(shown, newest);
    // Another attribute of the value speaks for detection.
    assert!(unite_entries(&mut shown, vec![entry("b", 1, true, "other")]));
    assert_eq!(
        (&shown["to_ids"], &shown["comment"]),
        (&json!(true), &json!("false positive"))
    );
}

#[test]
fn what_is_deleted_stays_deleted_for_the_same_version() {
    let mut shown = properties(vec![entry("a", 10, true, "first")]);
    assert!(!are_all_ended(&shown));
    assert!(end_entry(&mut shown, &deleted("a", 20)));
    assert!(are_all_ended(&shown));
    for time in [10, 20] {
        assert!(
            !unite_entries(&mut shown, vec![entry("a", time, true, "first")]),
            "{time}"
        );
    }
    assert!(unite_entries(&mut shown, vec![entry("a", 30, true, "back")]));
    assert!(!are_all_ended(&shown));
}

#[test]
fn a_node_of_more_attributes_than_it_lists_is_never_all_ended() {
    let mut shown = properties(vec![entry("a", 10, true, "first")]);
    shown.insert("attribute_count".into(), 2.into());
    assert!(end_entry(&mut shown, &deleted("a", 20)));
    assert!(!are_all_ended(&shown));
    assert_eq!(shown["to_ids"], json!(true));
}

proptest! {
    /// Versions count by their times, in whatever order they come.
    #[test]
    fn order_does_not_decide_between_versions(
        versions in proptest::collection::vec((1i64..6, any::<bool>()), 1..6),
        turns in 0usize..6,
    ) {
        let mut versions = versions;
        versions.sort_by_key(|(time, _)| *time);
        versions.dedup_by_key(|(time, _)| *time);
        let after = |versions: &[(i64, bool)]| {
            let mut shown = properties(Vec::new());
            shown.insert("attribute_count".into(), 1.into());
            for (time, to_ids) in versions {
                unite_entries(&mut shown, vec![entry("a", *time, *to_ids, &time.to_string())]);
            }
            shown
        };
        let in_order = after(&versions);
        let at = turns % versions.len();
        versions.rotate_left(at);
        prop_assert_eq!(&after(&versions)[ENTRIES], &in_order[ENTRIES]);
        prop_assert_eq!(&after(&versions)["to_ids"], &in_order["to_ids"]);
    }
}
