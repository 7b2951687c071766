//! Programs of operating systems and common software. A text that merely names one says nothing about an attack, so such
//! a tool is found with `dual_use: true` and a lower confidence, and waits for a review unless the text says that somebody
//! used it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::gazetteer::canonical_name;
use super::relations::{DOUBT_WORDS, sentence};
use super::{EntityKind, Extractor, Mention};
use crate::domain::node::NodeType;
use crate::domain::staging::{DUAL_USE, DUAL_USE_UNSTATED, ExtractedEntity, Extraction};
use crate::domain::with_ascii_edges;

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

    /// The first actor or malware from one place of the text to another.
    fn first_user(&self, within: Range<usize>) -> Option<usize> {
        let next = self.users.partition_point(|span| span.start < within.start);
        let start = self.users.get(next)?.start;
        (start < within.end).then_some(start)
    }
}

fn mark(entity: &mut ExtractedEntity, is_used: bool) {
    let was_marked = entity.properties.insert(PROPERTY.into(), true.into()).is_some();
    let was_used = was_marked && !entity.is_unstated_dual_use();
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

/// Words for what may be done with a program, as a verb before its name and as a participle.
const VERBS: &str = "use|uses|used|using|utili[sz]es?|utili[sz]ed|utili[sz]ing|leverages?|leveraged|leveraging|employs?|\
    employed|employing|abuses?|abused|abusing|misused|executes?|executed|executing|ran|runs?|running|launch(?:es)?|\
    launched|launching|invokes?|invoked|invoking|deploys?|deployed|deploying|installs?|installed|installing|\
    downloads?|downloaded|downloading|drops?|dropped|dropping|spawns?|spawned|spawning|started|calls|called|calling|\
    relied on|relies on|connected with|exfiltrated with";
const PARTICIPLES: &str = "used|utili[sz]ed|leveraged|abused|misused|employed|executed|run|launched|invoked|deployed|\
    installed|downloaded|dropped|spawned|started|called";
/// Words for who attacks, and for who works with the same programs.
const ATTACKERS: &str = "attackers?|actors?|adversar(?:y|ies)|intruders?|hackers?|operators?|affiliates?|groups?|gangs?|\
    crews?|criminals?|perpetrators?|insiders?|campaigns?|they|he|she|it|somebody|someone|malware|ransomware|\
    trojan|backdoor|loader|dropper|implant|scripts?|payloads?|documents?|macros?|worm|samples?|botnet|infection|\
    intrusion|apt[ -]?[0-9]+|fin[ -]?[0-9]+|unc[ -]?[0-9]+|ta[0-9]+|storm-[0-9]+|[a-z]+ (?:spider|panda|bear|kitten|blizzard|typhoon|sandstorm|sleet|tempest)";
const OTHERS: &str = "(?-i:IT)|administrators?|admins?|customers?|employees|defenders?|analysts?|researchers?|responders?|we|you|\
    our|help ?desks?|vendors?|developers?|engineers?|staff|technicians?|legitimate users?|many companies|organi[sz]ations";

struct UsePatterns {
    /// A verb, with the name as its object at the end.
    active: Regex,
    /// A preposition that makes the name a means, at the end.
    means: Regex,
    /// A heading of a list of tools, with the name in the list.
    listed: Regex,
    /// "use of" the name, at the end.
    noun: Regex,
    /// The passive, behind the name.
    passive: Regex,
    passive_by: Regex,
    attackers: Regex,
    others: Regex,
    doubt: Regex,
}

static PATTERNS: LazyLock<Option<UsePatterns>> = LazyLock::new(|| {
    let of = |text: &str| Regex::new(&with_ascii_edges(text)).ok();
    Some(UsePatterns {
        active: of(&format!(r"(?i)\b(?:{VERBS})\b[^.;:!?]{{0,120}}$"))?,
        means: of(r"(?i)\b(?:via|through|by means of|with the help of|with the aid of)\b[^.;:!?,]{0,40}$")?,
        listed: of(&format!(
            r"(?i)\b(?:tools?|software|utilities|programs|binaries|lolbins|lolbas)\b[^.;!?]{{0,60}}\b(?:{PARTICIPLES}|observed|seen)\b[^.;!?]{{0,40}}:[^.;!?]{{0,200}}$"
        ))?,
        noun: of(r"(?i)\b(?:use|usage|abuse|misuse|execution|deployment|installation) of [^.;:!?]{0,60}$")?,
        passive: of(&format!(
            r"(?i)^[^.;:!?]{{0,80}}?\b(?:was|were|been|being|got)(?: [a-z]+){{0,2}} (?:{PARTICIPLES})\b"
        ))?,
        passive_by: of(&format!(
            r"(?i)^[^.;:!?]{{0,80}}?\b(?:{PARTICIPLES}) by (?:[a-z0-9' -]{{0,40}})?"
        ))?,
        attackers: of(&format!(r"(?i)\b(?:{ATTACKERS})\b"))?,
        others: of(&format!(r"(?i)\b(?:{OTHERS})\b"))?,
        doubt: of(DOUBT_WORDS)?,
    })
});

impl Mentions {
    /// Whether the sentence says that somebody used what stands at this place of the text.
    fn is_use_stated(&self, text: &str, span: &Range<usize>) -> bool {
        let Some(patterns) = PATTERNS.as_ref() else {
            return false;
        };
        let around = sentence(text, span.start, span.end);
        let before = text.get(around.start..span.start).unwrap_or_default();
        let after = text.get(span.end..around.end).unwrap_or_default();
        let is_question = after.trim_end().ends_with('?');
        if is_question || patterns.doubt.is_match(before) {
            return false;
        }
        let first_user = |end: usize| {
            let user = self.first_user(around.start..around.start + end)?;
            Some(user - around.start)
        };
        patterns.is_used_by_attackers(before, first_user) || patterns.is_passively_used(before, after)
    }
}

impl UsePatterns {
    /// The first who is named acts: "The attackers called the help desk and used …", "Researchers who track APT41 used …".
    /// `first_user` finds the first actor or malware before a place.
    fn is_used_by_attackers(&self, before: &str, first_user: impl Fn(usize) -> Option<usize>) -> bool {
        if self.listed.is_match(before) {
            return !self.others.is_match(before);
        }
        let found = [&self.active, &self.means, &self.noun]
            .into_iter()
            .find_map(|pattern| pattern.find(before));
        let Some(found) = found else {
            return false;
        };
        let subject = before.get(..found.start()).unwrap_or_default();
        let place = |pattern: &Regex| pattern.find(subject).map(|found| found.start());
        let attacker = place(&self.attackers)
            .into_iter()
            .chain(first_user(found.start()));
        match (attacker.min(), place(&self.others)) {
            (Some(attacker), Some(other)) => attacker < other,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn is_passively_used(&self, before: &str, after: &str) -> bool {
        if self.others.is_match(before) {
            return false;
        }
        if let Some(by) = self.passive_by.find(after) {
            return !self.others.is_match(by.as_str());
        }
        let passive = self.passive.find(after);
        passive.is_some_and(|passive| !self.doubt.is_match(passive.as_str()))
    }
}

#[cfg(test)]
mod tests;
