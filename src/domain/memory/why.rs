//! Why a note was found, told to a caller who asks for it, in the shape that the hosted service has for nodes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::question::{AskedTime, QuestionPlan};
use crate::domain::why::{Evidence, Match, Shares};

/// Why a note was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct NoteWhy {
    pub shares: Shares,
    /// What the question names and the note mentions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<Match>,
    /// From what the question names to what the note is about; empty if no relationship led to the note.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<EntityStep>,
    /// The sentences of the note that state the relationship asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Evidence>,
}

/// An entity on the way to a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EntityStep {
    /// Id of the entity in the graph.
    #[schema(example = "actor:apt28")]
    pub id: String,
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

/// What a question was understood to ask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InterpretedQuestion {
    /// What it names and the memory knows.
    pub names: Vec<NamedEntity>,
    /// What it asks for; `None` if it doesn't ask for related things or the graph has no answer.
    pub plan: Option<QuestionPlan>,
    /// A word by which it denies or excepts something that was not understood.
    pub denial: Option<String>,
    /// The time by which notes lead although it asks for nothing related.
    pub time: AskedTime,
}

/// An entity that a question names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NamedEntity {
    /// As the question has it.
    #[schema(example = "Fancy Bear")]
    pub text: String,
    /// Id of the entity in the graph.
    #[schema(example = "actor:apt28")]
    pub id: String,
    #[schema(example = "APT28")]
    pub name: String,
}
