//! The search index alone, without a service: keyword, vector and blended search for each procedure sentence.
//!
//! There are two corpora: the techniques alone, and every active object of the bundle. A hash splits the sentences into
//! two halves, so that a setting tuned on one half can be validated on the other.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use threat_memory::domain::ids::IdSecret;
use threat_memory::domain::node::NodeType;
use threat_memory::domain::tlp::Tlp;
use threat_memory::search::{
    BuiltinEmbedder, Filter, IndexDoc, IndexSettings, Mode, SearchIndex, embedding_text,
};
use uuid::Uuid;

use crate::Fallible;
use crate::bundle::{Sentence, is_mitigation, node};

/// Recall at 1, 5 and 10, mean reciprocal rank, and how often the actor or tool is in the first 10 results.
#[derive(Default, Clone, Copy)]
struct Quality {
    questions: usize,
    found: [usize; 3],
    reciprocal: f64,
    tellers: usize,
}

impl Quality {
    fn add(&mut self, rank: Option<usize>) {
        self.questions += 1;
        let Some(rank) = rank else { return };
        for (found, within) in self.found.iter_mut().zip([1, 5, 10]) {
            *found += usize::from(rank <= within);
        }
        self.reciprocal += 1.0 / rank as f64;
    }

    fn row(&self) -> [f64; 4] {
        let all = self.questions.max(1) as f64;
        let [one, five, ten] = self.found.map(|found| found as f64 / all);
        [one, five, ten, self.reciprocal / all]
    }
}

/// Kinds of search.
const MODES: [(&str, Mode); 3] = [
    ("keyword", Mode::Keyword),
    ("vector", Mode::Vector),
    ("blended", Mode::Blended),
];

/// Recall at 1, 5 and 10 and mean reciprocal rank of each kind of search.
type Figures = [[f64; 4]; MODES.len()];

/// Prints one table for each corpus; returns the figures for the techniques in a sentence.
pub fn run(objects: &[Value]) -> Fallible<String> {
    let nodes: Vec<IndexDoc> = objects.iter().filter_map(node).collect();
    let techniques: Vec<IndexDoc> = nodes
        .iter()
        .filter(|doc| doc.node_type == NodeType::Attck && !is_mitigation(doc))
        .cloned()
        .collect();
    let known: HashSet<Uuid> = techniques.iter().map(|doc| doc.node_id).collect();
    let sentences: Vec<Sentence> = objects
        .iter()
        .filter_map(Sentence::of)
        .filter(|sentence| known.contains(&sentence.answer))
        .collect();
    let secret = Arc::new(IdSecret::new(Uuid::new_v4(), []));
    let embedder = Arc::new(BuiltinEmbedder::load()?);
    let search = SearchIndex::open(None, embedder, IndexSettings::default(), secret)?;
    let documents = techniques.len();
    println!(
        "\n{} questions, {documents} documents: techniques",
        sentences.len()
    );
    let alone = measure(&search, techniques, &sentences)?;
    println!(
        "\n{} questions, {} documents: all active objects",
        sentences.len(),
        nodes.len()
    );
    let among_all = measure(&search, nodes, &sentences)?;
    println!(
        "\nblended is {} every figure of the single legs",
        if leads(&alone) && leads(&among_all) {
            "above"
        } else {
            "NOT above"
        }
    );
    let figures: Vec<String> = MODES
        .iter()
        .zip(alone)
        .map(|((name, _), [first, _, ten, mrr])| format!("{name} {first:.3} / {ten:.3} / {mrr:.3}"))
        .collect();
    Ok(format!(
        "The index alone, {} sentences and {documents} techniques, recall@1 / recall@10 / MRR: {}.",
        sentences.len(),
        figures.join(", ")
    ))
}

/// Prints one table.
fn measure(search: &SearchIndex, mut docs: Vec<IndexDoc>, questions: &[Sentence]) -> Fallible<Figures> {
    let texts: Vec<String> = docs
        .iter()
        .map(|doc| embedding_text(&doc.name, &doc.aliases, &doc.body))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (doc, vector) in docs.iter_mut().zip(search.embed_texts(&texts)?) {
        doc.vector = Some(vector);
    }
    let workspace = search.workspace(Uuid::new_v4())?;
    workspace.apply(docs, 1)?;
    let mut figures = Figures::default();
    println!(
        "{:10} {:>7} {:>7} {:>7} {:>7}   {:>16} {:>9} {:>8}",
        "", "R@1", "R@5", "R@10", "MRR", "MRR of halves", "actor@10", "p50 ms"
    );
    for ((name, mode), figures) in MODES.into_iter().zip(&mut figures) {
        let mut all = Quality::default();
        let mut halves = [Quality::default(); 2];
        let mut times = Vec::new();
        for question in questions {
            let begun = Instant::now();
            let vector = search.embed_query(&question.text)?;
            let hits =
                workspace.search(&question.text, Some(&vector), mode, &Filter::up_to(Tlp::Red), 100)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            let rank = hits
                .iter()
                .position(|hit| hit.node_id == question.answer)
                .map(|at| at + 1);
            all.add(rank);
            all.tellers += usize::from(hits.iter().take(10).any(|hit| hit.node_id == question.teller));
            halves[half(&question.text)].add(rank);
        }
        times.sort_by(f64::total_cmp);
        let [one, five, ten, mrr] = all.row();
        let [first, second] = halves.map(|half| half.row()[3]);
        let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
        let actor = all.tellers as f64 / all.questions.max(1) as f64;
        println!(
            "{name:10} {one:7.3} {five:7.3} {ten:7.3} {mrr:7.3}   {first:8.3} {second:7.3} {actor:9.3} {p50:8.2}"
        );
        *figures = all.row();
    }
    Ok(figures)
}

/// True if the blended search leads in every column.
fn leads([keyword, vector, blended]: &Figures) -> bool {
    let above = |other: &[f64; 4]| {
        blended
            .iter()
            .zip(other)
            .all(|(blended, single)| blended > single)
    };
    above(keyword) && above(vector)
}

fn half(text: &str) -> usize {
    text.bytes().fold(7usize, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(byte))
    }) % 2
}
