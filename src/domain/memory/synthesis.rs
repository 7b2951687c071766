//! The formats of an answer made from notes.
//!
//! Every format has the three fields of a direct answer; the extended formats add lists when they have entries. Each
//! list entry names the note that supports it. The answers themselves are generated in [`crate::llm`].

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::node::wire_enum;

/// Characters of the question repeated in a "nothing found" answer.
const SHOWN_OF_QUESTION: usize = 50;

wire_enum! {
    /// Format of an answer.
    SynthesisFormat, "direct_answer, synthesized_brief, timeline_analysis, relationship_map" {
        DirectAnswer = "direct_answer",
        SynthesizedBrief = "synthesized_brief",
        TimelineAnalysis = "timeline_analysis",
        RelationshipMap = "relationship_map",
    }
}

/// An answer made from notes.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Answer {
    pub answer: String,
    /// 0 to 1; 0 when there is no answer.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// Each source supports the answer with words quoted from the note.
    pub sources: Vec<Citation>,
    /// Only in a brief.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub key_points: Vec<KeyPoint>,
    /// Only in a timeline, oldest first where dates are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub timeline: Vec<Event>,
    /// Only in a relationship map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub relationships: Vec<Relationship>,
}

/// A cited note and the relevant words of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Citation {
    pub note_id: String,
    pub quote: String,
}

/// One point of a brief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeyPoint {
    pub point: String,
    pub note_id: String,
}

/// One event of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Event {
    /// As written in the note, or the day on which the note was created.
    pub date: String,
    pub event: String,
    pub note_id: String,
}

/// A relationship stated by a note that contains both ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Relationship {
    pub source: String,
    pub relationship: String,
    pub target: String,
    pub note_id: String,
}

impl Answer {
    /// Whether this is an answer.
    pub fn is_found(&self) -> bool {
        !self.sources.is_empty()
    }
}

/// The answer if no note answers the question, or no language model is available.
pub fn no_answer(question: &str) -> Answer {
    let shown: String = question.chars().take(SHOWN_OF_QUESTION).collect();
    Answer {
        answer: format!("No specific answer found for: {shown}..."),
        confidence: 0.0,
        sources: Vec::new(),
        key_points: Vec::new(),
        timeline: Vec::new(),
        relationships: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_answer_is_well_formed() {
        let none = no_answer("What does APT28 use?");
        assert!(!none.is_found());
        assert_eq!(
            serde_json::to_value(&none).unwrap(),
            json!({"answer": "No specific answer found for: What does APT28 use?...", "confidence": 0.0, "sources": []})
        );
        let long = no_answer(&"é".repeat(1000)).answer;
        assert_eq!(long.chars().filter(|c| *c == 'é').count(), SHOWN_OF_QUESTION);
    }

    #[test]
    fn formats_have_their_names() {
        for format in SynthesisFormat::ALL {
            assert_eq!(format.as_str().parse(), Ok(*format));
        }
        assert!("Direct_Answer".parse::<SynthesisFormat>().is_err());
        assert!("".parse::<SynthesisFormat>().is_err());
    }
}
