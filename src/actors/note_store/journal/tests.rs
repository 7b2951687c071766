use super::super::graph::tests::{host, id, note, numbers, write_something};
use super::*;
use crate::domain::memory::tier::Tier;
use crate::store::{NoteHead, StoredEntity, StoredRelation};

fn relation(number: u128) -> StoredRelation {
    StoredRelation {
        properties: Some(serde_json::Map::from_iter([(
            "sure".into(),
            serde_json::json!(1e-7),
        )])),
        note: Some(id(9)),
        ..super::super::graph::tests::relation(number, 1, 2)
    }
}

/// Changes of every kind.
fn changes(rev: u64) -> Changes {
    let number = u128::from(rev) * 100;
    let mut head = note(number, &[1, 2]);
    head.label = "Größe, ☃ and \0".into();
    Changes {
        rev,
        entities: vec![host(1), host(2), host(number)],
        relations: vec![relation(number + 1)],
        notes: vec![head, note(number + 1, &[])],
        trust: vec![(id(number), Tier::A, 0.25)],
        mentions: vec![(id(number + 1), vec![id(1), id(number)])],
        superseded: vec![(id(number), id(number + 1))],
        ..Changes::default()
    }
}

/// Everything that a graph holds, in its order.
fn all_of(graph: &MemoryGraph) -> (Vec<NoteHead>, Vec<StoredEntity>, Vec<StoredRelation>, usize) {
    let notes = graph.notes_by_age().map(|note| graph.head(note)).collect();
    let entities = graph.own_entities();
    (
        notes,
        entities.collect(),
        graph.own_relations().collect::<Vec<_>>(),
        graph.note_edges,
    )
}

fn replayed(path: &Path) -> Option<RecoveredGraph> {
    let replay = GraphJournal::replay(path, id(7), &AtomicBool::new(false)).unwrap();
    replay.map(|replay| replay.resume().unwrap())
}

fn log_of(dir: &Path, revs: impl IntoIterator<Item = u64>) -> (PathBuf, MemoryGraph, Vec<u64>) {
    let path = dir.join("log");
    let mut graph = MemoryGraph::default();
    let mut journal = GraphJournal::create(&path, id(7), &graph, 0).unwrap();
    let mut ends = Vec::new();
    for rev in revs {
        journal.append(&changes(rev)).unwrap();
        graph.apply(changes(rev));
        ends.push(journal.bytes);
    }
    (path, graph, ends)
}

#[test]
fn a_record_is_read_as_it_was_written_and_no_other_bytes_are_one() {
    let mut bytes = postcard::to_extend(&changes(5), Vec::new()).unwrap();
    assert_eq!(decode(&bytes), Some(changes(5)));
    for length in 0..bytes.len() {
        assert_eq!(decode(&bytes[..length]), None, "{length}");
    }
    bytes.push(0);
    assert_eq!(decode(&bytes), None);
    // Damage is found by the checksum; reading must not fail in another way.
    bytes.pop();
    for at in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            decode(&damaged);
        }
    }
}

#[test]
fn a_log_torn_anywhere_is_whole_up_to_a_record_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (path, graph, ends) = log_of(dir.path(), [1, 2, 3]);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, ends[2]);
    let before: Vec<_> = [1, 2, 3]
        .iter()
        .map(|last| all_of(&log_of(dir.path(), 1..=*last).1))
        .collect();
    assert_eq!(before[2], all_of(&graph));
    for length in ends[1]..ends[2] {
        fs::write(&path, &bytes[..length as usize]).unwrap();
        let found = replayed(&path).unwrap();
        assert_eq!(
            (found.rev, all_of(&found.graph) == before[1]),
            (2, true),
            "{length}"
        );
        let mut journal = found.journal;
        journal.append(&changes(3)).unwrap();
        let found = replayed(&path).unwrap();
        assert_eq!(
            (found.rev, all_of(&found.graph) == before[2]),
            (3, true),
            "{length}"
        );
    }
    // Damage in the middle cuts everything after it off.
    for at in ends[0]..ends[1] {
        let mut damaged = bytes.clone();
        damaged[at as usize] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let found = replayed(&path).unwrap();
        assert_eq!(
            (found.rev, fs::metadata(&path).unwrap().len()),
            (1, ends[0]),
            "{at}"
        );
    }
    // Pages that never reached the disk are zero.
    let mut unsynced = bytes.clone();
    unsynced[ends[1] as usize + 3..].fill(0);
    fs::write(&path, &unsynced).unwrap();
    assert_eq!(replayed(&path).unwrap().rev, 2);
}

#[test]
fn a_log_of_another_version_or_workspace_or_without_a_revision_is_no_log() {
    let dir = tempfile::tempdir().unwrap();
    assert!(replayed(&dir.path().join("none")).is_none());
    let (path, _, ends) = log_of(dir.path(), [1]);
    let bytes = fs::read(&path).unwrap();
    let other = GraphJournal::replay(&path, id(8), &AtomicBool::new(false));
    assert!(other.unwrap().is_none());
    for at in [0, 15, 31] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        fs::write(&path, &other).unwrap();
        assert!(replayed(&path).is_none(), "{at}");
    }
    for length in 0..ends[0] {
        fs::write(&path, &bytes[..length as usize]).unwrap();
        assert!(replayed(&path).is_none(), "{length}");
    }
}

/// A log with one note, as it was written before records were postcard.
fn log_of_the_format_before() -> Vec<u8> {
    // A revision, no entities, no relationships, one note.
    let mut content = vec![7, 0, 0, 1];
    content.extend(id(100).as_bytes());
    content.extend(b"\x04Note\x03cti");
    // Tier b as its number, the confidence, the digest, neither mentions nor a successor.
    content.push(1);
    content.extend(1f64.to_le_bytes());
    content.extend([9; 16]);
    content.extend([0, 0]);
    // Seconds and nanoseconds of its creation.
    content.extend(100i64.to_le_bytes());
    content.extend(0u32.to_le_bytes());
    // Nothing of the other kinds.
    content.extend([0, 0, 0]);
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    let checksum = extend_checksum(0, &content).to_le_bytes();
    [
        b"threat-memory g1".as_slice(),
        id(7).as_bytes(),
        &length,
        &checksum,
        &content,
    ]
    .concat()
}

#[test]
fn a_log_of_the_format_before_is_discarded_and_not_misread() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let old = log_of_the_format_before();
    fs::write(&path, &old).unwrap();
    assert!(replayed(&path).is_none());
    assert_eq!(fs::read(&path).unwrap(), old, "only looked at");
    // Records without contents are the same in both: the name of the format alone tells them apart.
    let empty = [7, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (length, checksum) = (10u32.to_le_bytes(), extend_checksum(0, &empty).to_le_bytes());
    for (format, rev) in [(b"threat-memory g2", None), (FORMAT, Some(7))] {
        let log = [format.as_slice(), id(7).as_bytes(), &length, &checksum, &empty].concat();
        fs::write(&path, log).unwrap();
        assert_eq!(replayed(&path).map(|found| found.rev), rev);
    }
    let journal = GraphJournal::create(&path, id(7), &MemoryGraph::default(), 8).unwrap();
    assert_eq!(replayed(&path).unwrap().journal.bytes, journal.bytes);
}

#[test]
fn a_whole_copy_is_the_graph_whatever_was_written_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph").join("log");
    let mut random = numbers();
    let mut graph = MemoryGraph::of(Vec::new(), (1..=6).map(host).collect(), Vec::new());
    for step in 0..3_000 {
        write_something(&mut graph, step, &mut random);
    }
    let journal = GraphJournal::create(&path, id(7), &graph, 42).unwrap();
    let found = replayed(&path).unwrap();
    assert_eq!((found.rev, journal.bytes), (42, found.journal.bytes));
    assert_eq!(all_of(&found.graph), all_of(&graph));
    for (own, other) in graph.present_notes().zip(found.graph.present_notes()) {
        assert_eq!(
            graph.duplicate_of(&own.digest),
            found.graph.duplicate_of(&other.digest)
        );
    }
    // A copy that was cut off is worth nothing: only its end has the revision.
    let bytes = fs::read(&path).unwrap();
    for length in [bytes.len() - 1, bytes.len() / 2, 40] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(replayed(&path).is_none(), "{length}");
    }
}

#[test]
fn a_log_that_only_repeats_itself_is_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut graph, _) = log_of(dir.path(), [1]);
    let mut journal = replayed(&path).unwrap().journal;
    let again = |rev| Changes {
        rev,
        trust: vec![(id(100), Tier::B, 0.5); 200_000],
        ..Changes::default()
    };
    let mut rev = 1;
    while !journal.is_long() {
        rev += 1;
        journal.append(&again(rev)).unwrap();
        graph.apply(again(rev));
        assert!(rev < 100);
    }
    let long = journal.bytes;
    journal.shorten(&graph, rev).unwrap();
    assert!(journal.bytes < 10_000 && long > SLACK && !journal.is_long());
    journal.append(&changes(rev + 1)).unwrap();
    let found = replayed(&path).unwrap();
    assert_eq!(found.rev, rev + 1);
    graph.apply(changes(rev + 1));
    assert_eq!(all_of(&found.graph), all_of(&graph));
}

#[test]
fn reading_a_log_changes_nothing_until_it_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let (path, graph, ends) = log_of(dir.path(), [1, 2]);
    let torn = [fs::read(&path).unwrap(), vec![7; 30]].concat();
    fs::write(&path, &torn).unwrap();
    let replay = |stop| GraphJournal::replay(&path, id(7), &AtomicBool::new(stop)).unwrap();
    assert!(replay(true).is_none());
    let replay = replay(false).unwrap();
    assert_eq!(fs::read(&path).unwrap(), torn);
    assert!(replay.is_of(&path));
    let mut journal = replay.resume().unwrap().journal;
    assert_eq!(fs::metadata(&path).unwrap().len(), ends[1]);
    journal.append(&changes(3)).unwrap();
    let mut longer = graph;
    longer.apply(changes(3));
    let found = replayed(&path).unwrap();
    assert_eq!((found.rev, all_of(&found.graph)), (3, all_of(&longer)));
}
