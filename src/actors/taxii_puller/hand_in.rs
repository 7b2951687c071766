//! Objects that TAXII clients hand in: they are staged for review, or ingested.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::TaxiiPullerCore;
use crate::actors::graph_store::IngestStix;
use crate::actors::worker::{Access, Work};
use crate::capacity::run_heavy;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::domain::feed::InputKind;
use crate::domain::feed::stage::overmarked_objects;
use crate::domain::principal::Principal;
use crate::domain::stix::bundle::DEFAULT_CONFIDENCE;
use crate::domain::stix::ingest::{SkippedType, StixDefaults};
use crate::domain::taxii::collection::{Collection, HandInMode};
use crate::domain::taxii::hand_in::{Envelope, HandIn, HandInStatus};
use crate::domain::taxii::standing::standing_collections;
use crate::domain::taxii::view::CollectionView;
use crate::domain::tlp::Tlp;
use crate::store::{NOT_NEWER, NewFeedBatch, StixOrigin, WAITS};

/// Takes in what a client adds to a collection. The same envelope is taken in once.
#[derive(Debug)]
pub struct TakeEnvelope {
    pub by: Principal,
    /// The id or the alias of the collection.
    pub collection: String,
    pub envelope: Envelope,
}

/// What became of objects that the caller's user has handed in.
#[derive(Debug)]
pub struct ReadHandIn {
    pub by: Principal,
    pub id: Uuid,
}

impl Work for TakeEnvelope {
    type Core = TaxiiPullerCore;
    type Reply = HandInStatus;
    const NAME: &'static str = "take_envelope";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    fn is_bulk(&self) -> bool {
        true
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let Self {
            by,
            collection,
            envelope,
        } = self;
        let ws = by.workspace.id;
        let collection = core.writable(&by, &collection).await?;
        let id = core.hand_in_id(&by, collection.id, envelope.digest());
        // The same envelope waits for itself.
        let _turn = core.turn(ws, id).await;
        if let Some(known) = core.status_of(&by, id, true).await? {
            return Ok(known);
        }
        match collection.hand_in {
            HandInMode::Review => core.stage_envelope(&by, (&collection, id), envelope).await?,
            HandInMode::Ingest => core.ingest_envelope(&by, (&collection, id), envelope).await?,
        }
        let status = core.status_of(&by, id, false).await?;
        status.ok_or(DomainError::NotFound("status"))
    }
}

impl Work for ReadHandIn {
    type Core = TaxiiPullerCore;
    type Reply = HandInStatus;
    const NAME: &'static str = "read_hand_in";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    async fn run(self, core: Arc<TaxiiPullerCore>) -> Result<Self::Reply, DomainError> {
        let status = core.status_of(&self.by, self.id, false).await?;
        status.ok_or(DomainError::NotFound("status"))
    }
}

impl TaxiiPullerCore {
    /// A collection that the caller may hand objects in to.
    ///
    /// # Errors
    /// `NotFound` for one that the caller may not even read, `Forbidden` for one that it may only read.
    async fn writable(&self, by: &Principal, named: &str) -> Result<Collection, DomainError> {
        let ws = by.workspace.id;
        let refused = || DomainError::Forbidden("the collection takes nothing from this caller".into());
        let standing = standing_collections(by, self.store.id_secret().secret_ids_of(ws));
        if standing.iter().any(|view| view.is_named(named)) {
            return Err(refused());
        }
        for collection in self.store.collections(ws).await? {
            let view = CollectionView::of(collection.clone(), by);
            match view.filter(|view| view.is_named(named)) {
                Some(view) if view.can_write => return Ok(collection),
                Some(_) => return Err(refused()),
                None => {}
            }
        }
        Err(DomainError::NotFound("collection"))
    }

    fn hand_in_id(&self, by: &Principal, collection: Uuid, digest: &str) -> Uuid {
        let ids = self.store.id_secret().secret_ids_of(by.workspace.id);
        ids.hand_in(&format!("{collection}\0{}\0{digest}", by.user_id()))
    }

    /// The status of what the caller's user has handed in. `None` if there is nothing, or, to one who hands it in `again`,
    /// if staging it failed.
    async fn status_of(
        &self,
        by: &Principal,
        id: Uuid,
        again: bool,
    ) -> Result<Option<HandInStatus>, DomainError> {
        let ws = by.workspace.id;
        let Some(hand_in) = self.store.hand_in(ws, by.user_id(), id).await? else {
            return Ok(None);
        };
        let Some(batch) = hand_in.batch else {
            return Ok(Some(hand_in.status(None)));
        };
        let highest = by.workspace.clearance().highest();
        let review = self.store.review_state(ws, batch, highest).await?;
        let review = review.filter(|review| !(again && review.has_failed()));
        Ok(review.map(|review| hand_in.status(Some(&review))))
    }

    /// Stages an envelope for review, as an uploaded bundle is.
    async fn stage_envelope(
        self: &Arc<Self>,
        by: &Principal,
        (collection, id): (&Collection, Uuid),
        envelope: Envelope,
    ) -> Result<(), DomainError> {
        let (ws, highest) = (by.workspace.id, by.workspace.clearance().highest());
        let (part, handed) = run_heavy(Some(ws), move || Ok(envelope.newest())).await?;
        let batch = NewFeedBatch {
            id: Uuid::now_v7(),
            feed: None,
            user: by.user_id(),
            input_kind: InputKind::StixBundle,
            default_tlp: Tlp::Green.min(highest),
            now: clock::now(),
        };
        let mut hand_in = HandIn {
            id,
            user: by.user_id(),
            at: batch.now,
            batch: Some(batch.id),
            objects: handed,
            unnamed_failures: 0,
        };
        let entry = entry(by, (collection, id), &hand_in).with("batch_id", batch.id.to_string());
        let defaults = (batch.default_tlp, batch.now);
        let planned = self
            .plan_objects((ws, highest), batch.id, part.objects, defaults)
            .await?;
        let skipped = &planned.0.skipped;
        hand_in.note_skipped(&part.versions, &skipped.objects, skipped_of(&skipped.by_type));
        let overmarked = overmarked_objects(&planned.0);
        hand_in.note_skipped(&part.versions, &overmarked, overmarked.len() as u64);
        let _registered = self.register_upload(batch.id);
        if !self.store.begin_hand_in(ws, &hand_in, &batch, &entry).await? {
            return Ok(());
        }
        self.chain(entry).await;
        self.fill_upload(by, (&batch, batch.id), planned).await
    }

    /// Ingests an envelope, older versions of its objects first.
    async fn ingest_envelope(
        &self,
        by: &Principal,
        (collection, id): (&Collection, Uuid),
        envelope: Envelope,
    ) -> Result<(), DomainError> {
        let highest = by.workspace.clearance().highest();
        let now = clock::now();
        let (parts, objects) = run_heavy(Some(by.workspace.id), move || Ok(envelope.by_version())).await?;
        let mut hand_in = HandIn {
            id,
            user: by.user_id(),
            at: now,
            batch: None,
            objects,
            unnamed_failures: 0,
        };
        for part in parts {
            let message = IngestStix {
                by: by.clone(),
                objects: part.objects,
                origin: StixOrigin::default(),
                defaults: StixDefaults {
                    tlp: Tlp::Green.min(highest),
                    confidence: DEFAULT_CONFIDENCE,
                    now,
                },
            };
            let done = self.graph.call(message).await?;
            // Relationships that wait for an end count among the skipped objects, but are stored.
            let count = skipped_of(&done.skipped.by_type).saturating_sub(done.waiting);
            let mut skipped = done.skipped.objects;
            skipped.retain(|object| object.reason != WAITS);
            hand_in.note_skipped(&part.versions, &skipped, count);
        }
        let entry = entry(by, (collection, id), &hand_in);
        self.store.put_hand_in(by.workspace.id, &hand_in, &entry).await?;
        self.chain(entry).await;
        Ok(())
    }
}

/// How many objects were neither taken in nor kept. One that is there in this or a newer version is no failure (section
/// 5.5).
fn skipped_of(by_type: &BTreeMap<String, SkippedType>) -> u64 {
    let lost = by_type.values().map(|of_type| {
        let known = of_type.reasons.get(NOT_NEWER).copied().unwrap_or(0);
        of_type.count.saturating_sub(of_type.kept).saturating_sub(known)
    });
    lost.sum()
}

fn entry(by: &Principal, (collection, id): (&Collection, Uuid), hand_in: &HandIn) -> AuditEntry {
    AuditEntry::by(by, "taxii.hand_in", "hand_in", Outcome::Success, hand_in.at)
        .on(id)
        .with("collection_id", collection.id.to_string())
        .with("objects", hand_in.objects.len() as u64)
}
