//! Hits of a text, united: one entity per distinct thing, and the relationships that the text states between them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::gazetteer::canonical_name;
use super::names::INTRODUCED_NAME;
use super::rules::cve;
use super::{EntityKind, KnownThing, Mention, cve_id, stated_relations};
use crate::domain::normal_form::normal_form;
use crate::domain::staging::ExtractedRelation;

/// Bytes of a name or address whose parts are looked at.
const MAX_NAME: usize = 512;

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

    /// Adds another name that the text gives it.
    fn also(&mut self, alias: &str);

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
        if let (Some(alias), Some(entity)) = (stated_alias(text, hit), entities.get_mut(at)) {
            entity.also(alias);
        }
        of_hit.push(at);
        for inner in inner_hits(hit) {
            let mut entity = E::of_hit(&inner);
            if let Entry::Vacant(free) = places.entry(entity.key()) {
                free.insert(entities.len());
                entity.begin(text, &inner);
                entities.push(entity);
            }
        }
    }
    let relations = relations(text, hits, &of_hit, &entities);
    (entities, relations)
}

/// The other name that the text gives to what it names before.
fn stated_alias<'t>(text: &'t str, hit: &Mention) -> Option<&'t str> {
    let name = hit.text(text);
    let own = hit.known.first().map_or(&hit.value, |thing| &thing.name);
    (hit.rule == INTRODUCED_NAME && canonical_name(name) != canonical_name(own)).then_some(name)
}

/// Services that have a page for each file, with its hash in the address.
const LOOKUPS: &[&str] = &[
    "virustotal.com",
    "bazaar.abuse.ch",
    "hybrid-analysis.com",
    "joesandbox.com",
    "tria.ge",
    "malshare.com",
    "opentip.kaspersky.com",
    "otx.alienvault.com",
];

/// What a hit states beside itself: the CVE id in the name of an exploit's file or in an address, and the hash in the
/// address of a service that looks hashes up; of a name that things of several types carry, the others. Such a value has
/// no place of its own in the text.
fn inner_hits(hit: &Mention) -> Vec<Mention> {
    if let Some(others) = hit.known.get(1..).filter(|others| !others.is_empty()) {
        let other = |thing: &Arc<KnownThing>| Mention {
            kind: thing.kind,
            value: thing.value.clone(),
            known: std::iter::once(thing).chain(&hit.known).map(Arc::clone).collect(),
            ..hit.clone()
        };
        return others.iter().map(other).collect();
    }
    let named = matches!(
        hit.kind,
        EntityKind::Url | EntityKind::FileName | EntityKind::FilePath
    );
    if !named || hit.value.len() > MAX_NAME {
        return Vec::new();
    }
    let host = hit
        .value
        .split_once("://")
        .map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let looked_up = hit.kind == EntityKind::Url
        && LOOKUPS.iter().any(|service| {
            host.strip_suffix(service)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
    let words = hit
        .value
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_')));
    let inner = words.filter(|word| *word != hit.value).filter_map(|word| {
        if looked_up && let Some(kind) = digest_kind(word) {
            return Some((kind, normal_form(kind, word), "hash-in-address"));
        }
        let begin = word
            .char_indices()
            .find(|(at, _)| word.get(*at..).is_some_and(cve::begins))?
            .0;
        let id = word
            .get(begin..)?
            .split('_')
            .take(3)
            .collect::<Vec<_>>()
            .join("_");
        let id = cve_id(&id).or_else(|| cve_id(id.split('_').next()?))?;
        Some((EntityKind::Cve, id, "cve-id-in-name"))
    });
    let inner = inner.map(|(kind, value, rule)| Mention {
        kind,
        value,
        span: hit.span.clone(),
        rule,
        confidence: hit.confidence.min(0.8),
        known: Vec::new(),
    });
    inner.collect()
}

fn digest_kind(word: &str) -> Option<EntityKind> {
    if !word.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    match word.len() {
        32 => Some(EntityKind::Md5),
        40 => Some(EntityKind::Sha1),
        64 => Some(EntityKind::Sha256),
        _ => None,
    }
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
