//! Finds the nodes that a query names, as a whole or in one of its phrases, and those that hold its rare words.
//!
//! A name that makes up much of the query is its subject. A name in passing ("Mimikatz was used to read credentials
//! from the memory of …") is a *mention*: the node is a result, but the other words describe the subject, so both legs
//! then discount the name.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::rare::{RareQuery, holders_of_rare};
use crate::domain::kinds::STIX_TYPES;
use crate::search::document::{CompiledFilter, KeyKind, is_entity};
use crate::search::error::SearchError;
use crate::search::keyword::Keywords;
use crate::search::text::analyzer::tokenize;
use crate::search::text::{canonical_key, host, refang, words};

/// Longest phrase looked up as a key, in words.
const MAX_PHRASE: usize = 5;
/// Number of query words that are searched for phrases.
const MAX_WORDS: usize = 64;
/// Shortest hash prefix that is completed, and the maximum number of completions.
const MIN_PREFIX: usize = 8;
const MAX_COMPLETIONS: usize = 100;
/// Number of words (without stop words) from which a query counts as a text, whose names may be mentions.
pub(in crate::search) const TEXT_WORDS: usize = 10;
/// Share of a query that an exact rare word counts as at least, and what each further one adds: enough for a main name.
const RARE_SHARE: f32 = 0.6;
const NEXT_RARE_SHARE: f32 = 0.1;
/// Largest share of a text for which a name is a mention.
const MENTION_SHARE: f32 = 0.25;

/// How a node matched exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ExactMatch {
    /// The whole query is a key of the node, of this kind.
    pub(in crate::search) whole: Option<KeyKind>,
    /// Share of the query's words in phrases that are keys of the node, 0 to 1.
    pub(in crate::search) share: f32,
    /// The node is only mentioned.
    pub(super) mention: bool,
    /// The longest phrase that is a key of the node.
    pub(super) phrase: Option<Phrase>,
}

/// Words of a query that are a key of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Phrase {
    pub(in crate::search) kind: KeyKind,
    pub(in crate::search) start: usize,
    pub(in crate::search) length: usize,
}

/// The nodes that a query names.
#[derive(Debug, Default)]
pub(super) struct NameMatches {
    pub(in crate::search) nodes: HashMap<Uuid, ExactMatch>,
    /// Nodes that are only mentioned and can't be results, because the caller asks for others.
    others: HashSet<Uuid>,
    /// Tokens of the mentioned names.
    pub(in crate::search) mentions: HashSet<String>,
}

impl NameMatches {
    /// The nodes that are only mentioned.
    pub(super) fn mentions_only(&self) -> impl Iterator<Item = Uuid> {
        let mentions = self.nodes.iter().filter(|(_, exact)| exact.mention);
        mentions.map(|(node, _)| *node).chain(self.others.iter().copied())
    }
}

/// The words of a text that are searched for phrases. One that is repeated at once says nothing more.
pub(in crate::search) fn phrase_words(refanged: &str) -> Vec<&str> {
    let mut distinct: Vec<&str> = Vec::new();
    for word in words(refanged) {
        if distinct.len() == MAX_WORDS {
            break;
        }
        if distinct.last() != Some(&word) {
            distinct.push(word);
        }
    }
    distinct
}

/// Finds the visible nodes that a query names.
pub(super) fn find_named(
    text: &str,
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
) -> Result<NameMatches, SearchError> {
    let mut named = NameMatches::default();
    for found in keywords.with_key(text, allowed)? {
        named.nodes.insert(
            found.node,
            ExactMatch {
                whole: Some(found.kind),
                share: 1.0,
                mention: false,
                phrase: None,
            },
        );
    }
    let refanged = refang(text);
    let words = phrase_words(&refanged);
    let weights: Vec<f32> = words.iter().map(|word| weight(word)).collect();
    let total = weights.iter().sum::<f32>().max(1.0);
    let mut taken = HashSet::new();
    for length in (1..=MAX_PHRASE.min(words.len())).rev() {
        for (start, (phrase, weights)) in words.windows(length).zip(weights.windows(length)).enumerate() {
            let inside = (start..start + length).all(|word| taken.contains(&word));
            let weight = weights.iter().sum::<f32>();
            if inside || weight == 0.0 || (length == 1 && phrase.iter().all(|word| word.chars().count() < 2))
            {
                continue;
            }
            if named.add_phrase((start, phrase), weight / total, total, allowed, keywords)? {
                taken.extend(start..start + length);
            }
        }
    }
    let others = words.iter().enumerate();
    let others = others
        .filter(|(at, _)| !taken.contains(at))
        .map(|(_, word)| *word);
    let query = RareQuery {
        text,
        words: others.collect(),
        total,
    };
    named.add_rare(holders_of_rare(&query, allowed, keywords)?);
    for (start, word) in words.into_iter().enumerate() {
        named.add_part((start, word), 1.0 / total, allowed, keywords)?;
    }
    Ok(named)
}

impl NameMatches {
    /// Looks up one phrase; true if it is a key of any node.
    fn add_phrase(
        &mut self,
        (start, phrase): (usize, &[&str]),
        share: f32,
        total: f32,
        allowed: &CompiledFilter,
        keywords: &Keywords<'_>,
    ) -> Result<bool, SearchError> {
        let key = phrase.join(" ");
        let found = keywords.with_key(&key, allowed)?;
        // A name means the same whatever the caller asks for.
        let seen = match allowed.widest() {
            Some(widest) => &keywords.with_key(&key, widest)?,
            None => &found,
        };
        // A technique or vulnerability named in a text is its subject; an actor or tool may be a mention.
        let mention = total >= TEXT_WORDS as f32
            && share <= MENTION_SHARE
            && seen.iter().all(|seen| is_entity(seen.class));
        for found in &found {
            let exact = self.nodes.entry(found.node).or_default();
            exact.phrase.get_or_insert(Phrase {
                kind: found.kind,
                start,
                length: phrase.len(),
            });
            exact.share = (exact.share + share).min(1.0);
            exact.mention |= mention;
        }
        if mention && !seen.is_empty() {
            let others = seen.iter().map(|seen| seen.node);
            self.others
                .extend(others.filter(|node| !self.nodes.contains_key(node)));
            self.mentions
                .extend(phrase.iter().flat_map(|word| tokenize(word)));
        }
        Ok(!seen.is_empty())
    }
}

impl NameMatches {
    /// Adds the nodes that hold so many rare words of the query.
    fn add_rare(&mut self, holders: HashMap<Uuid, usize>) {
        for (node, words) in holders {
            let share = RARE_SHARE + NEXT_RARE_SHARE * (words.saturating_sub(1)) as f32;
            let exact = self.nodes.entry(node).or_default();
            exact.share = exact.share.max(share.min(1.0));
        }
    }

    /// Looks up what a word contains, starts or ends: the host of a URL, the prefix of a hash, the UUID of a STIX id.
    fn add_part(
        &mut self,
        (start, word): (usize, &str),
        share: f32,
        allowed: &CompiledFilter,
        keywords: &Keywords<'_>,
    ) -> Result<(), SearchError> {
        for node in part_holders(word, allowed, keywords)? {
            let exact = self.nodes.entry(node).or_default();
            exact.share = exact.share.max(share);
            exact.phrase.get_or_insert(Phrase {
                kind: KeyKind::Identifier,
                start,
                length: 1,
            });
        }
        Ok(())
    }
}

/// The nodes that have what a word contains, starts or ends: the host of a URL, the prefix of a hash, the UUID of a STIX id.
pub(super) fn part_holders(
    word: &str,
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
) -> Result<Vec<Uuid>, SearchError> {
    let mut found = Vec::new();
    if let Some(host) = host(word) {
        let carriers = keywords.with_key(host, allowed)?;
        found.extend(carriers.into_iter().map(|found| found.node));
    }
    if is_hash_beginning(word) {
        found.extend(keywords.with_prefix(&canonical_key(word), allowed, MAX_COMPLETIONS)?);
    }
    if Uuid::try_parse(word).is_ok() {
        for row in &STIX_TYPES {
            let carriers = keywords.with_key(&format!("{}--{word}", row.stix), allowed)?;
            found.extend(carriers.into_iter().map(|found| found.node));
        }
    }
    Ok(found)
}

/// Stop words have no weight in a phrase's share of the query.
fn weight(word: &str) -> f32 {
    if tokenize(word).is_empty() { 0.0 } else { 1.0 }
}

fn is_hash_beginning(word: &str) -> bool {
    (MIN_PREFIX..=128).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_hexdigit())
        && word.bytes().any(|b| b.is_ascii_digit())
}
