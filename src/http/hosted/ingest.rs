//! Ingest endpoints: STIX bundles, OSINT items, MISP events, analyst entries, reports.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::error::HostedError;
use super::guard::{Guarded, RecallWrite};
use super::{body_of, resource};
use crate::actors::graph_store::{IngestDrafts, IngestStix};
use crate::capacity::heavy;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::items::{self, AnalystEntries, IngestBody, OsintItems, Plan, Report};
use crate::domain::misp::MispExport;
use crate::domain::stix::bundle;
use crate::domain::stix::ingest::{Defaults, SkippedObject, SkippedType};
use crate::domain::stix::objects::Objects;
use crate::http::{AppState, body, weight};
use crate::store::{IngestResult, StixOrigin};

/// Response body of a successful ingest.
#[derive(Serialize)]
struct IngestAnswer<R> {
    success: bool,
    results: R,
}

#[derive(Serialize)]
struct StixResults {
    #[serde(flatten)]
    result: IngestResult,
    remarked: u64,
    warnings: Vec<String>,
    #[serde(flatten)]
    not_taken: NotTaken,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped_objects: Vec<SkippedObject>,
}

#[derive(Serialize)]
struct Results {
    #[serde(flatten)]
    result: IngestResult,
    #[serde(flatten)]
    not_taken: Option<NotTaken>,
}

#[derive(Serialize)]
struct NotTaken {
    skipped: u64,
    skipped_by_type: BTreeMap<String, SkippedType>,
}

impl From<BTreeMap<String, SkippedType>> for NotTaken {
    fn from(skipped_by_type: BTreeMap<String, SkippedType>) -> Self {
        Self {
            skipped: skipped_by_type.values().map(|of_type| of_type.count).sum(),
            skipped_by_type,
        }
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/ingest/stix").route(web::post().to(stix)));
    cfg.service(resource("/api/ingest/osint").route(web::post().to(drafts::<OsintItems>)));
    cfg.service(resource("/api/ingest/misp").route(web::post().to(drafts::<MispExport>)));
    cfg.service(resource("/api/ingest/analyst").route(web::post().to(drafts::<AnalystEntries>)));
    cfg.service(resource("/api/ingest/report").route(web::post().to(drafts::<Report>)));
}

/// Ingests a STIX 2.1 bundle, or a bare array of STIX objects.
async fn stix(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let by = caller.by;
    let ((objects, defaults), load) = body_of(&by, &state, payload, read_bundle).await?;
    let message = IngestStix {
        by,
        objects,
        defaults,
        origin: StixOrigin::default(),
    };
    let done = state.graph.call_with(message, load).await?;
    Ok(created(StixResults {
        result: done.result,
        remarked: done.remarked,
        warnings: done.warnings,
        not_taken: done.skipped.by_type.into(),
        skipped_objects: done.skipped.objects,
    }))
}

fn read_bundle(body: Vec<u8>) -> Result<(Objects, Defaults), DomainError> {
    weight::check(&body)?;
    bundle::read(body, clock::now())
}

/// Ingests the body of any source other than STIX.
async fn drafts<W: IngestBody>(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let by = caller.by;
    let (body, load): (W, _) = body_of(&by, &state, payload, |body| body::parse(&body)).await?;
    let sender = by.email().to_owned();
    let planning = heavy(Some(by.workspace.id), move || {
        Ok((items::plan(body, &sender, load.bytes())?, load))
    });
    let (Plan { drafts, skipped }, load) = planning.await?;
    let message = IngestDrafts {
        by,
        drafts,
        action: W::ACTION,
    };
    let done = state.graph.call_with(message, load).await?;
    Ok(created(Results {
        result: done.result,
        not_taken: skipped.map(NotTaken::from),
    }))
}

fn created(results: impl Serialize) -> HttpResponse {
    let answer = IngestAnswer {
        success: true,
        results,
    };
    HttpResponse::Created().json(answer)
}
