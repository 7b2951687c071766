//! Answers put together from notes: their formats, and what keeps them honest.

use serde::Serialize;
use uuid::Uuid;

use crate::domain::node::wire_enum;

use super::tier::Tier;

wire_enum! {
    /// How an answer is written.
    SynthesisFormat, "direct_answer, synthesized_brief, timeline_analysis, relationship_map" {
        DirectAnswer = "direct_answer",
        SynthesizedBrief = "synthesized_brief",
        TimelineAnalysis = "timeline_analysis",
        RelationshipMap = "relationship_map",
    }
}

/// Characters of the question that stand in an answer that found nothing.
const QUOTED: usize = 50;

/// A note that an answer may be made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub note_id: Uuid,
    pub content: String,
    pub tier: Tier,
    pub created_at: chrono::DateTime<chrono::Utc>,
}

/// What an answer rests on: words that stand in that note.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Citation {
    pub note_id: Uuid,
    pub quote: String,
}

/// An answer with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Synthesis {
    pub answer: String,
    /// 0 to 1.
    pub confidence: f64,
    pub sources: Vec<Citation>,
}

impl Synthesis {
    /// The answer that says that there is none.
    pub fn nothing(question: &str) -> Self {
        let beginning: String = question.chars().take(QUOTED).collect();
        Self {
            answer: format!("No specific answer found for: {beginning}..."),
            confidence: 0.0,
            sources: Vec::new(),
        }
    }

    /// An answer with the citations that hold; nothing when none does. A citation names a source by its number from 1
    /// and must quote it: white space and case aside, the words stand there.
    pub fn checked(
        question: &str,
        answer: String,
        confidence: f64,
        citations: Vec<(usize, String)>,
        sources: &[Source],
    ) -> Self {
        let mut cited: Vec<(&Source, Citation)> = Vec::new();
        for (number, quote) in citations {
            let source = number.checked_sub(1).and_then(|at| sources.get(at));
            let Some(source) = source.filter(|source| holds(&source.content, &quote)) else {
                continue;
            };
            let citation = Citation {
                note_id: source.note_id,
                quote,
            };
            if !cited.iter().any(|(_, known)| *known == citation) {
                cited.push((source, citation));
            }
        }
        let best = cited.iter().map(|(source, _)| source.tier).min();
        let Some(best) = best.filter(|_| !answer.trim().is_empty()) else {
            return Self::nothing(question);
        };
        Self {
            answer,
            confidence: confidence.clamp(0.0, most_confident(best)),
            sources: cited.into_iter().map(|(_, citation)| citation).collect(),
        }
    }
}

/// No answer is surer than the best note that it rests on.
fn most_confident(tier: Tier) -> f64 {
    match tier {
        Tier::A => 1.0,
        Tier::B => 0.9,
        Tier::C => 0.5,
    }
}

fn holds(content: &str, quote: &str) -> bool {
    let plain = |text: &str| {
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .to_lowercase()
    };
    let quote = plain(quote);
    quote.chars().filter(|c| c.is_alphanumeric()).count() >= 3 && plain(content).contains(&quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(content: &str, tier: Tier) -> Source {
        Source {
            note_id: Uuid::now_v7(),
            content: content.into(),
            tier,
            created_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn only_citations_that_hold_are_kept() {
        let sources = [
            source("APT28 used  Mimikatz\non the host.", Tier::B),
            source("Other words", Tier::C),
        ];
        let answer = |citations: &[(usize, &str)]| {
            let citations = citations.iter().map(|(n, q)| (*n, (*q).to_owned())).collect();
            Synthesis::checked("q", "It used Mimikatz.".into(), 2.0, citations, &sources)
        };
        let good = answer(&[
            (1, "apt28 used mimikatz on"),
            (1, "invented"),
            (7, "APT28"),
            (0, "APT28"),
            (2, "a"),
        ]);
        assert_eq!(good.sources.len(), 1);
        assert_eq!(
            (good.sources[0].note_id, good.confidence),
            (sources[0].note_id, 0.9)
        );
        assert_eq!(answer(&[(2, "other words")]).confidence, 0.5);
        assert_eq!(answer(&[(2, "APT28 used Mimikatz")]), Synthesis::nothing("q"));
        assert_eq!(answer(&[]), Synthesis::nothing("q"));
        assert!(Synthesis::nothing(&"x".repeat(90)).answer.ends_with("xxx..."));
    }
}
