//! Bodies whose rules their types do not show, for the API description.

use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::DecisionBody;
use crate::domain::schema::at_least_one;
use crate::domain::stix::bundle::StixInput;
use crate::domain::tlp::{Tlp, TlpInput};

/// A request for a batch: a pull of a feed, or an uploaded bundle.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema: objects are not parsed at once")]
#[schema(as = NewBatch)]
#[serde(untagged)]
pub enum BatchSchema {
    Pull(Pull),
    Upload(Upload),
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
pub struct Pull {
    #[schema(pattern = "^taxii_2_1_pull$", example = "taxii_2_1_pull")]
    input_kind: String,
    feed_source_id: Uuid,
}

#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "stands for a schema")]
pub struct Upload {
    #[schema(pattern = "^stix_bundle$", example = "stix_bundle")]
    input_kind: String,
    /// A feed whose default marking and redistribution state apply.
    feed_source_id: Option<Uuid>,
    #[schema(value_type = Option<TlpInput>)]
    default_tlp: Option<Tlp>,
    bundle: StixInput,
}

at_least_one! {
    /// A decision on an item: a status, a marking, or both.
    ItemDecisionBody, DecisionBody
}
