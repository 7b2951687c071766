//! The shape of an answer that is made from notes.
//!
//! Every format has the three fields of a direct answer; the extended formats add lists where they have something to
//! list. Each item of a list names the note that bears it out. How answers come about is the business of
//! [`crate::llm`].

use serde::Serialize;

use crate::domain::node::wire_enum;

/// Characters of a question that the answer "nothing found" repeats.
const SHOWN_OF_QUESTION: usize = 50;

wire_enum! {
    /// What an answer looks like.
    SynthesisFormat, "direct_answer, synthesized_brief, timeline_analysis, relationship_map" {
        DirectAnswer = "direct_answer",
        SynthesizedBrief = "synthesized_brief",
        TimelineAnalysis = "timeline_analysis",
        RelationshipMap = "relationship_map",
    }
}

/// An answer made from notes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    pub answer: String,
    /// 0 to 1; 0 when there is no answer.
    pub confidence: f64,
    /// Each bears the answer out, with words that stand in the note.
    pub sources: Vec<Citation>,
    /// Of a brief.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key_points: Vec<KeyPoint>,
    /// Of a timeline, oldest first as far as the dates tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Event>,
    /// Of a relationship map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relationships: Vec<Relationship>,
}

/// A note, and the words of it that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Citation {
    pub note_id: String,
    pub quote: String,
}

/// One point of a brief.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyPoint {
    pub point: String,
    pub note_id: String,
}

/// One event of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// As the note writes it, or the day on which the note was made.
    pub date: String,
    pub event: String,
    pub note_id: String,
}

/// One relationship that a note states; both ends stand in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Relationship {
    pub source: String,
    pub relationship: String,
    pub target: String,
    pub note_id: String,
}

impl Answer {
    /// Whether it holds an answer.
    pub fn is_found(&self) -> bool {
        !self.sources.is_empty()
    }
}

/// What is said when no note answers, or when no language model is there to answer.
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
