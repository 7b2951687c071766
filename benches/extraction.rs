//! Precision and recall of rule-based extraction on its corpus, and its throughput on several megabytes.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use serde::Deserialize;
use threat_memory::domain::extraction::{EntityKind, Extractor};

#[derive(Deserialize)]
struct Sample {
    text: String,
    hits: Vec<(EntityKind, String)>,
}

fn main() -> Result<(), serde_json::Error> {
    let start = Instant::now();
    let extractor = Extractor::shared();
    println!("built in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let samples: Vec<Sample> = include_str!("../tests/data/extraction_corpus.jsonl")
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    quality(extractor, &samples);
    let corpus: String = samples
        .iter()
        .map(|sample| format!("{}\n", sample.text))
        .collect();
    speed(extractor, "corpus", &corpus);
    let quiet: String = samples
        .iter()
        .filter(|s| s.hits.is_empty())
        .map(|s| format!("{}\n", s.text))
        .collect();
    speed(extractor, "corpus without hits", &quiet);
    Ok(())
}

fn quality(extractor: &Extractor, samples: &[Sample]) {
    let (mut right, mut found, mut expected) = (0, 0, 0);
    for sample in samples {
        let mut open: HashMap<(EntityKind, String), usize> = HashMap::new();
        for hit in &sample.hits {
            *open.entry(hit.clone()).or_default() += 1;
        }
        expected += sample.hits.len();
        for hit in extractor.extract(&sample.text) {
            found += 1;
            if let Some(left) = open.get_mut(&(hit.kind, hit.value)).filter(|left| **left > 0) {
                *left -= 1;
                right += 1;
            }
        }
    }
    println!(
        "{} sentences, {expected} expected hits: precision {:.4}, recall {:.4}",
        samples.len(),
        f64::from(right) / f64::from(found),
        f64::from(right) / expected as f64,
    );
}

/// The best of five single-threaded passes over at least 8 MB.
fn speed(extractor: &Extractor, name: &str, text: &str) {
    let text = text.repeat(8_000_000 / text.len() + 1);
    let mut best = f64::INFINITY;
    let mut hits = 0;
    for _ in 0..5 {
        let start = Instant::now();
        hits = black_box(extractor.extract(black_box(&text))).len();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let megabytes = text.len() as f64 / 1e6;
    println!(
        "{name}: {:.1} MB/s, {:.0} hits/s",
        megabytes / best,
        hits as f64 / best
    );
}
