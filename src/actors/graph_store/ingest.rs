//! STIX in.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::core::GraphCore;
use super::{IngestStix, Ingested, documents};
use crate::capacity::heavy;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::stix::ingest::{self, Defaults, Markings, Planning, StixPlan};
use crate::store::{StixIngested, node_id};

/// Objects that are planned at a time: some tens of milliseconds.
const OBJECTS_PER_PIECE: usize = 200;

impl GraphCore {
    /// Plans, writes and indexes a bundle.
    pub(super) async fn ingest_stix(&self, message: IngestStix) -> Result<Ingested, DomainError> {
        let IngestStix {
            by,
            objects,
            defaults,
        } = message;
        let ws = by.workspace.id;
        // The index must be complete before a write moves its checkpoint.
        self.index_of(ws).await?;
        let (objects, foreign) = heavy(Some(ws), move || {
            let foreign = ingest::foreign_markings(&objects);
            Ok((objects, foreign))
        })
        .await?;
        let known = self.store.markings(ws, &foreign).await?;
        let plan = Arc::new(planned(ws, objects, defaults, known).await?);

        // One id for all tries: a retry after an unknown outcome must not write the entry twice.
        let entry = AuditEntry::by(&by, "ingest.stix", "node", Outcome::Success, clock::now());
        let audit = |result: &crate::store::IngestResult, skipped: &ingest::SkipReport| {
            entry
                .clone()
                .with("nodes_created", result.nodes_created)
                .with("nodes_updated", result.nodes_updated)
                .with("edges_created", result.edges_created)
                .with("edges_updated", result.edges_updated)
                .with("skipped", skipped.total())
        };
        let state = self.state(ws);
        let done = {
            let _writing = state.writing.lock().await;
            let done = self.store.ingest_stix(ws, &plan, clock::now(), audit).await?;
            Self::committed(&state, done.rev);
            done
        };
        let StixIngested {
            result,
            skipped,
            touched,
            rev,
        } = done;
        let touched: HashSet<_> = touched.into_iter().collect();
        let docs = heavy(Some(ws), move || {
            let docs = plan.nodes.iter().filter_map(|node| {
                let id = node_id(ws, &node.stix_id);
                touched.contains(&id).then(|| documents::of_stix(id, rev, node))
            });
            Ok(docs.collect())
        });
        self.index_revision(ws, &state, rev, docs).await;
        self.chain(audit(&result, &skipped)).await;
        Ok(Ingested { result, skipped })
    }
}

/// Plans a bundle piece by piece, so that others have their turn between the pieces of a large one.
async fn planned(
    ws: Uuid,
    objects: Vec<Value>,
    defaults: Defaults,
    known: Markings,
) -> Result<StixPlan, DomainError> {
    let mut planning = heavy(Some(ws), move || Ok(Planning::begin(objects, defaults, known))).await?;
    loop {
        let (next, more) = heavy(Some(ws), move || {
            let more = planning.step(OBJECTS_PER_PIECE);
            Ok((planning, more))
        })
        .await?;
        planning = next;
        if !more {
            return Ok(planning.finish());
        }
    }
}
