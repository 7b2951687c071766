//! Ways in other than STIX and text: OSINT items, MISP events, analyst entries, reports.

use actix_web::{HttpResponse, web};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use super::{body_of, resource};
use crate::actors::graph_store::IngestDrafts;
use crate::capacity::{Load, heavy};
use crate::domain::confidence::Confidence;
use crate::domain::draft::Drafts;
use crate::domain::error::DomainError;
use crate::domain::items::{self, AnalystNode, ItemDefaults, OsintItem, Report, ReportBlock};
use crate::domain::misp::{self, MispDefaults};
use crate::domain::node::NodeType;
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;
use crate::http::AppState;
use crate::http::error::HostedError;
use crate::http::guard::{Guarded, RecallWrite};
use crate::store::IngestResult;

/// Most entries in one request.
const MAX_ENTRIES: usize = 10_000;
/// Longest text of one field, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Longest name of a node, in bytes.
const MAX_NAME: usize = 2000;
/// Most attributes, and most objects, of one MISP event.
const MAX_ATTRIBUTES: usize = 100_000;
/// Most tags, and most galaxies, of a MISP event or attribute.
const MAX_TAGS: usize = 256;
/// Longest properties of one node, in bytes of JSON.
const MAX_PROPERTIES: usize = 64 * 1024;

#[derive(Serialize)]
struct IngestAnswer {
    success: bool,
    results: Results,
}

#[derive(Serialize)]
struct Results {
    #[serde(flatten)]
    result: IngestResult,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skipped: BTreeMap<String, u64>,
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
    name("collector", &body.collector)?;
    entries("items", body.items.len())?;
    let mut list = Vec::with_capacity(body.items.len());
    for (i, item) in body.items.into_iter().enumerate() {
        name(&format!("items[{i}].title"), &item.title)?;
        text(&format!("items[{i}].description"), item.description.as_deref())?;
        text(&format!("items[{i}].url"), item.url.as_deref())?;
        for (j, tag) in item.tags.iter().enumerate() {
            name(&format!("items[{i}].tags[{j}]"), tag)?;
        }
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
        Ok((items::of_osint(&collector, &list, defaults), load))
    })
    .await?;
    ingest(&state, caller.by, drafts, "ingest.osint", BTreeMap::new()).await
}

/// Takes a MISP event export.
async fn misp(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (MispBody, _) = body_of(&caller.by, &state, payload).await?;
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
        bounded_event(&event)?;
        let plan = misp::plan(&event, MispDefaults { tlp, confidence }).map_err(named)?;
        Ok((plan, load))
    })
    .await?;
    ingest(
        &state,
        caller.by,
        (plan.drafts, load),
        "ingest.misp",
        plan.skipped,
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
    entries("nodes", body.nodes.len())?;
    let mut list = Vec::with_capacity(body.nodes.len());
    for (i, node) in body.nodes.into_iter().enumerate() {
        name(&format!("nodes[{i}].name"), &node.name)?;
        text(&format!("nodes[{i}].description"), node.description.as_deref())?;
        bounded_properties(&format!("nodes[{i}].properties"), &node.properties)?;
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
    let drafts = heavy(ws, move || Ok((items::of_analyst(&by, &list, defaults), load))).await?;
    ingest(&state, caller.by, drafts, "ingest.analyst", BTreeMap::new()).await
}

/// Takes a structured report.
async fn report(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    payload: web::Payload,
) -> Result<HttpResponse, HostedError> {
    let (body, load): (ReportBody, _) = body_of(&caller.by, &state, payload).await?;
    name("title", &body.title)?;
    text("source_name", body.source_name.as_deref())?;
    entries("content_blocks", body.content_blocks.len())?;
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
    let drafts = heavy(ws, move || Ok((items::of_report(&report, defaults), load))).await?;
    ingest(&state, caller.by, drafts, "ingest.report", BTreeMap::new()).await
}

/// An event that no real one comes near costs more than its size: every attribute shows the event's tags.
fn bounded_event(event: &Map<String, Value>) -> Result<(), DomainError> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
    let objects = event
        .get("Object")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let inner: usize = objects.clone().map(|object| list(object.get("Attribute"))).sum();
    let attributes = list(event.get("Attribute")) + inner;
    if attributes > MAX_ATTRIBUTES || objects.count() > MAX_ATTRIBUTES {
        return Err(DomainError::invalid(
            "event.Attribute",
            format!("must hold at most {MAX_ATTRIBUTES} entries"),
        ));
    }
    let of_attributes = event
        .get("Attribute")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let tagged = of_attributes
        .map(|attribute| list(attribute.get("Tag")))
        .max()
        .unwrap_or(0);
    for (field, count) in [
        ("event.Tag", list(event.get("Tag"))),
        ("event.Galaxy", list(event.get("Galaxy"))),
        ("event.Attribute.Tag", tagged),
    ] {
        if count > MAX_TAGS {
            return Err(DomainError::invalid(
                field,
                format!("must hold at most {MAX_TAGS} entries"),
            ));
        }
    }
    Ok(())
}

/// Free-form properties are kept with the node and read with it, so they are bounded.
fn bounded_properties(field: &str, properties: &Map<String, Value>) -> Result<(), DomainError> {
    let bytes = serde_json::to_vec(properties).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_PROPERTIES {
        return Err(DomainError::invalid(
            field,
            format!("must have at most {MAX_PROPERTIES} bytes as JSON"),
        ));
    }
    Ok(())
}

async fn ingest(
    state: &AppState,
    by: Principal,
    (drafts, load): (Drafts, Load),
    action: &'static str,
    skipped: BTreeMap<String, u64>,
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
        skipped,
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

fn entries(field: &str, count: usize) -> Result<(), DomainError> {
    if (1..=MAX_ENTRIES).contains(&count) {
        return Ok(());
    }
    Err(DomainError::invalid(
        field,
        format!("must hold from 1 to {MAX_ENTRIES} entries"),
    ))
}

fn name(field: &str, value: &str) -> Result<(), DomainError> {
    if value.trim().is_empty() || value.len() > MAX_NAME {
        return Err(DomainError::invalid(
            field,
            format!("must have from 1 to {MAX_NAME} bytes"),
        ));
    }
    text(field, Some(value))
}

fn text(field: &str, value: Option<&str>) -> Result<(), DomainError> {
    match value {
        Some(value) if value.contains('\0') => {
            Err(DomainError::invalid(field, "must not hold a NUL character"))
        }
        Some(value) if value.len() > MAX_TEXT => Err(DomainError::invalid(
            field,
            format!("must have at most {MAX_TEXT} bytes"),
        )),
        _ => Ok(()),
    }
}
