//! Look-up of identifiers: the nodes that have a value, whose value holds it or is held by it, or whose texts have it.
//! What is merely like it is no result.

use std::collections::HashMap;

use uuid::Uuid;

use super::SearchResults;
use super::phrases::part_holders;
use super::reasons::{Reason, Reasons};
use super::votes::{self, Voters};
use crate::domain::kinds::EntityKind;
use crate::domain::network::Network;
use crate::domain::question::AskedIdentifier;
use crate::domain::why::{Match, MatchedBy, NamedBy, Shares};
use crate::search::document::{CompiledFilter, Hit, KeyKind};
use crate::search::error::SearchError;
use crate::search::keyword::{Keywords, TextScope};
use crate::search::text::analyzer::tokenize;
use crate::search::text::host;
use crate::search::vectors::table::Table;

/// Scores: it is the node's value or name, an alias, a part of its value or the whole of which its value is a part, stands
/// in its text or name, stands in a text about it.
const OWN: f32 = 1.0;
const ALIAS: f32 = 0.95;
const PART: f32 = 0.92;
const IN_TEXT: f32 = 0.85;
const IN_NAME: f32 = 0.82;
const IN_PASSAGE: f32 = 0.8;
/// Nodes that may hold one word of an identifier of several words.
const MAX_HOLDERS: usize = 1_000;

/// The nodes that have or hold one of the identifiers, best first.
pub(in crate::search) fn find(
    identifiers: &[AskedIdentifier],
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
    table: &Table,
    limit: usize,
) -> Result<SearchResults, SearchError> {
    let mut found = Found::default();
    for identifier in identifiers {
        found.add_owners(identifier, allowed, keywords)?;
        found.add_parts(identifier, allowed, keywords, limit)?;
        found.add_holders(identifier, allowed, keywords, limit)?;
        found.add_longer_names(identifier, allowed, keywords)?;
    }
    let voters = Voters { allowed, table };
    if table.count(&voters) > 0 {
        found.add_passages(identifiers, &voters, keywords)?;
    }
    Ok(found.into_results(limit))
}

/// Nodes, each with the strongest hit of it.
#[derive(Default)]
struct Found {
    hits: HashMap<Uuid, (Hit, Reason)>,
    votes: votes::Votes,
}

impl Found {
    fn add(&mut self, node_id: Uuid, score: f32, matched: MatchedBy, text: &str) {
        let known = self.hits.get(&node_id).map_or(0.0, |(hit, _)| hit.score);
        if known >= score {
            return;
        }
        let kind = match matched {
            MatchedBy::Value => Some(NamedBy::Identifier),
            MatchedBy::Name => Some(NamedBy::Name),
            MatchedBy::Alias => Some(NamedBy::Alias),
            MatchedBy::Words | MatchedBy::Meaning | MatchedBy::Graph => None,
        };
        let hit = Hit {
            node_id,
            score,
            matched,
        };
        let reason = Reason {
            shares: Shares::WORDS,
            matched: kind.map(|kind| Match {
                kind,
                text: text.to_owned(),
            }),
        };
        self.hits.insert(node_id, (hit, reason));
    }

    /// The nodes whose own it is.
    fn add_owners(
        &mut self,
        identifier: &AskedIdentifier,
        allowed: &CompiledFilter,
        keywords: &Keywords<'_>,
    ) -> Result<(), SearchError> {
        for spelling in identifier.spellings() {
            for owner in keywords.with_key(&spelling, allowed)? {
                let score = if owner.kind == KeyKind::Alias { ALIAS } else { OWN };
                self.add(owner.node, score, owner.kind.into(), &identifier.text);
            }
        }
        Ok(())
    }

    /// The nodes whose value is a part of it (the host of a URL), begins with it (a hash), or is a network around it or
    /// lies inside it.
    fn add_parts(
        &mut self,
        identifier: &AskedIdentifier,
        allowed: &CompiledFilter,
        keywords: &Keywords<'_>,
        limit: usize,
    ) -> Result<(), SearchError> {
        let mut found = part_holders(&identifier.value, allowed, keywords)?;
        if let Some(network) = Network::read(&identifier.value) {
            for hits in keywords.networks(&[network], allowed, limit)? {
                let near = hits.around.into_iter().chain(hits.inside);
                found.extend(near.map(|(_, node)| node));
            }
        }
        for node in found {
            self.add(node, PART, MatchedBy::Value, &identifier.text);
        }
        Ok(())
    }

    /// The nodes in whose name or text it stands.
    fn add_holders(
        &mut self,
        identifier: &AskedIdentifier,
        allowed: &CompiledFilter,
        keywords: &Keywords<'_>,
        limit: usize,
    ) -> Result<(), SearchError> {
        for spelling in identifier.spellings() {
            let tokens = whole_tokens(&spelling);
            let holders = match tokens.as_slice() {
                [] => continue,
                [token] => {
                    let words = [(token.clone(), 1.0)];
                    let best = keywords.best(TextScope::Nodes, &words, allowed, limit)?;
                    best.into_iter().map(|(node, _)| node).collect()
                }
                tokens => holders_of_all(TextScope::Nodes, tokens, allowed, keywords)?,
            };
            for node in holders {
                self.add(node, IN_TEXT, MatchedBy::Words, &identifier.text);
            }
        }
        if let Some(host) = host(&identifier.value) {
            for node in holders_of_all(TextScope::Nodes, &whole_tokens(host), allowed, keywords)? {
                self.add(node, IN_TEXT, MatchedBy::Words, &identifier.text);
            }
        }
        Ok(())
    }

    /// The nodes whose names have all that a name with dots is made of: it may be the end of theirs, or a name rather than a
    /// domain or a file.
    fn add_longer_names(
        &mut self,
        identifier: &AskedIdentifier,
        allowed: &CompiledFilter,
        keywords: &Keywords<'_>,
    ) -> Result<(), SearchError> {
        if !matches!(identifier.kind, Some(EntityKind::Domain | EntityKind::FileName)) {
            return Ok(());
        }
        let pieces = identifier.value.split(|c: char| !c.is_alphanumeric());
        let pieces: Vec<String> = pieces.flat_map(tokenize).collect();
        for node in holders_of_all(TextScope::Names, &pieces, allowed, keywords)? {
            self.add(node, IN_NAME, MatchedBy::Words, &identifier.text);
        }
        Ok(())
    }

    /// The nodes about which a passage has it.
    fn add_passages(
        &mut self,
        identifiers: &[AskedIdentifier],
        voters: &Voters<'_>,
        keywords: &Keywords<'_>,
    ) -> Result<(), SearchError> {
        for identifier in identifiers {
            for spelling in identifier.spellings() {
                let [token] = &*whole_tokens(&spelling) else {
                    continue;
                };
                let words = [(token.clone(), 1.0)];
                let passages = keywords.best(TextScope::Passages, &words, voters, votes::DEPTH)?;
                let votes = votes::count(&passages, &[], voters, &Default::default(), |_| None);
                for (node, vote) in votes {
                    self.add(node, IN_PASSAGE, MatchedBy::Words, &identifier.text);
                    if let Some((hit, reason)) = self.hits.get_mut(&node)
                        && hit.score <= IN_PASSAGE
                    {
                        reason.shares = Shares::of(0.0, 0.0, 1.0);
                        self.votes.insert(node, vote);
                    }
                }
            }
        }
        Ok(())
    }

    fn into_results(self, limit: usize) -> SearchResults {
        let (mut hits, mut reasons) = (Vec::new(), Reasons::new());
        for (node, (hit, reason)) in self.hits {
            hits.push(hit);
            reasons.insert(node, reason);
        }
        hits.sort_unstable_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.node_id.cmp(&b.node_id))
        });
        hits.truncate(limit);
        SearchResults {
            hits,
            votes: self.votes,
            reasons,
            ..SearchResults::default()
        }
    }
}

/// The token of each word of an identifier as a whole, without those of its parts.
fn whole_tokens(identifier: &str) -> Vec<String> {
    let words = identifier.split_whitespace();
    words
        .filter_map(|word| tokenize(word).into_iter().next())
        .collect()
}

/// The nodes that hold all of these tokens, as far as one of them is in few.
fn holders_of_all(
    texts: TextScope,
    tokens: &[String],
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
) -> Result<Vec<Uuid>, SearchError> {
    let mut common: Option<Vec<Uuid>> = None;
    for token in tokens {
        let Some(holders) = keywords.holders(texts, token, allowed, MAX_HOLDERS)? else {
            continue;
        };
        common = Some(match common {
            None => holders,
            Some(known) => known.into_iter().filter(|node| holders.contains(node)).collect(),
        });
    }
    Ok(common.unwrap_or_default())
}
