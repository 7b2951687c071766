use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

fn envelope(value: Value) -> Envelope {
    Envelope::read(value.to_string().into_bytes(), now()).unwrap()
}

fn object(name: u32, day: u32) -> Value {
    json!({"type": "tool", "id": format!("tool--00000000-0000-4000-8000-{name:012}"),
        "created": "2024-01-01T00:00:00.000Z", "modified": format!("2024-01-{day:02}T00:00:00.000Z")})
}

#[test]
fn an_envelope_is_an_object_with_a_list() {
    for (body, count) in [
        ("{}", 0),
        (r#"{"objects": []}"#, 0),
        (r#"{"more": true, "objects": [1]}"#, 1),
    ] {
        let read = Envelope::read(body.as_bytes().to_vec(), now()).unwrap();
        assert_eq!(read.objects.len(), count, "{body}");
    }
    for body in ["", "[]", "{\"objects\": 1}", "{\"objects\": [}", "\"x\""] {
        let error = Envelope::read(body.as_bytes().to_vec(), now())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("body: must be a TAXII envelope: "),
            "{body}: {error}"
        );
    }
}

#[test]
fn what_has_no_id_fails_alone() {
    let objects = json!([object(1, 1), {"type": "tool"}, ["x--1"], {"id": 7}, {"type": "x", "id": "x--1"}]);
    let (parts, handed) = envelope(json!({"objects": objects})).by_version();
    assert_eq!(parts.len(), 1);
    let failed: Vec<bool> = handed.iter().map(|object| object.failure.is_some()).collect();
    assert_eq!(failed, [false, true, true, true, false]);
    assert_eq!(handed[1].id, "objects[1]");
    assert_eq!(handed[0].version, "2024-01-01T00:00:00.000Z");
    assert_eq!(handed[4].version, "1970-01-01T00:00:00.000000Z");
}

proptest! {
    #[test]
    fn each_version_is_in_one_part_and_older_ones_come_first(
        versions in prop::collection::vec((1u32..4, 1u32..6), 0..20),
    ) {
        let objects: Vec<Value> = versions.iter().map(|(name, day)| object(*name, *day)).collect();
        let read = envelope(json!({"objects": objects}));
        let layers = read.layers();
        let mut seen: HashMap<u32, Vec<u32>> = HashMap::new();
        for layer in &layers {
            let mut names = HashSet::new();
            for place in layer {
                let (name, day) = versions[*place];
                prop_assert!(names.insert(name), "an object is twice in a part");
                seen.entry(name).or_default().push(day);
            }
        }
        let mut want: HashMap<u32, Vec<u32>> = HashMap::new();
        for (name, day) in versions {
            want.entry(name).or_default().push(day);
        }
        for days in want.values_mut() {
            days.sort_unstable();
            days.dedup();
        }
        prop_assert_eq!(&seen, &want);
        let (newest, handed) = read.newest();
        prop_assert_eq!(newest.objects.count(), want.len());
        for object in handed {
            let day: u32 = object.version[8..10].parse().unwrap();
            let name: u32 = object.id[object.id.len() - 12..].parse().unwrap();
            prop_assert_eq!(object.failure.is_none(), want[&name].last() == Some(&day));
        }
    }

    #[test]
    fn counts_add_up_and_lists_are_whole_or_missing(
        states in prop::collection::vec(0u8..7, 0..12),
        unnamed in 0u64..4,
        state in prop::sample::select(BatchState::ALL.to_vec()),
        reviewed: bool,
    ) {
        let mut items = HashMap::new();
        let objects: Vec<HandedObject> = states.iter().enumerate().map(|(place, state)| {
            let id = format!("tool--{place}");
            if let Some(status) = ItemStatus::ALL.get(usize::from(*state)) {
                items.insert(id.clone(), *status);
            }
            HandedObject { id, version: "v".into(), failure: (*state == 5).then(|| "no".into()) }
        }).collect();
        let hand_in = HandIn { id: Uuid::nil(), user: Uuid::nil(), at: now(), batch: None, objects,
            unnamed_failures: unnamed };
        let review = ReviewState { state, error: None, items };
        let status = hand_in.status(reviewed.then_some(&review));
        let (success, failure, pending) = (status.success_count, status.failure_count, status.pending_count);
        prop_assert_eq!(success + failure + pending, status.total_count);
        prop_assert_eq!(status.total_count, states.len() as u64);
        for (list, count) in [
            (&status.successes, success), (&status.failures, failure), (&status.pendings, pending),
        ] {
            prop_assert!(list.is_empty() || list.len() as u64 == count);
        }
        prop_assert_eq!(status.status == "complete", pending == 0);
    }
}
