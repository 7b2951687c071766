//! The request body of a MISP ingest.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{FieldError, unwrap_event};
use crate::domain::confidence::Confidence;
use crate::domain::draft::ItemDefaults;
use crate::domain::error::DomainError;
use crate::domain::items::{IngestBody, ItemPlan, bounds};
use crate::domain::schema::{self, text_schema};
use crate::domain::tlp::{Tlp, TlpInput};

/// An event export, with or without wrappers.
#[derive(Debug, Deserialize, ToSchema)]
pub struct MispExport {
    #[schema(value_type = EventForm)]
    event: Value,
    /// Marking where distribution and tags state none; TLP:AMBER if absent.
    #[schema(value_type = Option<TlpInput>)]
    default_tlp: Option<Tlp>,
    /// 0.6 if absent.
    default_confidence: Option<Confidence>,
}

text_schema! {
    /// UUID of the event.
    EventUuid, (1, 500), schema::SOMETHING, "5f1c0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b"
}

/// An event as MISP exports it (draft-dulaunoy-misp-core-format). Only what is refused if it is wrong is listed; what
/// is unreadable elsewhere is skipped and counted.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(
    dead_code,
    reason = "stands for the schema of an event, which is read leniently"
)]
#[serde(rename_all = "PascalCase")]
struct MispEvent {
    #[serde(rename = "uuid")]
    #[schema(value_type = EventUuid)]
    uuid: String,
    #[schema(
        max_items = 100000,
        example = json!([{
            "uuid": "6a1d2b3c-4e5f-4061-8728-394a5b6c7d8e", "type": "domain", "category": "Network activity",
            "value": "login.example.net", "to_ids": true, "comment": "", "distribution": "5"
        }])
    )]
    attribute: Vec<Value>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
#[serde(rename_all = "PascalCase")]
struct WrappedMispEvent {
    event: MispEvent,
}

/// An event, bare or as `{Event}`. A list of one is taken too.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
#[serde(untagged)]
#[schema(as = MispEventForm)]
enum EventForm {
    Bare(MispEvent),
    Wrapped(WrappedMispEvent),
}

impl IngestBody for MispExport {
    const ACTION: &'static str = "ingest.misp";
    const ENTRIES: &'static str = "event.Attribute";

    fn plan(self, _: &str, size: usize) -> Result<ItemPlan, DomainError> {
        let named = |(field, rule): FieldError| DomainError::invalid(field, rule);
        let event = unwrap_event(self.event).map_err(named)?;
        let repeated = super::repeated_bytes(&event).map_err(named)?;
        bounds::check_repetition(Self::ENTRIES, repeated, size)?;
        let defaults = ItemDefaults::or(self.default_tlp, Tlp::Amber, self.default_confidence, 0.6);
        let plan = super::plan(&event, defaults).map_err(named)?;
        Ok(ItemPlan {
            drafts: plan.drafts,
            skipped: Some(plan.skipped),
        })
    }
}
