//! Ingest endpoints: STIX bundles, OSINT items, MISP events, analyst entries, reports.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Guarded, RecallWrite};
use super::{body_of, resource};
use crate::actors::graph_store::{IngestDrafts, IngestStix};
use crate::capacity::run_heavy;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::ingest_result::{IngestResult, KeptCounts};
use crate::domain::items::{self, AnalystEntries, IngestBody, ItemPlan, OsintItems, Report};
use crate::domain::misp::{self, MispExport};
use crate::domain::stix::bundle::{self, StixIngest};
use crate::domain::stix::ingest::{SkippedObject, SkippedType, StixDefaults};
use crate::domain::stix::objects::Objects;
use crate::http::body::{self, Body};
use crate::http::{AppState, weight};
use crate::store::StixOrigin;

/// Counts of what an ingest changed.
#[derive(Serialize, ToSchema)]
struct IngestAnswer<R> {
    success: bool,
    results: R,
}

#[derive(Serialize, ToSchema)]
struct StixResults {
    #[serde(flatten)]
    result: IngestResult,
    kept: KeptCounts,
    /// Objects whose marking was defined by this bundle.
    remarked: u64,
    /// Relationships that wait for an end that has not come yet. They count among the skipped ones, too.
    waiting: u64,
    #[schema(example = json!([]))]
    warnings: Vec<String>,
    #[serde(flatten)]
    not_taken: NotTaken,
    /// The first hundred objects that break a rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped_objects: Vec<SkippedObject>,
}

#[derive(Serialize, ToSchema)]
struct DraftResults {
    #[serde(flatten)]
    result: IngestResult,
    /// Names that several nodes carry, so that the entry has become a node of its own.
    #[schema(example = json!([]))]
    warnings: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct MispResults {
    #[serde(flatten)]
    result: DraftResults,
    #[serde(flatten)]
    not_taken: NotTaken,
}

#[derive(Serialize, ToSchema)]
struct NotTaken {
    #[schema(example = 1)]
    skipped: u64,
    #[schema(example = json!({"report": {"count": 1, "kept": 1, "reasons": {}}}))]
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
    cfg.service(resource("/api/ingest/osint").route(web::post().to(osint)));
    cfg.service(resource("/api/ingest/misp").route(web::post().to(misp)));
    cfg.service(resource("/api/ingest/analyst").route(web::post().to(analyst)));
    cfg.service(resource("/api/ingest/report").route(web::post().to(report)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(stix, osint, misp, analyst, report))]
pub(super) struct Docs;

/// Ingests a STIX 2.1 bundle, or a bare array of STIX objects.
#[utoipa::path(
    post, path = "/api/ingest/stix", operation_id = "ingest_stix", tag = "Ingest", request_body = StixIngest,
    responses((status = 201, description = "Counts of what changed.", body = IngestAnswer<StixResults>))
)]
async fn stix(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
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
    Ok(created_response(StixResults {
        kept: done.result.kept,
        result: done.result,
        remarked: done.remarked,
        waiting: done.waiting,
        warnings: done.warnings,
        not_taken: done.skipped.by_type.into(),
        skipped_objects: done.skipped.objects,
    }))
}

fn read_bundle(body: Vec<u8>) -> Result<(Objects, StixDefaults), DomainError> {
    weight::check(&body)?;
    bundle::read(body, clock::now())
}

/// Ingests the items of an OSINT collector.
#[utoipa::path(
    post, path = "/api/ingest/osint", operation_id = "ingest_osint", tag = "Ingest", request_body = OsintItems,
    responses((status = 201, description = "Counts of what changed.", body = IngestAnswer<DraftResults>))
)]
async fn osint(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    drafts::<OsintItems>(caller, state, payload).await
}

/// Ingests a MISP event.
///
/// Attributes become nodes; the event is their evidence. Distribution, tags and `default_tlp` decide the markings.
#[utoipa::path(
    post, path = "/api/ingest/misp", operation_id = "ingest_misp", tag = "Ingest", request_body = MispExport,
    responses((status = 201, description = "Counts of what changed.", body = IngestAnswer<MispResults>))
)]
async fn misp(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    drafts::<MispExport>(caller, state, payload).await
}

/// Ingests the entries of an analyst.
#[utoipa::path(
    post, path = "/api/ingest/analyst", operation_id = "ingest_analyst", tag = "Ingest", request_body = AnalystEntries,
    responses((status = 201, description = "Counts of what changed.", body = IngestAnswer<DraftResults>))
)]
async fn analyst(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    drafts::<AnalystEntries>(caller, state, payload).await
}

/// Ingests a structured report.
#[utoipa::path(
    post, path = "/api/ingest/report", operation_id = "ingest_report", tag = "Ingest", request_body = Report,
    responses((status = 201, description = "Counts of what changed.", body = IngestAnswer<DraftResults>))
)]
async fn report(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    drafts::<Report>(caller, state, payload).await
}

/// Ingests the body of any source other than STIX.
async fn drafts<W: IngestBody>(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let by = caller.by;
    let (body, load): (W, _) = body_of(&by, &state, payload, |body| body::parse(&body)).await?;
    let sender = by.email().to_owned();
    let planning = run_heavy(Some(by.workspace.id), move || {
        Ok((items::plan(body, &sender, load.bytes())?, load))
    });
    let (ItemPlan { drafts, skipped }, load) = planning.await?;
    let message = IngestDrafts {
        by,
        drafts,
        action: W::ACTION,
    };
    let done = state.graph.call_with(message, load).await?;
    let result = DraftResults {
        result: done.result,
        warnings: done.warnings,
    };
    Ok(match skipped {
        None => created_response(result),
        Some(mut skipped) => {
            misp::skip(
                &mut skipped,
                "attribute",
                "not newer than the stored version",
                done.outdated,
            );
            created_response(MispResults {
                result,
                not_taken: skipped.into(),
            })
        }
    })
}

fn created_response(results: impl Serialize) -> HttpResponse {
    let answer = IngestAnswer {
        success: true,
        results,
    };
    HttpResponse::Created().json(answer)
}
