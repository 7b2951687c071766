//! Tests of the whole index through its public interface.

mod concurrency;
mod durability;
mod filters;
mod hidden;
mod linear;
mod memtable;
mod names;
mod passages;
mod rare;
mod relations;
mod vectors;
mod visibility;

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::{
    EmbedError, Embedder, Facts, Filter, IndexDoc, IndexSettings, Mode, Population, SearchIndex,
    WorkspaceIndex, quantize,
};
use crate::domain::ids::IdSecret;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;

const DIMENSION: usize = 32;

/// An embedder that hashes words: equal words give vectors of the same direction.
pub(super) struct WordHash(pub(super) &'static str);

impl Embedder for WordHash {
    fn id(&self) -> String {
        self.0.to_owned()
    }

    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| word_vector(text)).collect())
    }
}

fn word_vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSION];
    for word in text.to_lowercase().split_whitespace() {
        let mut random = Random(super::text::fnv1a(word.bytes()));
        vector.iter_mut().for_each(|x| *x += random.unit());
    }
    vector
}

/// A small deterministic generator, so that every run sees the same numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 29);
        x.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (x >> 32)
    }

    /// A number from -1 to 1.
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

pub(super) fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + number)
}

/// A node with this name and text, and their vector.
pub(super) fn doc(number: u128, name: &str, body: &str) -> IndexDoc {
    IndexDoc {
        population: Population::Main,
        node_id: id(number),
        rev: 1,
        node_type: NodeType::Actor,
        status: NodeStatus::Active,
        tlp: Tlp::White,
        name: name.to_owned(),
        aliases: Vec::new(),
        identifiers: Vec::new(),
        body: body.to_owned(),
        facts: Facts::default(),
        vector: Some(quantize(&word_vector(&format!("{name} {body}")))),
        ends: None,
        relation: None,
    }
}

pub(super) fn open(dir: Option<&Path>) -> SearchIndex {
    open_with(dir, "word-hash", IndexSettings::default())
}

/// What the ids of nodes are made with.
pub(super) fn id_secret() -> Arc<IdSecret> {
    Arc::new(IdSecret::new(id(99), []))
}

pub(super) fn open_with(dir: Option<&Path>, embedder: &'static str, settings: IndexSettings) -> SearchIndex {
    SearchIndex::open(dir, Arc::new(WordHash(embedder)), settings, id_secret()).unwrap()
}

/// An in-memory index of these nodes.
pub(super) fn holding(docs: Vec<IndexDoc>) -> Arc<WorkspaceIndex> {
    let workspace = open(None).workspace(id(0)).unwrap();
    workspace.apply(docs, 1).unwrap();
    workspace
}

/// The nodes found, best first.
pub(super) fn found(
    index: &WorkspaceIndex,
    query: &str,
    mode: Mode,
    filter: &Filter,
    limit: usize,
) -> Vec<Uuid> {
    let vector = quantize(&word_vector(query));
    let hits = index.search(query, Some(&vector), mode, filter, limit).unwrap();
    assert!(
        hits.is_sorted_by(|a, b| a.score >= b.score),
        "scores fall: {hits:?}"
    );
    assert!(
        hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)),
        "scores are 0 to 1: {hits:?}"
    );
    hits.into_iter().map(|hit| hit.node_id).collect()
}

pub(super) const NONE: [Uuid; 0] = [];

pub(super) fn all() -> Filter {
    Filter::up_to(Tlp::Red)
}

pub(super) const MODES: [Mode; 3] = [Mode::Blended, Mode::Keyword, Mode::Vector];
