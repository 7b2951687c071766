//! Hits of a text, united: one entity per distinct thing, and the relationships that the text states between them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::{Mention, stated_relations};
use crate::domain::staging::ExtractedRelation;

/// An entity that hits are united into.
pub(in crate::domain) trait EntityOfHits {
    /// What is the same for all hits of one thing.
    type Key: Eq + Hash;

    /// The entity of a hit.
    fn of_hit(hit: &Mention) -> Self;

    fn key(&self) -> Self::Key;

    /// Completes an entity that is new, from its first hit.
    fn begin(&mut self, _text: &str, _hit: &Mention) {}

    /// Adds a further hit of the same thing.
    fn add(&mut self, other: &Self);

    /// 0 to 1.
    fn confidence(&self) -> f64;
}

/// The entities of a text's hits, each once and in text order, and the relationships that the text states, each once.
pub(in crate::domain) fn unite<E: EntityOfHits>(
    text: &str,
    hits: &[Mention],
) -> (Vec<E>, Vec<ExtractedRelation>) {
    let mut entities: Vec<E> = Vec::new();
    let mut places: HashMap<E::Key, usize> = HashMap::new();
    let mut of_hit = Vec::with_capacity(hits.len());
    for hit in hits {
        let mut entity = E::of_hit(hit);
        let at = match places.entry(entity.key()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => *free.insert(entities.len()),
        };
        match entities.get_mut(at) {
            Some(known) => known.add(&entity),
            None => {
                entity.begin(text, hit);
                entities.push(entity);
            }
        }
        of_hit.push(at);
    }
    let relations = relations(text, hits, &of_hit, &entities);
    (entities, relations)
}

fn relations<E: EntityOfHits>(
    text: &str,
    hits: &[Mention],
    of_hit: &[usize],
    entities: &[E],
) -> Vec<ExtractedRelation> {
    let mut seen = HashSet::new();
    let mut relations = Vec::new();
    for stated in stated_relations(text, hits) {
        let (Some(&source), Some(&target)) = (of_hit.get(stated.subject), of_hit.get(stated.object)) else {
            continue;
        };
        if source == target || !seen.insert((source, stated.verb, target)) {
            continue;
        }
        let sure = |at: usize| entities.get(at).map_or(0.0, E::confidence);
        relations.push(ExtractedRelation {
            source,
            target,
            relationship: stated.verb.as_str().to_owned(),
            proof: text.get(stated.sentence).unwrap_or_default().trim().to_owned(),
            confidence: sure(source).min(sure(target)),
        });
    }
    relations
}

/// Two decimals are the precision of the rules; also avoids 0.949999988 for 0.95.
pub(in crate::domain) fn round_confidence(confidence: f32) -> f64 {
    (f64::from(confidence) * 100.0).round() / 100.0
}
