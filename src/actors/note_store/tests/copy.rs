//! The copy of the graph: a start from it gives what the database holds, whatever state its file is in.

use std::fs;

use test_support::extent;

use super::super::enrich::{ApplyEnrichment, Verdict};
use super::super::graph::MemoryGraph;
use super::super::load::load;
use super::*;
use crate::actors::worker::Work;
use crate::domain::memory::entity::Mentions;

/// A memory over a store, with the file of its copy.
pub(super) struct CopiedMemory {
    store: Arc<Store>,
    audit: AuditHandle,
    dir: tempfile::TempDir,
}

impl CopiedMemory {
    pub(super) async fn new() -> Self {
        let (store, audit) = open().await;
        let dir = tempfile::tempdir().unwrap();
        Self { store, audit, dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("graph").join("log")
    }

    pub(super) fn core(&self) -> Arc<NoteCore> {
        copied_to(&self.store, &self.audit, None, Some(self.path()), tuning())
    }

    /// What a start reads, from the file as it is or from the database alone.
    async fn start(&self, from_copy: bool) -> String {
        let copy = from_copy.then(|| GraphCopy::open(self.path(), workspace()));
        let loaded = load(&self.store, workspace(), copy.as_ref()).await.unwrap();
        shown(&loaded.graph)
    }

    pub(super) async fn assert_right(&self, when: &str) {
        assert_eq!(self.start(true).await, self.start(false).await, "{when}");
    }
}

/// Everything that a graph holds, in its order.
fn shown(graph: &MemoryGraph) -> String {
    let notes = graph.notes_by_age().map(|note| graph.head(note));
    let entities = graph.own_entities();
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{}",
        notes.collect::<Vec<_>>(),
        entities.collect::<Vec<_>>(),
        graph.own_relations().collect::<Vec<_>>(),
        graph.note_edges
    )
}

async fn relate(core: &Arc<NoteCore>, source: &str, confidence: f64) {
    let message = IngestRelationship {
        source: EntityDraft::from_name("actor", source, 1.0).unwrap(),
        target: EntityDraft::from_name("tool", "Cobalt Strike", 1.0).unwrap(),
        relationship: relationship_label("USES").unwrap(),
        properties: Map::from_iter([("confidence".into(), json!(confidence))]),
        from: HERE,
    };
    core.ingest_relationship(message).await.unwrap();
}

async fn enrich(core: &Arc<NoteCore>, note: Uuid, verdict: Verdict) {
    let found = mentions_in_order("Emotet uses Mimikatz.");
    let message = ApplyEnrichment {
        note,
        read: Vec::new(),
        found,
        verdict,
    };
    message.run(Arc::clone(core)).await.unwrap();
}

fn mentions_in_order(text: &str) -> Mentions {
    crate::domain::memory::entity::mentions_in(text)
}

/// Writes of every kind; the last one has several kinds of changes.
async fn write_all(core: &Arc<NoteCore>) {
    let first = remember(core, "Sandworm uses Industroyer against substations in March.").await;
    let second = remember(core, BEACONS).await;
    let third = remember(core, &BEACONS.replace("went", "then went")).await;
    assert_eq!(third.superseded, Some(second.note_id));
    let mut again = note("Sandworm uses Industroyer against substations in March.");
    again.source_ref = "https://example.com/report".into();
    tell(core, vec![again]).await;
    relate(core, "Fancy Bear", 0.4).await;
    relate(core, "Fancy Bear", 0.9).await;
    enrich(core, first.note_id, Verdict::Keep).await;
    let verdict = Verdict::Merges {
        older: first.note_id,
        text: "Sandworm used Industroyer, and its implants called Riga.".into(),
    };
    enrich(core, third.note_id, verdict).await;
    let mut other = note("Turla uses Snake on 198.51.100.7.");
    other.domain = "elsewhere".into();
    tell(core, vec![other]).await;
}

#[test]
fn a_start_from_the_copy_is_one_from_the_database() {
    run(async {
        let copied = CopiedMemory::new().await;
        write_all(&copied.core()).await;
        copied.assert_right("after writes of every kind").await;
        // The next process continues the file.
        let core = copied.core();
        write_all(&core).await;
        relate(&core, "Sandworm", 0.3).await;
        copied.assert_right("after a restart").await;
        let whole = fs::metadata(copied.path()).unwrap().len();
        fs::remove_file(copied.path()).unwrap();
        copied.assert_right("without a file").await;
        assert!(fs::metadata(copied.path()).unwrap().len() < whole);
    });
}

#[test]
fn a_copy_torn_at_any_byte_of_its_last_record_is_completed_from_the_database() {
    run(async {
        let copied = CopiedMemory::new().await;
        let core = copied.core();
        write_all(&core).await;
        let before = fs::read(copied.path()).unwrap().len();
        remember(&core, "Turla used Snake and 198.51.100.9 in June.").await;
        let bytes = fs::read(copied.path()).unwrap();
        let right = copied.start(false).await;
        let torn = (before..bytes.len()).step_by(extent(7, 1));
        for length in torn.chain([bytes.len()]) {
            fs::write(copied.path(), &bytes[..length]).unwrap();
            assert!(copied.start(true).await == right, "{length}");
            // What was missing has been added to the file.
            assert!(fs::metadata(copied.path()).unwrap().len() as usize > before);
        }
    });
}

#[test]
fn a_copy_that_is_behind_is_completed_and_one_of_another_database_is_discarded() {
    run(async {
        let copied = CopiedMemory::new().await;
        let core = copied.core();
        remember(&core, "APT28 uses X-Agent.").await;
        let early = fs::read(copied.path()).unwrap();
        let first = remember(&core, BEACONS).await;
        let middle = fs::read(copied.path()).unwrap();
        write_all(&core).await;
        let enough = copied.start(false).await;
        for (name, behind) in [("early", &early), ("middle", &middle)] {
            fs::write(copied.path(), behind).unwrap();
            assert!(copied.start(true).await == enough, "{name}");
        }
        assert!(enough.contains(&first.note_id.to_string()));
        // An older copy of the database: the file is ahead of it.
        let older = CopiedMemory::new().await;
        remember(&older.core(), "APT28 uses X-Agent.").await;
        let right = older.start(false).await;
        fs::copy(copied.path(), older.path()).unwrap();
        assert!(older.start(true).await == right);
        older.assert_right("once the file is its own again").await;
    });
}

#[test]
fn damage_of_any_kind_costs_only_time() {
    run(async {
        let copied = CopiedMemory::new().await;
        write_all(&copied.core()).await;
        let bytes = fs::read(copied.path()).unwrap();
        let right = copied.start(false).await;
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            fs::write(copied.path(), damaged).unwrap();
            assert!(copied.start(true).await == right, "{at}");
        }
        fs::write(copied.path(), b"another format entirely").unwrap();
        copied.assert_right("with another format").await;
        let mut before = bytes.clone();
        before[..16].copy_from_slice(b"threat-memory g1");
        fs::write(copied.path(), &before).unwrap();
        copied.assert_right("with the format before").await;
        assert_eq!(
            fs::read(copied.path()).unwrap()[..32],
            bytes[..32],
            "written anew"
        );
        fs::remove_file(copied.path()).unwrap();
        fs::create_dir(copied.path()).unwrap();
        copied.assert_right("without a place for the file").await;
    });
}

#[test]
fn a_copy_without_the_entities_of_an_older_program_is_discarded() {
    run(async {
        let copied = CopiedMemory::new().await;
        let core = copied.core();
        remember(&core, "APT28 uses X-Agent.").await;
        let early = fs::read(copied.path()).unwrap();
        remember(&core, "Turla uses Snake on 198.51.100.7.").await;
        copied.store.forget_entity_writes(workspace()).await;
        fs::write(copied.path(), early).unwrap();
        copied.assert_right("after writes of an older program").await;
    });
}
