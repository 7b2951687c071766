//! Corrections by hand: of a node, a relationship, an evidence record.

use actix_web::http::header::{ETAG, IF_MATCH};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Guarded, RecallWrite};
use super::id_of;
use crate::actors::graph_store::{
    CorrectEdge, CorrectEvidence, CorrectNode, EvidenceStatus, ExpectedTags, RelationshipStatus,
    settable_status,
};
use crate::domain::confidence::Confidence;
use crate::domain::error::DomainError;
use crate::domain::graph::correction::{CorrectedField, FieldCorrection, NodeChanges};
use crate::domain::items::bounds::{self, LongText, NodeName};
use crate::domain::node::{KgNode, NodeStatus};
use crate::domain::or_default;
use crate::domain::tlp::{Tlp, TlpInput};
use crate::http::AppState;
use crate::http::body::{self, Body};

/// The fields of the correction of a node.
const FIELDS: [&str; 8] = [
    "name",
    "description",
    "aliases",
    "confidence",
    "tlp",
    "status",
    "clear",
    "reason",
];
/// Largest body of a correction, in bytes: a description of the longest kind, escaped.
const LIMIT: usize = 4 << 20;
/// Most aliases that one correction adds or removes.
const MAX_ALIASES: usize = 200;
/// Longest reason, in characters.
const MAX_REASON: usize = 2000;

/// What is to be set of a node; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NodeCorrectionBody)]
struct NodeBody {
    #[schema(value_type = Option<NodeName>)]
    name: Option<String>,
    #[schema(value_type = Option<LongText>)]
    description: Option<String>,
    aliases: Option<AliasBody>,
    confidence: Option<Confidence>,
    /// Only an administrator may set a weaker one than the node has, and gives the reason.
    #[schema(value_type = Option<TlpInput>)]
    tlp: Option<Tlp>,
    /// active or rejected.
    status: Option<NodeStatus>,
    /// Fields that were set by hand and of which the sources have the word again.
    #[serde(default, deserialize_with = "or_default")]
    #[schema(value_type = Option<Vec<CorrectedField>>, max_items = 6)]
    clear: Vec<CorrectedField>,
    #[schema(max_length = 2000, example = "The vendor has withdrawn the report.")]
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = AliasCorrection)]
#[serde(default)]
struct AliasBody {
    #[serde(deserialize_with = "or_default")]
    #[schema(value_type = Option<Vec<NodeName>>, max_items = 200)]
    add: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    #[schema(value_type = Option<Vec<NodeName>>, max_items = 200)]
    remove: Vec<String>,
}

/// The status that is to be set.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = StatusCorrectionBody)]
struct StatusBody {
    /// active or rejected.
    status: NodeStatus,
    #[schema(max_length = 2000, example = "The report mistook one tool for another.")]
    reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct CorrectedNodeAnswer {
    node: KgNode,
    /// What is set by hand now.
    corrections: Vec<FieldCorrection>,
}

#[derive(Serialize, ToSchema)]
struct RelationshipAnswer {
    relationship: RelationshipStatus,
}

#[derive(Serialize, ToSchema)]
struct EvidenceAnswer {
    evidence: EvidenceStatus,
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(correct_node, correct_edge, correct_evidence))]
pub(super) struct Docs;

impl NodeBody {
    fn into_changes(self) -> Result<(NodeChanges, Option<String>), DomainError> {
        if let Some(name) = &self.name {
            bounds::name("name", name)?;
        }
        if let Some(description) = &self.description {
            bounds::text("description", description.as_str())?;
        }
        let aliases = self.aliases.unwrap_or_default();
        check_aliases("aliases.add", &aliases.add)?;
        check_aliases("aliases.remove", &aliases.remove)?;
        if let Some(both) = aliases.add.iter().find(|alias| aliases.remove.contains(alias)) {
            let rule = format!("must not hold what aliases.remove holds, too: {both:?}");
            return Err(DomainError::invalid("aliases.add", rule));
        }
        let changes = NodeChanges {
            name: self.name.map(|name| name.trim().to_owned()),
            description: self.description,
            add_aliases: aliases.add,
            remove_aliases: aliases.remove,
            confidence: self.confidence.map(Confidence::value),
            tlp: self.tlp,
            status: self.status.map(settable_status).transpose()?,
            clear: self.clear,
        };
        if changes.is_empty() {
            let rule =
                "must set or clear at least one of name, description, aliases, confidence, tlp, status";
            return Err(DomainError::invalid("body", rule));
        }
        let set = changes.fields();
        if let Some(both) = changes.clear.iter().find(|field| set.contains(field)) {
            let rule = format!("must not hold {both}, which is set, too");
            return Err(DomainError::invalid("clear", rule));
        }
        Ok((changes, reason_of(self.reason)?))
    }
}

fn check_aliases(field: &str, aliases: &[String]) -> Result<(), DomainError> {
    if aliases.len() > MAX_ALIASES {
        let rule = format!("must hold at most {MAX_ALIASES} names");
        return Err(DomainError::invalid(field, rule));
    }
    let mut aliases = aliases.iter().enumerate();
    aliases.try_for_each(|(at, alias)| bounds::name(&format!("{field}[{at}]"), alias))
}

/// A reason, without the blanks around it; an empty one is none.
fn reason_of(reason: Option<String>) -> Result<Option<String>, DomainError> {
    let reason = reason.map(|reason| reason.trim().to_owned());
    let reason = reason.filter(|reason| !reason.is_empty());
    let is_long = |reason: &String| reason.chars().nth(MAX_REASON).is_some();
    if reason.as_ref().is_some_and(is_long) {
        let rule = format!("must have at most {MAX_REASON} characters");
        return Err(DomainError::invalid("reason", rule));
    }
    if reason.as_ref().is_some_and(|reason| reason.contains('\0')) {
        return Err(DomainError::invalid("reason", "must not hold a NUL character"));
    }
    Ok(reason)
}

/// The entity tags of the header `If-Match` (RFC 9110 section 13.1.1). Weak ones never match.
fn expected_tags(request: &HttpRequest) -> Result<ExpectedTags, DomainError> {
    let mut tags = Vec::new();
    for value in request.headers().get_all(IF_MATCH) {
        let rule = "must be * or entity tags as a node's ETag has them";
        let text = value
            .to_str()
            .map_err(|_| DomainError::invalid("If-Match", rule))?;
        for tag in text.split(',').map(str::trim) {
            let bare = tag.strip_prefix("W/").unwrap_or(tag);
            match tag {
                "*" => return Ok(ExpectedTags(None)),
                _ if bare.len() >= 2 && bare.starts_with('"') && bare.ends_with('"') => {
                    tags.push(tag.to_owned());
                }
                _ => return Err(DomainError::invalid("If-Match", rule)),
            }
        }
    }
    Ok(ExpectedTags((!tags.is_empty()).then_some(tags)))
}

/// Sets fields of a node by hand. What is set stands over what sources state, now and later, until it is cleared.
#[utoipa::path(
    patch, path = "/api/nodes/{id}", tag = "Corrections", request_body = NodeBody,
    params(
        ("id" = Uuid, Path, description = "Id of the node."),
        (
            "If-Match" = Option<String>,
            Header,
            description = "The ETag with which the node was read; one that has changed since is not corrected.",
        ),
    ),
    responses(
        (status = 200, description = "The node as it is now.", body = CorrectedNodeAnswer),
        (status = 412, description = "Somebody else has changed the node."),
    )
)]
pub(super) async fn correct_node(
    caller: Guarded<RecallWrite>,
    request: HttpRequest,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let node = id_of(&id, "node")?;
    let expected = expected_tags(&request)?;
    let body: NodeBody = body::json_of_optional(payload, LIMIT, &FIELDS).await?;
    let (changes, reason) = body.into_changes()?;
    let message = CorrectNode {
        by: caller.by,
        node,
        changes,
        reason,
        expected,
    };
    let done = state.graph.call(message).await?;
    Ok(HttpResponse::Ok()
        .insert_header((ETAG, done.entity_tag))
        .json(CorrectedNodeAnswer {
            node: done.node,
            corrections: done.corrections,
        }))
}

/// Rejects a relationship, or restores it. A rejected one is shown nowhere, and no source brings it back.
#[utoipa::path(
    patch, path = "/api/edges/{id}", tag = "Corrections", request_body = StatusBody,
    params(("id" = Uuid, Path, description = "Id of the relationship.")),
    responses((status = 200, description = "The relationship.", body = RelationshipAnswer))
)]
pub(super) async fn correct_edge(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let edge = id_of(&id, "relationship")?;
    let body: StatusBody = body::json(payload, LIMIT).await?;
    let message = CorrectEdge {
        by: caller.by,
        edge,
        active: settable_status(body.status)? == NodeStatus::Active,
        reason: reason_of(body.reason)?,
    };
    let relationship = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(RelationshipAnswer { relationship }))
}

/// Rejects an evidence record, or restores it, together with the relationships that it alone states. The original of a node
/// is not rejected alone.
#[utoipa::path(
    patch, path = "/api/evidence/{id}", tag = "Corrections", request_body = StatusBody,
    params(("id" = Uuid, Path, description = "Id of the record.")),
    responses(
        (status = 200, description = "The record's status, and what changed with it.", body = EvidenceAnswer),
        (status = 409, description = "The record is the original of a node."),
    )
)]
pub(super) async fn correct_evidence(
    caller: Guarded<RecallWrite>,
    state: web::Data<AppState>,
    id: web::Path<String>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let evidence = id_of(&id, "evidence record")?;
    let body: StatusBody = body::json(payload, LIMIT).await?;
    let message = CorrectEvidence {
        by: caller.by,
        evidence,
        active: settable_status(body.status)? == NodeStatus::Active,
        reason: reason_of(body.reason)?,
    };
    let evidence = state.graph.call(message).await?;
    Ok(HttpResponse::Ok().json(EvidenceAnswer { evidence }))
}
