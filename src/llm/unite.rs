//! Merges the findings of the rules and of a model into one extraction.
//!
//! The rules take precedence: their values, types and confidences are kept. Only the confidence of a name rises if the
//! model found it too. The model adds descriptions, unlisted names and relations, each checked against the text. Entities
//! not found there are flagged and get a low confidence; relations without evidence are dropped.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::answer::{AnswerEntity, AnswerRelation, ChunkAnswer, MAX_ENTITIES, MAX_RELATIONS};
use super::belief::weigh_evidence;
use super::ground::{Haystack, fold, quote_names};
use crate::domain::extraction::{EntityKind, Gazetteer, entity_of_name, mark_dual_use, refang};
use crate::domain::naming::identity_of;
use crate::domain::staging::{ExtractedEntity, ExtractedRelation, Extraction};

const RELATION: f64 = 0.6;
const MAX_ALIASES: usize = 40;
/// Maximum number of entities and relations processed over all answers, which bounds the work an answer can cause.
const MAX_MENTIONS: usize = 5000;

/// Merges the rules' extraction of `text` with a model's answers about its chunks.
pub fn unite(text: &str, rules: Extraction, answers: Vec<ChunkAnswer>) -> Extraction {
    let mut union = Union::new(text, rules);
    let (entities, relations): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .map(|answer| (answer.entities, answer.relations))
        .unzip();
    let (entities, relations) = (entities.concat(), relations.concat());
    union.dropped.entities += entities.len().saturating_sub(MAX_MENTIONS);
    union.dropped.beyond_limit += relations.len().saturating_sub(MAX_MENTIONS);
    for entity in entities.into_iter().take(MAX_MENTIONS) {
        union.entity(&entity);
    }
    for relation in relations.iter().take(MAX_MENTIONS) {
        union.relation(relation);
    }
    let mut united = union.finish();
    mark_dual_use(text, &mut united);
    united
}

struct Union {
    haystack: Haystack,
    out: Extraction,
    by_identity: HashMap<String, usize>,
    by_name: HashMap<String, usize>,
    related: HashSet<(usize, usize, String)>,
    /// Numbers of items that the model added.
    entities: usize,
    relations: usize,
    dropped: DropCounts,
}

/// Numbers of dropped items, by reason.
#[derive(Default)]
struct DropCounts {
    entities: usize,
    unknown_ends: usize,
    unproved: usize,
    beyond_limit: usize,
}

impl Union {
    fn new(text: &str, rules: Extraction) -> Self {
        let mut union = Union {
            haystack: Haystack::new(text),
            by_identity: HashMap::new(),
            by_name: HashMap::new(),
            related: HashSet::new(),
            entities: 0,
            relations: 0,
            dropped: DropCounts::default(),
            out: Extraction::default(),
        };
        for entity in rules.entities {
            union.push(entity);
        }
        for relation in &rules.relations {
            let key = (relation.source, relation.target, relation.relationship.clone());
            union.related.insert(key);
        }
        union.out.relations = rules.relations;
        union.out.warnings = rules.warnings;
        union
    }

    fn push(&mut self, entity: ExtractedEntity) -> usize {
        let at = self.out.entities.len();
        for name in names(&entity) {
            self.by_name.entry(key(name)).or_insert(at);
        }
        self.by_identity.insert(entity.identity.clone(), at);
        self.out.entities.push(entity);
        at
    }

    fn entity(&mut self, said: &AnswerEntity) {
        let fresh = entity_of_name(said.node_type, &said.name);
        let known = self.by_identity.get(&fresh.identity).or_else(|| {
            self.by_name
                .get(&key(&fresh.name))
                .filter(|at| self.is_same_entity(**at, &fresh))
        });
        let at = match known.copied() {
            Some(at) => {
                self.confirm(at, fresh, said);
                at
            }
            None if self.entities >= MAX_ENTITIES => {
                self.dropped.entities += 1;
                return;
            }
            None => {
                self.entities += 1;
                let fresh = weigh_evidence(&self.haystack, fresh, said);
                self.push(fresh)
            }
        };
        self.by_name.entry(key(&said.name)).or_insert(at);
        self.describe(at, said);
    }

    /// Believes a name that rules and model both found as much as the more certain of them does.
    fn confirm(&mut self, at: usize, fresh: ExtractedEntity, said: &AnswerEntity) {
        let Some(entity) = self.out.entities.get_mut(at) else {
            return;
        };
        let is_name = entity.kind.is_some_and(EntityKind::is_name);
        if is_name && entity.node_type == fresh.node_type {
            let confidence = weigh_evidence(&self.haystack, fresh, said).confidence;
            entity.confidence = entity.confidence.max(confidence);
        }
    }

    /// Whether an entity of that name is the one meant although its identity differs: it has the same type and merges
    /// by name.
    fn is_same_entity(&self, at: usize, fresh: &ExtractedEntity) -> bool {
        let entity = self.out.entities.get(at);
        entity.is_some_and(|entity| entity.node_type == fresh.node_type && entity.merge_by_name)
    }

    /// Adds the model's description of an entity without changing known facts.
    fn describe(&mut self, at: usize, said: &AnswerEntity) {
        let aliases: Vec<String> = said
            .aliases
            .iter()
            .filter(|alias| self.is_alias(at, alias))
            .cloned()
            .collect();
        for alias in &aliases {
            self.by_name.entry(key(alias)).or_insert(at);
        }
        let Some(entity) = self.out.entities.get_mut(at) else {
            return;
        };
        if entity.description.is_empty() {
            entity.description.clone_from(&said.description);
        }
        let reason = format!("language model: {}", said.reasoning);
        if entity.reasoning.is_empty() {
            entity.reasoning = reason;
        } else if !entity.reasoning.contains("language model: ") {
            entity.reasoning = format!("{}; {reason}", entity.reasoning);
        }
        if entity.merge_by_name && !aliases.is_empty() {
            let listed = entity
                .properties
                .entry("aliases")
                .or_insert_with(|| Value::Array(Vec::new()));
            add_aliases(listed, &entity.name, aliases);
        }
    }

    /// Whether an alias is acceptable: it occurs in the text and belongs to no other entity. A wrong one would merge
    /// two things into one node.
    fn is_alias(&self, at: usize, alias: &str) -> bool {
        let Some(entity) = self.out.entities.get(at) else {
            return false;
        };
        let (identity, _) = identity_of(entity.node_type, alias);
        let others = self.by_identity.get(&identity).is_some_and(|other| *other != at)
            || self.by_name.get(&key(alias)).is_some_and(|other| *other != at);
        let listed = Gazetteer::shared()
            .resolve(alias)
            .map(|entry| entry.name.as_str());
        let foreign = listed.is_some_and(|name| name != entity.name);
        let plain = entity_of_name(entity.node_type, alias).node_type == entity.node_type;
        self.haystack.name(alias).is_some() && !others && !foreign && plain
    }

    fn relation(&mut self, said: &AnswerRelation) {
        let (Some(source), Some(target)) = (self.lookup(&said.source), self.lookup(&said.target)) else {
            self.dropped.unknown_ends += 1;
            return;
        };
        if source == target
            || self
                .related
                .contains(&(source, target, said.relationship.clone()))
        {
            return;
        }
        let stands = self.haystack.quote(&said.quote).is_some();
        let both = self.is_named(&said.quote, source, &said.source)
            && self.is_named(&said.quote, target, &said.target);
        if !(stands && both) {
            self.dropped.unproved += 1;
            return;
        }
        if self.relations >= MAX_RELATIONS {
            self.dropped.beyond_limit += 1;
            return;
        }
        self.relations += 1;
        self.related.insert((source, target, said.relationship.clone()));
        let sure = |at: usize| self.out.entities.get(at).map_or(0.0, |entity| entity.confidence);
        self.out.relations.push(ExtractedRelation {
            source,
            target,
            relationship: said.relationship.clone(),
            proof: said.quote.clone(),
            confidence: RELATION.min(sure(source)).min(sure(target)),
        });
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        let listed = || {
            let entry = Gazetteer::shared().resolve(name)?;
            self.by_name.get(&key(&entry.name))
        };
        self.by_name.get(&key(name)).or_else(listed).copied()
    }

    fn is_named(&self, quote: &str, at: usize, called: &str) -> bool {
        let own = self
            .out
            .entities
            .get(at)
            .is_some_and(|entity| names(entity).any(|name| quote_names(quote, name)));
        own || quote_names(quote, called)
    }

    fn finish(mut self) -> Extraction {
        for (count, what) in [
            (self.dropped.entities, "entities above the limit"),
            (self.dropped.beyond_limit, "relations above the limit"),
            (
                self.dropped.unknown_ends,
                "relations between entities that it did not list",
            ),
            (
                self.dropped.unproved,
                "relations whose sentence does not stand in the text or lacks a name",
            ),
        ] {
            if count > 0 {
                self.out
                    .warnings
                    .push(format!("dropped of the language model's answer: {count} {what}"));
            }
        }
        self.out
    }
}

/// All names of an entity.
fn names(entity: &ExtractedEntity) -> impl Iterator<Item = &str> {
    let list = |key: &str| {
        entity
            .properties
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let listed = list("aliases")
        .chain(list("external_ids"))
        .filter_map(Value::as_str);
    std::iter::once(entity.name.as_str()).chain(listed)
}

fn key(name: &str) -> String {
    fold(&refang(name))
}

fn add_aliases(listed: &mut Value, name: &str, aliases: Vec<String>) {
    let Some(listed) = listed.as_array_mut() else {
        return;
    };
    for alias in aliases {
        let known = listed
            .iter()
            .filter_map(Value::as_str)
            .chain([name])
            .any(|known| key(known) == key(&alias));
        if !known && listed.len() < MAX_ALIASES {
            listed.push(alias.into());
        }
    }
}

#[cfg(test)]
mod tests;
