//! Ways in other than STIX and text: OSINT items, MISP events, analyst entries, reports.

use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bounds::{self, entries, name, text};
use super::{body_of, resource};
use crate::actors::graph_store::IngestDrafts;
use crate::capacity::{Load, heavy};
use crate::domain::confidence::Confidence;
use crate::domain::draft::Drafts;
use crate::domain::error::DomainError;
use crate::domain::items::{self, AnalystNode, ItemDefaults, OsintItem, Report, ReportBlock};
use crate::domain::misp::{self, MispDefaults, Skipped};
use crate::domain::node::NodeType;
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::error::HostedError;
use crate::http::guard::{Guarded, RecallWrite};
use crate::store::IngestResult;

#[derive(Serialize)]
struct IngestAnswer {
    success: bool,
    results: Results,
}

#[derive(Serialize)]
struct Results {
    #[serde(flatten)]
    result: IngestResult,
    #[serde(flatten)]
    not_taken: Option<NotTaken>,
}

/// What of a MISP event was not taken, as the STIX route tells it.
#[derive(Serialize)]
struct NotTaken {
    skipped: u64,
    skipped_by_type: Skipped,
}

impl NotTaken {
    fn of(skipped_by_type: Skipped) -> Self {
        Self {
            skipped: skipped_by_type.values().map(|of_type| of_type.count).sum(),
            skipped_by_type,
        }
    }
}

#[derive(Deserialize)]
struct OsintBody {
    collector: String,
    items: Vec<ItemBody>,
    default_tlp: Option<Tlp>,
    default_confidence: Option<Confidence>,
}

#[derive(Deserialize)]
struct ItemBody {
    title: String,
    description: Option<String>,
    url: Option<String>,
    #[serde(rename = "type")]
    node_type: Option<NodeType>,
    tlp: Option<Tlp>,
    confidence: Option<Confidence>,
    #[serde(default)]
    tags: Vec<String>,
    published: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct MispBody {
    event: Value,
    default_tlp: Option<Tlp>,
    default_confidence: Option<Confidence>,
}

#[derive(Deserialize)]
struct AnalystBody {
    nodes: Vec<NodeBody>,
    default_tlp: Option<Tlp>,
    default_confidence: Option<Confidence>,
}

#[derive(Deserialize)]
struct NodeBody {
    name: String,
    node_type: NodeType,
    description: Option<String>,
    tlp: Option<Tlp>,
    confidence: Option<Confidence>,
    #[serde(default)]
    properties: Map<String, Value>,
}

#[derive(Deserialize)]
struct ReportBody {
    title: String,
    source_name: Option<String>,
    content_blocks: Vec<BlockBody>,
    default_tlp: Option<Tlp>,
    default_confidence: Option<Confidence>,
}

#[derive(Deserialize)]
struct BlockBody {
    entity_name: String,
    node_type: NodeType,
    description: Option<String>,
    tlp: Option<Tlp>,
    source_url: Option<String>,
    excerpt: Option<String>,
    confidence: Option<Confidence>,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/ingest/osint").route(web::post().to(osint)));
    cfg.service(resource("/api/ingest/misp").route(web::post().to(misp)));
    cfg.service(resource("/api/ingest/analyst").route(web::post().to(analyst)));
    cfg.service(resource("/api/ingest/report").route(web::post().to(report)));
}

/// Takes the items of an OSINT collector.
async fn osint(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (OsintBody, _) = body_of(&caller.by, &state, payload).await?;
    let size = load.bytes();
    bounds::shared("collector", &body.collector)?;
    entries("items", body.items.len())?;
    // As the source of node and evidence, in the properties and in the original.
    bounds::repeated("items", 4 * body.items.len() * body.collector.len(), size)?;
    let mut list = Vec::with_capacity(body.items.len());
    for (i, item) in body.items.into_iter().enumerate() {
        name(&format!("items[{i}].title"), &item.title)?;
        text(&format!("items[{i}].description"), item.description.as_deref())?;
        text(&format!("items[{i}].url"), item.url.as_deref())?;
        bounds::tags(&format!("items[{i}].tags"), &item.tags)?;
        list.push(OsintItem {
            title: item.title.trim().into(),
            description: item.description.unwrap_or_default(),
            url: item
                .url
                .map(|url| url.trim().to_owned())
                .filter(|url| !url.is_empty()),
            node_type: item.node_type,
            tlp: item.tlp,
            confidence: item.confidence.map(Confidence::value),
            tags: item.tags,
            published: item.published,
        });
    }
    let ws = Some(caller.by.workspace.id);
    let defaults = defaults(body.default_tlp, Tlp::Amber, body.default_confidence, 0.5);
    let collector = body.collector;
    let drafts = heavy(ws, move || {
        let drafts = items::of_osint(&collector, &list, defaults);
        bounds::weight("items", &drafts, size).map(|()| (drafts, load))
    })
    .await?;
    ingest(&state, caller.by, drafts, "ingest.osint", None).await
}

/// Takes a MISP event export.
async fn misp(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (MispBody, _) = body_of(&caller.by, &state, payload).await?;
    let size = load.bytes();
    let MispBody {
        event,
        default_tlp,
        default_confidence,
    } = body;
    let ItemDefaults { tlp, confidence } = defaults(default_tlp, Tlp::Amber, default_confidence, 0.6);
    let ws = Some(caller.by.workspace.id);
    let (plan, load) = heavy(ws, move || {
        let named = |(field, rule): (String, String)| DomainError::invalid(field, rule);
        let event = misp::unwrap_event(event).map_err(named)?;
        let repeated = misp::repeated(&event).map_err(named)?;
        bounds::repeated("event.Attribute", repeated, size)?;
        let plan = misp::plan(&event, MispDefaults { tlp, confidence }).map_err(named)?;
        bounds::weight("event.Attribute", &plan.drafts, size).map(|()| (plan, load))
    })
    .await?;
    ingest(
        &state,
        caller.by,
        (plan.drafts, load),
        "ingest.misp",
        Some(NotTaken::of(plan.skipped)),
    )
    .await
}

/// Takes nodes that an analyst enters.
async fn analyst(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (AnalystBody, _) = body_of(&caller.by, &state, payload).await?;
    let size = load.bytes();
    entries("nodes", body.nodes.len())?;
    let mut list = Vec::with_capacity(body.nodes.len());
    for (i, node) in body.nodes.into_iter().enumerate() {
        name(&format!("nodes[{i}].name"), &node.name)?;
        text(&format!("nodes[{i}].description"), node.description.as_deref())?;
        bounds::properties(&format!("nodes[{i}].properties"), &node.properties)?;
        list.push(AnalystNode {
            name: node.name.trim().into(),
            node_type: node.node_type,
            description: node.description.unwrap_or_default(),
            tlp: node.tlp,
            confidence: node.confidence.map(Confidence::value),
            properties: node.properties,
        });
    }
    let ws = Some(caller.by.workspace.id);
    let defaults = defaults(body.default_tlp, Tlp::Green, body.default_confidence, 0.8);
    let by = caller.by.email().to_owned();
    let drafts = heavy(ws, move || {
        let drafts = items::of_analyst(&by, &list, defaults);
        bounds::weight("nodes", &drafts, size).map(|()| (drafts, load))
    })
    .await?;
    ingest(&state, caller.by, drafts, "ingest.analyst", None).await
}

/// Takes a structured report.
async fn report(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (mut body, load): (ReportBody, _) = body_of(&caller.by, &state, payload).await?;
    let size = load.bytes();
    bounds::shared("title", &body.title)?;
    // A blank source is none.
    body.source_name = body.source_name.filter(|source| !source.trim().is_empty());
    if let Some(source) = &body.source_name {
        bounds::shared("source_name", source)?;
    }
    entries("content_blocks", body.content_blocks.len())?;
    let shown = body.title.len() + body.source_name.as_ref().unwrap_or(&body.title).len();
    bounds::repeated("content_blocks", shown * body.content_blocks.len(), size)?;
    let mut blocks = Vec::with_capacity(body.content_blocks.len());
    for (i, block) in body.content_blocks.into_iter().enumerate() {
        name(&format!("content_blocks[{i}].entity_name"), &block.entity_name)?;
        for (key, value) in [
            ("description", &block.description),
            ("source_url", &block.source_url),
            ("excerpt", &block.excerpt),
        ] {
            text(&format!("content_blocks[{i}].{key}"), value.as_deref())?;
        }
        blocks.push(ReportBlock {
            entity_name: block.entity_name.trim().into(),
            node_type: block.node_type,
            description: block.description.unwrap_or_default(),
            tlp: block.tlp,
            source_url: block.source_url,
            excerpt: block.excerpt,
            confidence: block.confidence.map(Confidence::value),
        });
    }
    let ws = Some(caller.by.workspace.id);
    let defaults = defaults(body.default_tlp, Tlp::Green, body.default_confidence, 0.6);
    let report = Report {
        title: body.title.trim().into(),
        source_name: body.source_name,
        blocks,
    };
    let drafts = heavy(ws, move || {
        let drafts = items::of_report(&report, defaults);
        bounds::weight("content_blocks", &drafts, size).map(|()| (drafts, load))
    })
    .await?;
    ingest(&state, caller.by, drafts, "ingest.report", None).await
}

async fn ingest(
    state: &AppState,
    by: Principal,
    (drafts, load): (Drafts, Load),
    action: &'static str,
    not_taken: Option<NotTaken>,
) -> Result<HttpResponse, HostedError> {
    let message = IngestDrafts {
        by,
        drafts,
        redistribution: "allowed".into(),
        action,
    };
    let done = state.graph.call_with(message, load).await?;
    let results = Results {
        result: done.result,
        not_taken,
    };
    Ok(HttpResponse::Created().json(IngestAnswer {
        success: true,
        results,
    }))
}

fn defaults(tlp: Option<Tlp>, usual: Tlp, confidence: Option<Confidence>, otherwise: f64) -> ItemDefaults {
    ItemDefaults {
        tlp: tlp.unwrap_or(usual),
        confidence: confidence.map_or(otherwise, Confidence::value),
    }
}
