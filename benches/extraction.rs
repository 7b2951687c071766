//! Precision and recall of rule-based extraction on its corpus, and its throughput on several megabytes.
//!
//! `ANNOTATED` may name a file of foreign sentences, one a line, whose names are marked: `[m:Emotet]` for malware,
//! `[g:APT28]` for groups, `[t:PsExec]` for tools. The names that the rules find in them are then scored too.

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use serde::Deserialize;
use threat_memory::domain::extraction::{EntityKind, Extractor};

#[derive(Deserialize)]
struct Sample {
    text: String,
    hits: Vec<(EntityKind, String)>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let extractor = Extractor::shared();
    println!("built in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    if let Some(file) = std::env::var_os("ANNOTATED") {
        foreign(extractor, &std::fs::read_to_string(file)?);
    }
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

/// Prints the recall of each class and the precision of all names. A name counts as found if a hit overlaps it.
fn foreign(extractor: &Extractor, lines: &str) {
    let (mut expected, mut found) = (HashMap::<char, usize>::new(), HashMap::<char, usize>::new());
    let (mut right, mut wrong) = (0, 0);
    for line in lines.lines() {
        let (text, marked) = unmarked(line);
        let hits: Vec<_> = extractor
            .extract(&text)
            .into_iter()
            .filter(|hit| hit.kind.is_name())
            .collect();
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        for (class, span) in &marked {
            *expected.entry(*class).or_default() += 1;
            if hits.iter().any(|hit| overlap(&hit.span, span)) {
                *found.entry(*class).or_default() += 1;
            } else {
                println!("missed {class} {:?} in {text:?}", text.get(span.clone()));
            }
        }
        for hit in hits {
            if marked.iter().any(|(_, span)| overlap(&hit.span, span)) {
                right += 1;
            } else {
                wrong += 1;
                println!("wrong {} {:?} in {text:?}", hit.kind, hit.value);
            }
        }
    }
    for (class, all) in expected {
        let found = found.get(&class).copied().unwrap_or_default();
        println!("{class}: recall {:.3} of {all}", found as f64 / all as f64);
    }
    println!(
        "precision {:.3} of {}",
        f64::from(right) / f64::from(right + wrong),
        right + wrong
    );
}

/// A line without its marks, and the class and place of each marked name.
fn unmarked(line: &str) -> (String, Vec<(char, Range<usize>)>) {
    let (mut text, mut names) = (String::new(), Vec::new());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        text.push_str(before);
        let mark = ["m:", "g:", "t:"]
            .into_iter()
            .find(|mark| after.starts_with(mark));
        match mark.and_then(|mark| Some((mark, after.get(2..)?.split_once(']')?))) {
            Some((mark, (name, behind))) => {
                let class = mark.chars().next().unwrap_or('m');
                names.push((class, text.len()..text.len() + name.len()));
                text.push_str(name);
                rest = behind;
            }
            None => {
                text.push('[');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    (text, names)
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
