//! Relationships stated outright by a sentence: "APT28 uses X-Agent", "X-Agent, used by APT28".
//!
//! Only the words between two neighbouring hits count, and all of them must match a pattern, so mere co-occurrence
//! never becomes a relationship. A sentence that negates, doubts or asks states nothing. Verbs are the
//! relationship types of STIX 2.1.

use serde::Serialize;
use std::ops::Range;

use super::word_lists::NOT_A_SUBJECT;
use crate::domain::node::wire_enum;

use super::doubt::is_doubtful;
use super::mention::Mention;
use super::phrases::{ALIAS, CLAUSE, LISTED, MEMBERS, PATTERNS, RelationPattern};
use super::source::is_one_of;
use crate::domain::kinds::EntityKind;

wire_enum! {
    /// The relationship of the subject to the object.
    Verb, "uses, exploits, targets, attributed-to, drops, downloads, communicates-with, mitigates" {
        Uses = "uses",
        Exploits = "exploits",
        Targets = "targets",
        AttributedTo = "attributed-to",
        Drops = "drops",
        Downloads = "downloads",
        CommunicatesWith = "communicates-with",
        Mitigates = "mitigates",
    }
}

/// A stated relationship between two hits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedRelation {
    /// Index of the subject in the hits.
    pub subject: usize,
    pub verb: Verb,
    /// Index of the object in the hits.
    pub object: usize,
    /// The sentence that states it, kept as proof.
    pub sentence: Range<usize>,
}

/// Maximum distance between two hits; no pattern is longer.
const MAX_GAP: usize = 200;

/// A hit and its index.
type IndexedMention<'h> = (usize, &'h Mention);

/// The relationships that the text states between its hits.
pub fn stated_relations(text: &str, hits: &[Mention]) -> Vec<StatedRelation> {
    let mut relations = Vec::new();
    let visible: Vec<IndexedMention<'_>> = hits
        .iter()
        .enumerate()
        .filter(|(_, hit)| !is_link_target(text, hit))
        .collect();
    for (at, (left, right)) in visible.iter().zip(visible.iter().skip(1)).enumerate() {
        let Some(gap) = gap(text, left.1, right.1) else {
            continue;
        };
        let Some(pattern) = PATTERNS.iter().find(|pattern| pattern.regex.is_match(gap)) else {
            continue;
        };
        let sentence = sentence(text, left.1.span.start, right.1.span.end);
        if !is_unsure(text, &sentence) {
            add(text, &visible, at, pattern, &sentence, &mut relations);
        }
    }
    relations
}

/// Whether the hit is a link target: in `[Stuxnet](https://…)` the sentence is not about the link.
fn is_link_target(text: &str, hit: &Mention) -> bool {
    hit.kind == EntityKind::Url
        && text
            .get(..hit.span.start)
            .is_some_and(|before| before.ends_with("]("))
}

/// The words between two hits, without a link target after the first.
fn gap<'t>(text: &'t str, left: &Mention, right: &Mention) -> Option<&'t str> {
    let gap = text
        .get(left.span.end..right.span.start)
        .filter(|gap| gap.len() <= MAX_GAP)?;
    let gap = match gap.strip_prefix("](") {
        Some(link) => link.split_once(')')?.1,
        None => gap,
    };
    Some(gap.strip_suffix('[').unwrap_or(gap))
}

/// Adds the relationship of the pair at `at`, and of a list that follows it.
fn add(
    text: &str,
    hits: &[IndexedMention<'_>],
    at: usize,
    pattern: &RelationPattern,
    sentence: &Range<usize>,
    out: &mut Vec<StatedRelation>,
) {
    let (Some(left), Some(right)) = (first_name(text, hits, at), hits.get(at + 1)) else {
        return;
    };
    let stands = pattern.passive || is_subject(text, left.1);
    if !stands || !fits(pattern, left.1, right.1) || left.1.value == right.1.value {
        return;
    }
    let mut next = at + 1;
    while let Some(hit) = hits.get(next).filter(|hit| fits(pattern, left.1, hit.1)) {
        let (subject, object) = if pattern.passive {
            (hit.0, left.0)
        } else {
            (left.0, hit.0)
        };
        out.push(StatedRelation {
            subject,
            verb: pattern.verb,
            object,
            sentence: sentence.clone(),
        });
        next += 1;
        let more = hits.get(next).and_then(|more| gap(text, hit.1, more.1));
        let listed = more.is_some_and(|gap| LISTED.as_ref().is_some_and(|regex| regex.is_match(gap)));
        // A verb after the next name makes that name the subject of its own clause.
        if !listed || starts_clause(text, hits, next) {
            break;
        }
    }
}

fn fits(pattern: &RelationPattern, left: &Mention, right: &Mention) -> bool {
    let (subject, object) = if pattern.passive {
        (right, left)
    } else {
        (left, right)
    };
    can_relate(subject.kind, pattern.verb, object.kind)
}

fn starts_clause(text: &str, hits: &[IndexedMention<'_>], at: usize) -> bool {
    let Some((_, hit)) = hits.get(at) else {
        return false;
    };
    let after = text.get(hit.span.end..).unwrap_or_default();
    let window = after.char_indices().nth(60).map_or(after.len(), |(at, _)| at);
    let auxiliary = CLAUSE
        .as_ref()
        .is_some_and(|regex| regex.is_match(after.get(..window).unwrap_or_default()));
    let verb = hits.get(at + 1).and_then(|next| gap(text, hit, next.1));
    auxiliary || verb.is_some_and(|gap| PATTERNS.iter().any(|pattern| pattern.regex.is_match(gap)))
}

/// Whether a name can be the subject of the following verb; it cannot in `unlike Turla, …`.
fn is_subject(text: &str, hit: &Mention) -> bool {
    let mut from = hit.span.start.saturating_sub(48);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = text.get(from..hit.span.start).unwrap_or_default();
    let before = before.trim_end_matches([' ', '[', '(', '"', '\'', '“', '‘']);
    let mut words = before
        .split_whitespace()
        .rev()
        .filter(|word| !matches!(*word, "the" | "The" | "a" | "an"));
    let (Some(word), previous) = (words.next(), words.next().unwrap_or_default()) else {
        return true;
    };
    let member = word == "of" && is_one_of(previous, MEMBERS);
    member || !(is_one_of(word, &NOT_A_SUBJECT) || word.ends_with("ing"))
}

/// In `APT28 (Fancy Bear) uses`, the name before the parenthesis is the subject.
fn first_name<'h>(text: &str, hits: &[IndexedMention<'h>], at: usize) -> Option<IndexedMention<'h>> {
    let mut first = at;
    while let Some(before) = first.checked_sub(1) {
        let (Some(left), Some(right)) = (hits.get(before), hits.get(first)) else {
            break;
        };
        let bracketed = text
            .get(right.1.span.end..)
            .is_some_and(|rest| rest.starts_with(')'));
        let same = left.1.kind.node_type() == right.1.kind.node_type();
        let alias = gap(text, left.1, right.1)
            .is_some_and(|gap| gap.contains('(') && ALIAS.as_ref().is_some_and(|regex| regex.is_match(gap)));
        if !(bracketed && same && alias) {
            break;
        }
        first = before;
    }
    hits.get(first).copied()
}

fn can_relate(subject: EntityKind, verb: Verb, object: EntityKind) -> bool {
    let actor = |kind| {
        matches!(
            kind,
            EntityKind::Actor | EntityKind::AttckGroup | EntityKind::AttckCampaign
        )
    };
    let software = |kind| {
        matches!(
            kind,
            EntityKind::Tool | EntityKind::Malware | EntityKind::AttckSoftware
        )
    };
    let technique = object == EntityKind::AttckTechnique;
    let host = matches!(
        object,
        EntityKind::Ipv4 | EntityKind::Ipv6 | EntityKind::Domain | EntityKind::Url
    );
    let file = matches!(object, EntityKind::FileName | EntityKind::FilePath);
    let acting = actor(subject) || software(subject);
    match verb {
        Verb::Uses => (acting && (software(object) || technique)) || (actor(subject) && host),
        Verb::Exploits | Verb::Targets => {
            acting && matches!(object, EntityKind::Cve | EntityKind::Vulnerability)
        }
        Verb::AttributedTo => acting && actor(object),
        Verb::Drops => acting && (software(object) || file),
        Verb::Downloads => acting && (software(object) || file || object == EntityKind::Url),
        Verb::CommunicatesWith => acting && host,
        Verb::Mitigates => subject == EntityKind::AttckMitigation && technique,
    }
}

/// Whether a sentence asks, denies or doubts.
fn is_unsure(text: &str, sentence: &Range<usize>) -> bool {
    let words = text.get(sentence.clone()).unwrap_or_default();
    words.trim_end().ends_with('?') || is_doubtful(words)
}

/// The sentence around a span; bounded, so texts without full stops stay cheap.
pub(super) fn sentence(text: &str, start: usize, end: usize) -> Range<usize> {
    let mut floor = start.saturating_sub(400);
    while !text.is_char_boundary(floor) {
        floor += 1;
    }
    let mut ceiling = end.saturating_add(400).min(text.len());
    while !text.is_char_boundary(ceiling) {
        ceiling -= 1;
    }
    let before = text.get(floor..start).unwrap_or_default();
    let after = text.get(end..ceiling).unwrap_or_default();
    let breaks = [". ", "! ", "? ", ".\n", "\n\n"];
    let from = breaks
        .iter()
        .filter_map(|b| before.rfind(b).map(|at| at + b.len()))
        .max()
        .unwrap_or(0);
    let to = breaks
        .iter()
        .filter_map(|b| after.find(b).map(|at| at + 1))
        .min()
        .unwrap_or(after.len());
    floor + from..end + to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::extraction::Extractor;

    fn stated(text: &str) -> Vec<(String, &'static str, String)> {
        let hits = Extractor::shared().extract(text);
        stated_relations(text, &hits)
            .into_iter()
            .map(|r| {
                (
                    hits[r.subject].value.clone(),
                    r.verb.as_str(),
                    hits[r.object].value.clone(),
                )
            })
            .collect()
    }

    fn one(subject: &str, verb: &'static str, object: &str) -> Vec<(String, &'static str, String)> {
        vec![(subject.to_owned(), verb, object.to_owned())]
    }

    #[test]
    fn outright_statements_are_found() {
        assert_eq!(stated("APT28 uses X-Agent."), one("APT28", "uses", "X-Agent"));
        assert_eq!(
            stated("X-Agent, used by APT28, steals files."),
            one("APT28", "uses", "X-Agent")
        );
        assert_eq!(
            stated("The Fancy Bear group has deployed the X-Agent backdoor."),
            one("APT28", "uses", "X-Agent")
        );
        assert_eq!(
            stated("In May 2023 APT28 used X-Agent."),
            one("APT28", "uses", "X-Agent")
        );
        assert_eq!(
            stated("APT28 (also known as Fancy Bear) exploited CVE-2023-23397."),
            one("APT28", "exploits", "CVE-2023-23397")
        );
        assert_eq!(
            stated("CVE-2023-23397 was exploited by APT28."),
            one("APT28", "exploits", "CVE-2023-23397")
        );
        assert_eq!(
            stated("Emotet downloads TrickBot."),
            one("Emotet", "downloads", "TrickBot")
        );
        assert_eq!(
            stated("Emotet connects to evil[.]com."),
            one("Emotet", "communicates-with", "evil.com")
        );
        assert_eq!(
            stated("NotPetya was attributed to Sandworm."),
            one("NotPetya", "attributed-to", "Sandworm Team")
        );
        assert_eq!(
            stated("M1030 mitigates T1021."),
            one("M1030", "mitigates", "T1021")
        );
        assert_eq!(
            stated("T1021 is mitigated by M1030."),
            one("M1030", "mitigates", "T1021")
        );
        let linked = "[APT28](https://attack.mitre.org/groups/G0007) has used [Mimikatz](https://attack.mitre.org/software/S0002).";
        assert_eq!(stated(linked), one("APT28", "uses", "Mimikatz"));
    }

    #[test]
    fn lists_give_one_relation_each() {
        let relations = stated("APT28 uses X-Agent, Mimikatz and PlugX.");
        assert_eq!(relations.len(), 3);
        assert!(
            relations
                .iter()
                .all(|(subject, verb, _)| subject == "APT28" && *verb == "uses")
        );
    }

    #[test]
    fn a_new_clause_ends_a_list() {
        let text = "Emotet dropped TrickBot, and Ryuk was deployed later by Wizard Spider.";
        assert_eq!(stated(text), one("Emotet", "drops", "TrickBot"));
        let relations = stated("While APT28 used X-Agent, Turla used Kazuar.");
        assert_eq!(relations.len(), 2);
        assert!(
            relations
                .iter()
                .all(|(subject, _, object)| (subject == "Turla") == (object == "Kazuar"))
        );
    }

    #[test]
    fn co_occurrence_denial_and_doubt_state_nothing() {
        for text in [
            "APT28 and X-Agent are discussed below.",
            "APT28 does not use X-Agent.",
            "There is no evidence that APT28 uses X-Agent.",
            "APT28 may have used Mimikatz.",
            "Does APT28 use X-Agent?",
            "APT28 was active. Others used X-Agent.",
            "Unlike APT28, Turla has a long history with Mimikatz.",
            "The vendor, unlike Turla, uses Mimikatz for tests.",
            "Researchers tracking APT41 used BloodHound to map the domain.",
            "Analysts used Mimikatz to test the rules about APT28.",
        ] {
            assert_eq!(stated(text), [], "{text}");
        }
    }

    #[test]
    fn the_sentence_is_the_proof() {
        let text = "First. APT28 uses X-Agent. Last.";
        let hits = Extractor::shared().extract(text);
        let relations = stated_relations(text, &hits);
        assert_eq!(&text[relations[0].sentence.clone()], "APT28 uses X-Agent.");
    }
}
