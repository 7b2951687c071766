//! Checks an answer against the notes that it cites.
//!
//! A citation is valid if its note was provided and its quote occurs there, unless the quoted text reads like an
//! instruction to a model. An answer is accepted if it has a valid citation, its words come from the cited notes, and
//! it adds no name, number or negation of its own ([`SourceMaterial`]): an invented hash or attribution is worse than no answer.
//! Confidence never exceeds that of the best cited note, nor 0.5 when most of the words are the model's own.

use std::cell::OnceCell;

use serde::Deserialize;

use super::answer::clean;
use super::ground::{Haystack, QuotePosition, quote_names};
use super::source_material::SourceMaterial;
use super::synthesis::{SourceNote, label};
use crate::domain::memory::injection::prompt_injection;
use crate::domain::memory::similarity::{KeyFacts, containment};
use crate::domain::memory::synthesis::{
    Answer, Citation, Event, KeyPoint, Relationship, SynthesisFormat, no_answer,
};
use crate::domain::memory::tier::{Tier, confidence_of};

/// Maximum lengths, in characters.
const MAX_ANSWER: usize = 4000;
const MAX_QUOTE: usize = 500;
const MAX_TEXT: usize = 500;
const MAX_DATE: usize = 40;
/// Maximum number of citations, and of items in a list.
const MAX_ITEMS: usize = 50;
/// Minimum length of a quote in characters; shorter ones occur in any note.
const MIN_QUOTE: usize = 8;
/// Minimum share of an answer's words that must come from the notes. It is low because the answer may be in another
/// language.
const MIN_SUPPORT: f64 = 0.2;
/// Share of supported words from which confidence may exceed 0.5.
const WELL_SUPPORTED: f64 = 0.5;

/// An answer as returned by the model.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct AnswerDraft {
    answer: String,
    confidence: f64,
    citations: Vec<DraftCitation>,
    #[serde(default)]
    key_points: Vec<DraftPoint>,
    #[serde(default)]
    timeline: Vec<DraftEvent>,
    #[serde(default)]
    relationships: Vec<DraftRelationship>,
}

#[derive(Debug, Clone, Deserialize)]
struct DraftCitation {
    source: String,
    quote: String,
}

#[derive(Debug, Clone, Deserialize)]
struct DraftPoint {
    point: String,
    #[serde(flatten)]
    citation: DraftCitation,
}

#[derive(Debug, Clone, Deserialize)]
struct DraftEvent {
    date: String,
    event: String,
    #[serde(flatten)]
    citation: DraftCitation,
}

#[derive(Debug, Clone, Deserialize)]
struct DraftRelationship {
    from: String,
    relationship: String,
    to: String,
    #[serde(flatten)]
    citation: DraftCitation,
}

/// The parts of a draft that the notes support.
pub fn check_answer(
    question: &str,
    format: SynthesisFormat,
    sources: &[SourceNote],
    draft: AnswerDraft,
) -> Answer {
    let notes: Vec<IndexedNote> = sources
        .iter()
        .enumerate()
        .map(|(at, source)| IndexedNote::new(at, source))
        .collect();
    let none = |why: &str| {
        tracing::debug!(why, "language model answer is not used");
        no_answer(question)
    };
    let text = answer_text(&draft.answer, notes.len());
    let (cited, share) = citations(&notes, &draft.citations);
    if text.is_empty() || cited.is_empty() {
        return none("it is empty or no citation holds");
    }
    let lists = DraftLists {
        known: source_material(question, &notes),
        notes: &notes,
        draft: &draft,
    };
    let Some(support) = support(&text, &cited).filter(|_| lists.known.invents_nothing(&text)) else {
        return none("it says what the notes do not");
    };
    let best = cited.iter().map(|(note, _)| note.trust()).fold(0.0, f64::max);
    let most = if support < WELL_SUPPORTED { 0.5 } else { 1.0 };
    let in_format = |wanted| format == wanted;
    Answer {
        confidence: (draft.confidence.clamp(0.0, 1.0) * share).min(best).min(most),
        key_points: lists.key_points(in_format(SynthesisFormat::SynthesizedBrief)),
        timeline: lists.timeline(in_format(SynthesisFormat::TimelineAnalysis)),
        relationships: lists.relationships(in_format(SynthesisFormat::RelationshipMap)),
        sources: cited.into_iter().map(|(_, citation)| citation).collect(),
        answer: text,
    }
}

/// The valid citations without duplicates, and their share of all citations.
fn citations<'n, 's>(
    notes: &'n [IndexedNote<'s>],
    drafts: &[DraftCitation],
) -> (Vec<(&'n IndexedNote<'s>, Citation)>, f64) {
    let mut cited = Vec::new();
    let mut holding = 0;
    for found in drafts
        .iter()
        .take(MAX_ITEMS)
        .filter_map(|draft| check_citation(notes, draft))
    {
        holding += 1;
        if !cited.contains(&found) {
            cited.push(found);
        }
    }
    let share = f64::from(holding) / drafts.len().clamp(1, MAX_ITEMS) as f64;
    (cited, share)
}

/// A note, indexed at the first look-up.
struct IndexedNote<'s> {
    source: &'s SourceNote,
    label: String,
    haystack: OnceCell<Haystack>,
}

impl PartialEq for IndexedNote<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label
    }
}

impl<'s> IndexedNote<'s> {
    fn new(at: usize, source: &'s SourceNote) -> Self {
        Self {
            source,
            label: label(at),
            haystack: OnceCell::new(),
        }
    }

    fn haystack(&self) -> &Haystack {
        self.haystack.get_or_init(|| Haystack::new(&self.source.content))
    }

    /// The quoted text as written in the note.
    fn quote(&self, quote: &str) -> Option<String> {
        let quote = quote.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '“' | '”' | '…'));
        if quote.chars().count() < MIN_QUOTE && quote != self.source.content.trim() {
            return None;
        }
        // Models that copy JSON also copy its escapes.
        let plain = quote.replace("\\\\", "\\");
        let place = self
            .haystack()
            .quote(quote)
            .or_else(|| self.haystack().quote(&plain))?;
        let own = match place {
            QuotePosition::At(range) => self.source.content.get(range)?,
            QuotePosition::Refanged => quote,
        };
        Some(clean(own, MAX_QUOTE)).filter(|own| !own.is_empty() && prompt_injection(own).is_none())
    }

    /// Upper bound for the confidence of an answer from this note.
    fn trust(&self) -> f64 {
        let trust = confidence_of(self.source.tier);
        match prompt_injection(&self.source.content) {
            Some(_) => trust.min(confidence_of(Tier::C)),
            None => trust,
        }
    }

    /// The sentences that do not read like instructions to a model.
    fn text_without_injection(&self) -> String {
        let content = &self.source.content;
        if prompt_injection(content).is_none() {
            return content.clone();
        }
        let sentences = content.split_inclusive(['.', '!', '?', '\n']);
        sentences
            .filter(|sentence| prompt_injection(sentence).is_none())
            .collect()
    }
}

/// The note of a valid citation, and the citation in the note's own words.
fn check_citation<'n, 's>(
    notes: &'n [IndexedNote<'s>],
    citation: &DraftCitation,
) -> Option<(&'n IndexedNote<'s>, Citation)> {
    let named = citation.source.trim().trim_matches(['[', ']', '(', ')']);
    let note = notes
        .iter()
        .find(|note| note.label == named || note.source.id == named)?;
    let quote = note.quote(&citation.quote)?;
    let note_id = note.source.id.clone();
    Some((note, Citation { note_id, quote }))
}

/// The share of the answer's words that come from the cited notes, if it is sufficient.
fn support(answer: &str, cited: &[(&IndexedNote, Citation)]) -> Option<f64> {
    let texts: Vec<String> = cited
        .iter()
        .map(|(note, _)| note.text_without_injection())
        .collect();
    let texts = texts.join("\n");
    let share = containment(answer, &texts);
    // The notes may use an alias of a name.
    let supported = share >= MIN_SUPPORT || KeyFacts::of(answer).share(&KeyFacts::of(&texts));
    (supported && prompt_injection(answer).is_none()).then_some(share)
}

/// Everything that an answer may mention: the question, the notes, and their creation dates.
fn source_material(question: &str, notes: &[IndexedNote]) -> SourceMaterial {
    let mut given = format!("{question}\n");
    for note in notes {
        let made = note.source.created_at.format("%Y-%m-%d");
        given.push_str(&format!("{}\n{made}\n", note.text_without_injection()));
    }
    SourceMaterial::new(&given)
}

/// Multi-line plain text without note labels or control characters.
fn answer_text(answer: &str, notes: usize) -> String {
    let mut text = answer.to_owned();
    for at in 0..notes {
        let label = label(at);
        for (open, close) in [(" [", "]"), (" (", ")"), ("[", "]")] {
            text = text.replace(&format!("{open}{label}{close}"), "");
        }
    }
    let lines: Vec<String> = text.lines().map(|line| clean(line, MAX_ANSWER)).collect();
    let text: String = lines.join("\n").chars().take(MAX_ANSWER).collect();
    text.trim().to_owned()
}

/// The lists of the extended formats, limited to items with a valid citation.
struct DraftLists<'l, 's> {
    known: SourceMaterial,
    notes: &'l [IndexedNote<'s>],
    draft: &'l AnswerDraft,
}

impl DraftLists<'_, '_> {
    fn key_points(&self, wanted: bool) -> Vec<KeyPoint> {
        let points = self.draft.key_points.iter().filter(|_| wanted).take(MAX_ITEMS);
        let held = points.filter_map(|draft| {
            let cited = check_citation(self.notes, &draft.citation)?;
            let point = clean(&draft.point, MAX_TEXT);
            self.is_supported(&point, &cited).then_some(KeyPoint {
                point,
                note_id: cited.1.note_id,
            })
        });
        held.collect()
    }

    fn timeline(&self, wanted: bool) -> Vec<Event> {
        let events = self.draft.timeline.iter().filter(|_| wanted).take(MAX_ITEMS);
        let held = events.filter_map(|draft| {
            let cited = check_citation(self.notes, &draft.citation)?;
            let (date, event) = (clean(&draft.date, MAX_DATE), clean(&draft.event, MAX_TEXT));
            let day = cited.0.source.created_at.format("%Y-%m-%d").to_string();
            let dated = date == day || (!date.is_empty() && cited.0.haystack().quote(&date).is_some());
            (dated && self.is_supported(&event, &cited)).then_some(Event {
                date,
                event,
                note_id: cited.1.note_id,
            })
        });
        let mut held: Vec<Event> = held.collect();
        // If all dates start with the year, as in 2024-03-01 or 2024, lexical order is chronological.
        let sorts = |event: &Event| event.date.chars().take(4).all(|c| c.is_ascii_digit());
        if held.iter().all(sorts) {
            held.sort_by(|a, b| a.date.cmp(&b.date));
        }
        held
    }

    fn relationships(&self, wanted: bool) -> Vec<Relationship> {
        let drafts = self.draft.relationships.iter().filter(|_| wanted).take(MAX_ITEMS);
        let mut held: Vec<Relationship> = Vec::new();
        for draft in drafts {
            let Some((_, citation)) = check_citation(self.notes, &draft.citation) else {
                continue;
            };
            let [source, relationship, target] =
                [&draft.from, &draft.relationship, &draft.to].map(|text| clean(text, MAX_TEXT));
            let named = quote_names(&citation.quote, &source) && quote_names(&citation.quote, &target);
            let found = Relationship {
                source,
                relationship,
                target,
                note_id: citation.note_id,
            };
            if named && !found.relationship.is_empty() && !held.contains(&found) {
                held.push(found);
            }
        }
        held
    }

    fn is_supported(&self, text: &str, cited: &(&IndexedNote, Citation)) -> bool {
        let supported = support(text, std::slice::from_ref(cited)).is_some();
        !text.is_empty() && supported && self.known.invents_nothing(text)
    }
}
