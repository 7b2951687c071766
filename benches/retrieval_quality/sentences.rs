//! Procedure sentences with the whole bundle ingested, but without the sentence that is asked.
//!
//! The sentences are split into five folds. For each a fresh service ingests the bundle, in which the relationships of
//! the fold have lost their descriptions. Equal sentences are in the same fold.

use std::collections::HashSet;

use serde_json::Value;

use crate::Fallible;
use crate::ask::{MODES, ingested, results};
use crate::bundle::{Sentence, plain};
use crate::graph::Graph;

const FOLDS: usize = 5;
/// Results among which the technique is looked for.
const DEEP: usize = 100;

/// Ranks of the right technique; `None` where it was not found.
#[derive(Default)]
struct Ranks {
    among_all: Vec<Option<usize>>,
    among_techniques: Vec<Option<usize>>,
}

/// Prints a table; returns its row for the page: the mean reciprocal rank among techniques.
pub async fn run(bundle: &Value) -> Fallible<Vec<String>> {
    let mut ranks = [Ranks::default(), Ranks::default()];
    for fold in 0..FOLDS {
        let (rest, asked) = split(bundle, fold)?;
        let dir = tempfile::tempdir()?;
        let (service, client) = ingested(dir.path(), &rest).await?;
        for sentence in &asked {
            for (ranks, (_, route)) in ranks.iter_mut().zip(MODES) {
                ranks.add(&results(&client, route, &sentence.text, DEEP).await?, sentence);
            }
        }
        service.terminate()?;
    }
    print(&ranks);
    let [blended, structured] = ranks.map(|ranks| ranks.among_techniques);
    let mrr = |ranks: &[Option<usize>]| format!("{:.3}", reciprocal(ranks));
    Ok(vec![
        "sentences".to_owned(),
        blended.len().to_string(),
        mrr(&blended),
        "–".to_owned(),
        mrr(&structured),
    ])
}

/// The bundle without the sentences of a fold, and those. Every relationship with one of these texts loses it.
fn split(bundle: &Value, fold: usize) -> Fallible<(Value, Vec<Sentence>)> {
    let mut rest = bundle.clone();
    let objects = rest["objects"].as_array_mut().ok_or("a bundle has objects")?;
    let valid = Graph::of(bundle)?.objects;
    let asked: Vec<Sentence> = objects
        .iter()
        .filter(|object| {
            object["target_ref"]
                .as_str()
                .is_some_and(|id| valid.contains_key(id))
        })
        .filter_map(Sentence::of)
        .filter(|sentence| fold_of(&sentence.text) == fold)
        .collect();
    let texts: HashSet<&str> = asked.iter().map(|sentence| sentence.text.as_str()).collect();
    for object in objects {
        let text = object["description"].as_str().map(plain);
        if object["type"] == "relationship"
            && text.is_some_and(|text| texts.contains(text.as_str()))
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("description");
        }
    }
    Ok((rest, asked))
}

/// FNV-1a, so that every build has the same folds.
fn fold_of(text: &str) -> usize {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % FOLDS as u64) as usize
}

impl Ranks {
    fn add(&mut self, results: &[String], sentence: &Sentence) {
        let answer = format!("attack-pattern--{}", sentence.answer);
        self.among_all.push(results.iter().position(|id| *id == answer));
        let mut techniques = results.iter().filter(|id| id.starts_with("attack-pattern--"));
        self.among_techniques
            .push(techniques.position(|id| *id == answer));
    }
}

fn print(ranks: &[Ranks]) {
    let asked = ranks.first().map_or(0, |ranks| ranks.among_all.len());
    println!("\nsentences: {asked} of {FOLDS} folds, the whole bundle in without the sentences of the fold");
    let head = format!("{:>6} {:>6} {:>6}", "R@1", "R@10", "MRR");
    println!(
        "{:12} {:^20}   {:^20}",
        "", "among all results", "among techniques"
    );
    println!("{:12} {head}   {head}", "");
    for (ranks, (mode, _)) in ranks.iter().zip(MODES) {
        println!(
            "{mode:12} {}   {}",
            figures(&ranks.among_all),
            figures(&ranks.among_techniques)
        );
    }
}

/// Recall at 1 and 10, and the mean reciprocal rank.
fn figures(ranks: &[Option<usize>]) -> String {
    let all = ranks.len().max(1) as f64;
    let within = |first: usize| ranks.iter().flatten().filter(|at| **at < first).count() as f64 / all;
    format!("{:6.3} {:6.3} {:6.3}", within(1), within(10), reciprocal(ranks))
}

/// The mean reciprocal rank.
fn reciprocal(ranks: &[Option<usize>]) -> f64 {
    let sum: f64 = ranks.iter().flatten().map(|at| 1.0 / (at + 1) as f64).sum();
    sum / ranks.len().max(1) as f64
}
