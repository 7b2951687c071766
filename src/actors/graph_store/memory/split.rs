//! The parts of a group that have nothing to do with each other, so that each can have its own transaction.
//!
//! The engine works on the rows of a transaction one after the other, on one core. The transactions of a group run side
//! by side. One may fail without the others, so no part may write, or build on, what another one writes.

use std::collections::HashMap;

use super::evolution::Known;
use super::prepare::Prepared;
use super::state::{Memory, Pending};
use crate::store::relation_id;

/// Fewest notes that are worth a transaction of their own.
const LEAST: usize = 2;

/// Divides requests into at most so many parts. Requests that touch the same thing stay together, in their order.
pub(super) fn split(
    memory: &Memory,
    requests: Vec<Pending>,
    known: &Known,
    most: usize,
) -> Vec<Vec<Pending>> {
    let sizes: Vec<usize> = requests.iter().map(|request| request.notes.len()).collect();
    let most = most.min(sizes.iter().sum::<usize>() / LEAST).min(sizes.len());
    if most < 2 {
        return vec![requests];
    }
    let mut touched = Touched::new(requests.len());
    for (place, request) in requests.iter().enumerate() {
        for note in request.notes.iter().flatten() {
            touched.by(memory, place, note, known);
        }
    }
    let mut parts: Vec<(usize, Vec<Pending>)> = Vec::new();
    parts.resize_with(most, Default::default);
    let mut part_of: HashMap<usize, usize> = HashMap::new();
    for (place, request) in requests.into_iter().enumerate() {
        let smallest = || (0..most).min_by_key(|part| parts.get(*part).map(|(notes, _)| *notes));
        let root = touched.root(place);
        let part = *part_of.entry(root).or_insert_with(|| smallest().unwrap_or(0));
        if let Some((notes, part)) = parts.get_mut(part) {
            *notes += request.notes.len();
            part.push(request);
        }
    }
    parts.retain(|(_, part)| !part.is_empty());
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Which requests touch the same things: a disjoint-set forest.
struct Touched {
    /// For each request an earlier one that belongs to it, or itself.
    earlier: Vec<usize>,
    /// The first request that touched a thing, by its id or digest.
    first: HashMap<[u8; 16], usize>,
}

impl Touched {
    fn new(requests: usize) -> Self {
        Self {
            earlier: (0..requests).collect(),
            first: HashMap::new(),
        }
    }

    /// Records what a note of a request writes or builds on: itself, its text, the stored note with the same text, the
    /// note it supersedes, and entities and relationships that the graph does not have.
    fn by(&mut self, memory: &Memory, place: usize, new: &Prepared, known: &Known) {
        let graph = memory.graph();
        let same = graph.duplicate_of(&new.digest);
        let notes = [Some(new.note.id), same, known.near_duplicate(new.note.id)];
        self.touch(place, new.digest);
        for note in notes.into_iter().flatten() {
            self.touch(place, note.into_bytes());
        }
        let mentions = &new.note.mentions;
        for entity in mentions.iter().filter(|entity| !graph.has_entity(**entity)) {
            self.touch(place, entity.into_bytes());
        }
        for relation in &new.mentions.relations {
            let ends = (mentions.get(relation.source), mentions.get(relation.target));
            let (Some(&source), Some(&target)) = ends else {
                continue;
            };
            let id = relation_id(memory.workspace, source, &relation.relationship, target);
            if graph.relation(id).is_none() {
                self.touch(place, id.into_bytes());
            }
        }
    }

    fn touch(&mut self, place: usize, thing: [u8; 16]) {
        let first = *self.first.entry(thing).or_insert(place);
        let (a, b) = (self.root(first), self.root(place));
        if let Some(earlier) = self.earlier.get_mut(a.max(b)) {
            *earlier = a.min(b);
        }
    }

    /// The first of the requests that belong together with this one.
    fn root(&mut self, mut place: usize) -> usize {
        while let Some(&earlier) = self.earlier.get(place)
            && earlier != place
        {
            // Halves the path for the next search.
            let next = self.earlier.get(earlier).copied().unwrap_or(earlier);
            if let Some(slot) = self.earlier.get_mut(place) {
                *slot = next;
            }
            place = next;
        }
        place
    }
}
