//! Documents of a bundle's nodes and texts, made while the transaction of the bundle runs: they depend on the objects
//! alone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::documents;
use crate::actors::indexed_store::embed;
use crate::capacity::run_heavy;
use crate::domain::ids::WorkspaceIds;
use crate::domain::stix::ingest::StixPlan;
use crate::search::{IndexDoc, SearchIndex};
use crate::store::StixPart;

/// Memory for documents that wait for their transaction, in bytes; further ones are made after it.
const ROOM: usize = 8 << 20;
/// Size of a document besides its texts and its vector, in bytes.
const FRAME: usize = 512;

/// Documents by node or edge. They have no revision yet: the transaction has none before it is committed.
pub(super) type PreparedDocs = HashMap<Uuid, IndexDoc>;

/// Some nodes or edges of a plan: where to look for them, and their ids.
struct DocRequest {
    part: StixPart,
    ids: Vec<Uuid>,
}

/// Makes documents on the threads for heavy work until it is ended or dropped.
pub(super) struct DocPrefetch {
    /// Dropped first, so that what is still asked for is not made.
    stop: Stop,
    wanted: UnboundedSender<DocRequest>,
    made: JoinHandle<PreparedDocs>,
}

/// Tells the task that nobody waits for further documents.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl DocPrefetch {
    /// `now` is the time of the write.
    pub(super) fn begin(
        index: Arc<SearchIndex>,
        (ws, ids): (Uuid, WorkspaceIds),
        plan: Arc<StixPlan>,
        now: DateTime<Utc>,
    ) -> Self {
        let (wanted, queue) = unbounded_channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let maker = DocWorker {
            index,
            ws,
            ids,
            plan,
            now,
            stopped: Arc::clone(&stopped),
        };
        Self {
            wanted,
            stop: Stop(stopped),
            made: tokio::spawn(maker.run(queue)),
        }
    }

    /// Asks for the documents of these nodes or edges, which follow this position of the plan in the plan's order.
    pub(super) fn ask(&self, part: StixPart, ids: &[Uuid]) {
        let ids = ids.to_vec();
        // Nobody listens once there is no room left.
        let _ = self.wanted.send(DocRequest { part, ids });
    }

    /// The documents made so far.
    pub(super) async fn end(self) -> PreparedDocs {
        drop(self.stop);
        // The task waits for further wishes until nobody can have any.
        drop(self.wanted);
        self.made.await.unwrap_or_default()
    }
}

struct DocWorker {
    index: Arc<SearchIndex>,
    ws: Uuid,
    ids: WorkspaceIds,
    plan: Arc<StixPlan>,
    now: DateTime<Utc>,
    stopped: Arc<AtomicBool>,
}

impl DocWorker {
    async fn run(self, mut queue: UnboundedReceiver<DocRequest>) -> PreparedDocs {
        let (mut made, mut taken) = (PreparedDocs::new(), 0usize);
        while let Some(mut wanted) = queue.recv().await {
            // A transaction that lost a race asks for the same documents again.
            wanted.ids.retain(|id| !made.contains_key(id));
            if self.stopped.load(Ordering::Relaxed) || taken > ROOM {
                break;
            }
            let Some(docs) = self.documents(wanted).await else {
                break;
            };
            taken += docs.iter().map(size_of_doc).sum::<usize>();
            made.extend(docs.into_iter().map(|doc| (doc.node_id, doc)));
        }
        made
    }

    /// The documents of these nodes or edges; `None` if the model fails.
    async fn documents(&self, wanted: DocRequest) -> Option<Vec<IndexDoc>> {
        let (index, ws, plan) = (Arc::clone(&self.index), self.ws, Arc::clone(&self.plan));
        let (ids, now) = (self.ids, self.now);
        let made = run_heavy(Some(ws), move || {
            let mut docs = documents_of(ids, &plan, now, wanted);
            Ok(embed(&index, &mut docs).then_some(docs))
        });
        made.await.ok().flatten()
    }
}

/// The documents of these nodes or edges, without vectors.
fn documents_of(ids: WorkspaceIds, plan: &StixPlan, now: DateTime<Utc>, wanted: DocRequest) -> Vec<IndexDoc> {
    let mut left: HashSet<Uuid> = wanted.ids.into_iter().collect();
    let mut docs = Vec::with_capacity(left.len());
    match wanted.part {
        StixPart::Nodes(first) => {
            let mut nodes = plan.nodes.iter().skip(first);
            while let Some(node) = nodes.next().filter(|_| !left.is_empty()) {
                let id = ids.node(&node.stix_id);
                if left.remove(&id) {
                    docs.push(documents::of_stix(ids, (0, now), node));
                }
            }
        }
        StixPart::Edges(first) => {
            let mut edges = plan.relationships.iter().skip(first);
            while let Some(edge) = edges.next().filter(|_| !left.is_empty()) {
                let id = ids.edge(&edge.stix_id);
                if left.remove(&id) {
                    docs.push(documents::of_relationship(ids, id, 0, edge));
                }
            }
        }
    }
    docs
}

fn size_of_doc(doc: &IndexDoc) -> usize {
    let lists = [&doc.aliases, &doc.identifiers];
    let listed: usize = lists
        .into_iter()
        .flatten()
        .map(|text| text.len() + FRAME / 8)
        .sum();
    let vector = doc.vector.as_ref().map_or(0, Vec::len);
    FRAME + doc.name.len() + doc.body.len() + listed + vector
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{embedder, run};
    use super::*;
    use crate::clock;
    use crate::domain::ids::IdSecret;
    use crate::domain::stix::ingest::{self, Markings, StixDefaults};
    use crate::domain::tlp::Tlp;
    use crate::search::IndexSettings;

    fn stix_id(n: usize) -> String {
        format!("tool--00000000-0000-4000-8000-{n:012}")
    }

    fn maker(tools: usize, description: &str, stopped: bool) -> DocWorker {
        let tool = |n| {
            json!({"type": "tool", "id": stix_id(n), "spec_version": "2.1", "name": format!("Quiet Heron {n}"),
                "description": description})
        };
        let objects: Vec<Value> = (0..tools).map(tool).collect();
        let (ws, secret) = (Uuid::new_v4(), Arc::new(IdSecret::new(Uuid::new_v4(), [])));
        let ids = secret.ids_of(ws);
        let defaults = StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: clock::now(),
        };
        DocWorker {
            index: Arc::new(SearchIndex::open(None, embedder(), IndexSettings::default(), secret).unwrap()),
            ws,
            ids,
            plan: Arc::new(ingest::plan(objects.into(), defaults, Markings::new())),
            now: defaults.now,
            stopped: Arc::new(AtomicBool::new(stopped)),
        }
    }

    /// The numbers of the tools that were made when these were asked for, and their documents.
    async fn made(maker: DocWorker, asked: &[(usize, &[usize])]) -> Vec<(usize, IndexDoc)> {
        let (wanted, queue) = unbounded_channel();
        let ids = maker.ids;
        for (first, tools) in asked {
            let tools = tools.iter().map(|n| ids.node(&stix_id(*n)));
            let asked = DocRequest {
                part: StixPart::Nodes(*first),
                ids: tools.collect(),
            };
            wanted.send(asked).ok().unwrap();
        }
        drop(wanted);
        let mut made = maker.run(queue).await;
        (0..100)
            .filter_map(|n| Some((n, made.remove(&ids.node(&stix_id(n)))?)))
            .collect()
    }

    fn numbers(made: &[(usize, IndexDoc)]) -> Vec<usize> {
        made.iter().map(|(n, _)| *n).collect()
    }

    #[test]
    fn what_is_asked_for_is_made_once_and_as_it_would_be_made_later() {
        run(async {
            let maker = maker(6, "A heron.", false);
            let (index, plan, ids) = (Arc::clone(&maker.index), Arc::clone(&maker.plan), maker.ids);
            let now = maker.now;
            let found = made(maker, &[(0, &[1, 2]), (3, &[5]), (0, &[2, 1])]).await;
            assert_eq!(numbers(&found), [1, 2, 5]);
            for (n, doc) in found {
                let mut later = vec![documents::of_stix(ids, (0, now), &plan.nodes[n])];
                assert!(embed(&index, &mut later));
                assert!(doc.vector.is_some());
                assert_eq!(format!("{doc:?}"), format!("{:?}", later[0]));
            }
        });
    }

    #[test]
    fn it_ends_when_there_is_no_room_left_or_nobody_waits() {
        run(async {
            let long = "heron ".repeat(ROOM / 60);
            let asked: Vec<(usize, Vec<usize>)> = (0..20).map(|n| (n, vec![n])).collect();
            let asked: Vec<(usize, &[usize])> = asked.iter().map(|(n, all)| (*n, all.as_slice())).collect();
            let found = numbers(&made(maker(20, &long, false), &asked).await);
            assert!(
                found == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] || found.len() == 11,
                "{found:?}"
            );
            assert!(made(maker(3, "A heron.", true), &[(0, &[0])]).await.is_empty());
        });
    }
}
