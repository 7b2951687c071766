//! Why a result was found, told to a caller who asks for it.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::node::wire_enum;

/// Why a result was found. It names nothing that the caller may not see.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Why {
    pub shares: Shares,
    /// The name or identifier in the question that is the result's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<Match>,
    /// From what the question names to the result; empty if no relationship led to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathStep>,
    /// Texts that speak for the result, strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Evidence>,
}

/// What the score is made of. Each share is 0 to 1, and together they are 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
pub struct Shares {
    /// Words, names and identifiers.
    #[schema(example = 0.5)]
    pub words: f32,
    /// Likeness of meaning.
    #[schema(example = 0.3)]
    pub meaning: f32,
    /// Relationships to what the question names.
    #[schema(example = 0.0)]
    pub graph: f32,
    /// Texts about the result.
    #[schema(example = 0.2)]
    pub evidence: f32,
}

wire_enum! {
    /// What of a result the question names.
    MatchKind, "name, alias, identifier" {
        Name = "name",
        Alias = "alias",
        Identifier = "identifier",
    }
}

/// A name or identifier in the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Match {
    pub kind: MatchKind,
    /// As the question has it.
    #[schema(example = "Fancy Bear")]
    pub text: String,
}

/// A node on the way to a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PathStep {
    pub id: Uuid,
    #[schema(example = "APT28")]
    pub name: String,
    /// The relationship between the step before and this one; absent in the first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "uses")]
    pub relationship: Option<String>,
    /// Whether the relationship leads from the step before to this one, rather than back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outgoing: Option<bool>,
}

/// A text about a result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Evidence {
    /// Id of the passage; that of the relationship if the text is a relationship's.
    pub id: Uuid,
    #[schema(example = "APT28 has used spearphishing emails with a link to a fake login page.")]
    pub text: String,
    /// Its part of the share of evidence, 0 to 1.
    #[schema(example = 0.2)]
    pub share: f32,
}
