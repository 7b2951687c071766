//! STIX in.

use std::collections::HashSet;

use super::core::GraphCore;
use super::{IngestStix, Ingested, documents};
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::stix::ingest;
use crate::store::{StixIngested, node_id};

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
        let known = self
            .store
            .markings(ws, &ingest::foreign_markings(&objects))
            .await?;
        let plan = blocking(move || Ok(ingest::plan(objects, defaults, known))).await?;

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
        let docs = plan.nodes.iter().filter_map(|node| {
            let id = node_id(ws, &node.stix_id);
            touched.contains(&id).then(|| documents::of_stix(id, rev, node))
        });
        self.index_revision(ws, &state, rev, docs.collect()).await;
        self.chain(audit(&result, &skipped)).await;
        Ok(Ingested { result, skipped })
    }
}
