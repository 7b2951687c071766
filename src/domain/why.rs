//! Why a result was found, told to a caller who asks for it.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::node::{KgNode, wire_enum};

/// Why a result was found. It names nothing that the caller may not see.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Why {
    pub shares: Shares,
    /// The name or identifier in the question that is the result's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
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

impl Shares {
    /// The words alone decided.
    pub const WORDS: Shares = Shares {
        words: 1.0,
        ..Shares::NONE
    };
    /// The meaning alone decided.
    pub const MEANING: Shares = Shares {
        meaning: 1.0,
        ..Shares::NONE
    };
    /// The graph alone decided.
    pub const GRAPH: Shares = Shares {
        graph: 1.0,
        ..Shares::NONE
    };
    const NONE: Shares = Shares {
        words: 0.0,
        meaning: 0.0,
        graph: 0.0,
        evidence: 0.0,
    };

    /// The shares of parts that were added up. What is negative counts as nothing; without any part there are no shares.
    pub fn of(words: f32, meaning: f32, evidence: f32) -> Shares {
        let [words, meaning, evidence] = [words, meaning, evidence].map(|part| part.max(0.0));
        let sum = words + meaning + evidence;
        if !sum.is_finite() || sum <= f32::EPSILON {
            return Shares::NONE;
        }
        Shares {
            words: words / sum,
            meaning: meaning / sum,
            evidence: evidence / sum,
            graph: 0.0,
        }
    }

    /// These, or others if nothing could be said.
    #[must_use]
    pub fn or(self, others: impl FnOnce() -> Shares) -> Shares {
        if self == Shares::NONE { others() } else { self }
    }
}

wire_enum! {
    /// What of a result the question names.
    NamedBy, "name, alias, identifier" {
        Name = "name",
        Alias = "alias",
        Identifier = "identifier",
    }
}

wire_enum! {
    /// What made a result one, the strongest if there are several: a value or identifier of it, its name, another name of
    /// it, words of its text, their meaning, or its relationships.
    MatchedBy, "value, name, alias, words, meaning, graph" {
        Value = "value",
        Name = "name",
        Alias = "alias",
        Words = "words",
        Meaning = "meaning",
        Graph = "graph",
    }
}

impl From<NamedBy> for MatchedBy {
    fn from(named: NamedBy) -> Self {
        match named {
            NamedBy::Name => MatchedBy::Name,
            NamedBy::Alias => MatchedBy::Alias,
            NamedBy::Identifier => MatchedBy::Value,
        }
    }
}

/// A name or identifier in the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Match {
    pub kind: NamedBy,
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
    #[schema(nullable = false, example = "uses")]
    pub relationship: Option<String>,
    /// Whether the relationship leads from the step before to this one, rather than back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outgoing: Option<bool>,
}

impl PathStep {
    /// The first step of a path.
    pub fn start(node: &KgNode) -> Self {
        PathStep {
            id: node.id,
            name: node.name.clone(),
            relationship: None,
            outgoing: None,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_one_and_what_is_negative_counts_as_nothing() {
        let shares = Shares::of(3.0, -2.0, 1.0);
        assert_eq!(
            (shares.words, shares.meaning, shares.graph, shares.evidence),
            (0.75, 0.0, 0.0, 0.25)
        );
        for parts in [[0.0, -1.0, 0.0], [f32::NAN, 0.0, 0.0], [f32::INFINITY, 1.0, 0.0]] {
            let [words, meaning, evidence] = parts;
            assert_eq!(Shares::of(words, meaning, evidence), Shares::default());
        }
        assert_eq!(Shares::default().or(|| Shares::MEANING), Shares::MEANING);
        assert_eq!(Shares::WORDS.or(|| Shares::MEANING), Shares::WORDS);
    }
}
