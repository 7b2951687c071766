//! Programs of operating systems and common software. A text that merely names one says nothing about an attack, so such
//! a tool is found with `dual_use: true` and a lower confidence, and waits for a review unless the text says that somebody
//! used it.

mod stated;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use super::gazetteer::canonical_name;
use super::relations::sentence;
use super::{EntityKind, Extractor, Mention};
use crate::domain::node::NodeType;
use crate::domain::staging::{DUAL_USE, DUAL_USE_UNSTATED, ExtractedEntity, Extraction};
use stated::{PATTERNS, Surroundings};

const DATA: &str = include_str!("../../../assets/dual_use.txt");

/// Property of the node of such a tool.
const PROPERTY: &str = "dual_use";
/// Highest confidence in a tool that the text merely names, and in one that somebody used.
const NAMED: f64 = 0.4;
const USED: f64 = 0.7;
/// Mentions of one tool that are read.
const MAX_MENTIONS: usize = 32;

static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let lines = DATA.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(program_name).collect()
});

/// A name without case, punctuation and the extension of a program.
fn program_name(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    canonical_name(lower.strip_suffix(".exe").unwrap_or(&lower))
}

/// Whether a tool of this name is a program of an operating system or common software.
pub(super) fn is_dual_use(name: &str) -> bool {
    NAMES.contains(&program_name(name))
}

/// Marks the tools of an extraction that are of dual use. Those that already are keep what was found out about their use,
/// unless a relationship says that somebody uses them.
pub fn mark_dual_use(text: &str, extraction: &mut Extraction) {
    if extraction.entities.iter().any(is_dual_use_tool) {
        mark_with(text, &Extractor::shared().extract(text), extraction);
    }
}

/// [`mark_dual_use`], with the hits of the text.
pub(super) fn mark_with(text: &str, hits: &[Mention], extraction: &mut Extraction) {
    let tools: Vec<usize> = extraction
        .entities
        .iter()
        .enumerate()
        .filter(|(_, entity)| is_dual_use_tool(entity))
        .map(|(at, _)| at)
        .collect();
    if tools.is_empty() {
        return;
    }
    let mentions = Mentions::of(hits);
    for at in tools {
        let Some(name) = extraction.entities.get(at).map(|entity| entity.name.clone()) else {
            continue;
        };
        let is_object = extraction.relations.iter().any(|relation| {
            relation.target == at && matches!(relation.relationship.as_str(), "uses" | "drops" | "downloads")
        });
        let is_used = is_object || mentions.state_use(text, &name);
        if let Some(entity) = extraction.entities.get_mut(at) {
            mark(entity, is_used);
        }
    }
}

fn is_dual_use_tool(entity: &ExtractedEntity) -> bool {
    entity.node_type == NodeType::Tool && is_dual_use(&entity.name)
}

/// Where a text names common software, and where those who may use it.
struct Mentions {
    software: HashMap<String, Vec<Range<usize>>>,
    /// Actors and malware, in the order of the text.
    users: Vec<Range<usize>>,
}

impl Mentions {
    fn of(hits: &[Mention]) -> Self {
        let mut software: HashMap<String, Vec<Range<usize>>> = HashMap::new();
        let mut users = Vec::new();
        for hit in hits {
            let is_user = matches!(
                hit.kind,
                EntityKind::Actor
                    | EntityKind::Malware
                    | EntityKind::AttckGroup
                    | EntityKind::AttckSoftware
                    | EntityKind::AttckCampaign
            );
            if is_user {
                users.push(hit.span.clone());
            } else if hit.kind == EntityKind::Tool && is_dual_use(&hit.value) {
                let spans = software.entry(program_name(&hit.value)).or_default();
                if spans.len() < MAX_MENTIONS {
                    spans.push(hit.span.clone());
                }
            }
        }
        Mentions { software, users }
    }

    /// Whether one of the first mentions of a program is said to be used by somebody who is no administrator or analyst.
    fn state_use(&self, text: &str, name: &str) -> bool {
        let known = self.software.get(&program_name(name));
        match known {
            Some(spans) => spans.iter().any(|span| self.is_use_stated(text, span)),
            // Only a model found it.
            None => spans_of(text, name)
                .iter()
                .any(|span| self.is_use_stated(text, span)),
        }
    }

    /// Whether the sentence says that somebody used what stands at this place of the text.
    fn is_use_stated(&self, text: &str, span: &Range<usize>) -> bool {
        let Some(patterns) = PATTERNS.as_ref() else {
            return false;
        };
        let around = sentence(text, span.start, span.end);
        let surroundings = Surroundings {
            before: text.get(around.start..span.start).unwrap_or_default(),
            after: text.get(span.end..around.end).unwrap_or_default(),
            end: span.end - around.start,
        };
        let first_user = |within: Range<usize>| {
            let user = self.first_user(around.start + within.start..around.start + within.end)?;
            Some(user - around.start)
        };
        patterns.is_used(surroundings, &first_user)
    }

    /// The first actor or malware from one place of the text to another.
    fn first_user(&self, within: Range<usize>) -> Option<usize> {
        let next = self.users.partition_point(|span| span.start < within.start);
        let start = self.users.get(next)?.start;
        (start < within.end).then_some(start)
    }
}

fn mark(entity: &mut ExtractedEntity, is_used: bool) {
    let was_marked = entity.properties.insert(PROPERTY.into(), true.into()).is_some();
    let was_used = was_marked && !entity.warnings.iter().any(|warning| warning == DUAL_USE_UNSTATED);
    let is_used = is_used || was_used;
    entity.confidence = entity.confidence.min(if is_used { USED } else { NAMED });
    entity.warnings.retain(|warning| !warning.starts_with(DUAL_USE));
    let warning = if is_used {
        format!("{DUAL_USE}common software, which the text says somebody used")
    } else {
        DUAL_USE_UNSTATED.to_owned()
    };
    entity.warnings.push(warning);
}

/// The first places where a name stands in a text as a word.
fn spans_of(text: &str, name: &str) -> Vec<Range<usize>> {
    let lower = name.to_lowercase();
    let stem = lower.strip_suffix(".exe").unwrap_or(&lower);
    // Only ASCII letters are folded, so places are those of the text.
    let folded = text.to_ascii_lowercase();
    let is_whole = |span: &Range<usize>| {
        let before = folded.get(..span.start).and_then(|rest| rest.chars().next_back());
        let after = folded.get(span.end..).and_then(|rest| rest.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    };
    let spans = folded.match_indices(stem).map(|(at, found)| at..at + found.len());
    spans.filter(is_whole).take(MAX_MENTIONS).collect()
}

#[cfg(test)]
mod tests;
