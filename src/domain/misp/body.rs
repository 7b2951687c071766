//! The request body of a MISP ingest.

use serde::Deserialize;
use serde_json::Value;

use super::{FieldError, unwrap_event};
use crate::domain::confidence::Confidence;
use crate::domain::draft::ItemDefaults;
use crate::domain::error::DomainError;
use crate::domain::items::{IngestBody, Plan, bounds};
use crate::domain::tlp::Tlp;

/// An event export, with or without wrappers.
#[derive(Debug, Deserialize)]
pub struct MispExport {
    event: Value,
    default_tlp: Option<Tlp>,
    default_confidence: Option<Confidence>,
}

impl IngestBody for MispExport {
    const ACTION: &'static str = "ingest.misp";
    const ENTRIES: &'static str = "event.Attribute";

    fn plan(self, _: &str, size: usize) -> Result<Plan, DomainError> {
        let named = |(field, rule): FieldError| DomainError::invalid(field, rule);
        let event = unwrap_event(self.event).map_err(named)?;
        let repeated = super::repeated(&event).map_err(named)?;
        bounds::repeated(Self::ENTRIES, repeated, size)?;
        let defaults = ItemDefaults::or(self.default_tlp, Tlp::Amber, self.default_confidence, 0.6);
        let plan = super::plan(&event, defaults).map_err(named)?;
        Ok(Plan {
            drafts: plan.drafts,
            skipped: Some(plan.skipped),
        })
    }
}
