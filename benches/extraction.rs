//! Precision and recall of rule-based extraction on its corpus, and its throughput on several megabytes.
//!
//! Run with `cargo bench --bench extraction`; `-- --report` also writes the table into docs/benchmarks.md.
//!
//! `ANNOTATED` may name a file of foreign texts, with a line `---` between two, whose names are marked: `[m:Emotet]` for
//! malware, `[g:APT28]` for groups, `[t:PsExec]` for tools. The names that the rules find in them are then scored too.

#[path = "common/report.rs"]
mod report;

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use report::Report;
use serde::Deserialize;
use threat_memory::domain::extraction::{EntityKind, Extractor};

#[derive(Deserialize)]
struct Sample {
    text: String,
    hits: Vec<(EntityKind, String)>,
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let report = Report::from_args(&args, "extraction")?;
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
    let [precision, recall] = quality(extractor, &samples);
    let corpus: String = samples
        .iter()
        .map(|sample| format!("{}\n", sample.text))
        .collect();
    let full = speed(extractor, "corpus", &corpus);
    let quiet: String = samples
        .iter()
        .filter(|s| s.hits.is_empty())
        .map(|s| format!("{}\n", s.text))
        .collect();
    let quiet = speed(extractor, "corpus without hits", &quiet);
    let head = [
        "sentences",
        "precision",
        "recall",
        "MB/s per core",
        "MB/s per core, text without hits",
    ];
    let row = [
        report::thousands(samples.len() as f64),
        format!("{precision:.3}"),
        format!("{recall:.3}"),
        format!("{full:.1}"),
        format!("{quiet:.1}"),
    ];
    let rows = [head.map(str::to_owned).to_vec(), row.to_vec()];
    report.map_or(Ok(()), |report| report.write(&report::table(&rows), ""))
}

/// The line that holds this span.
fn line_of<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    let (before, after) = text.split_at(span.start);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').map_or(text.len(), |at| span.start + at);
    &text[start..end]
}

/// Prints the recall of each class, of mentions and of the names of a text, and the precision of all names. A mention
/// counts as found if a hit overlaps it, a name if one of its mentions is found.
fn foreign(extractor: &Extractor, texts: &str) {
    let (mut mentions, mut names) = (BTreeMap::<char, Ratio>::new(), BTreeMap::<char, Ratio>::new());
    let mut right = Ratio::default();
    let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    for text in texts.split("\n---\n") {
        let (text, marked) = unmarked(text);
        let mut hits = extractor.extract(&text);
        hits.retain(|hit| hit.kind.is_name());
        let mut known: HashMap<(char, String), bool> = HashMap::new();
        for (class, span) in &marked {
            let is_found = hits.iter().any(|hit| overlap(&hit.span, span));
            mentions.entry(*class).or_default().count(is_found);
            let name = text[span.clone()].to_lowercase();
            if !is_found {
                println!("missed {class} {name:?} in {:?}", line_of(&text, span));
            }
            *known.entry((*class, name)).or_default() |= is_found;
        }
        for ((class, _), is_found) in known {
            names.entry(class).or_default().count(is_found);
        }
        for hit in hits {
            let is_right = marked.iter().any(|(_, span)| overlap(&hit.span, span));
            right.count(is_right);
            if !is_right {
                println!(
                    "wrong {} {:?} in {:?}",
                    hit.kind,
                    hit.value,
                    line_of(&text, &hit.span)
                );
            }
        }
    }
    for (class, ratio) in &mentions {
        println!("{class}: recall of mentions {ratio}, of names {}", names[class]);
    }
    println!("precision {right}");
}

/// How many of how many.
#[derive(Default)]
struct Ratio {
    good: u32,
    all: u32,
}

impl Ratio {
    fn count(&mut self, good: bool) {
        self.good += u32::from(good);
        self.all += 1;
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = f64::from(self.good) / f64::from(self.all.max(1));
        write!(f, "{share:.3} of {}", self.all)
    }
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

/// Precision and recall on the corpus.
fn quality(extractor: &Extractor, samples: &[Sample]) -> [f64; 2] {
    let (mut right, mut found, mut expected) = (0, 0, 0);
    for sample in samples {
        let mut open: HashMap<(EntityKind, String), usize> = HashMap::new();
        for hit in &sample.hits {
            *open.entry(hit.clone()).or_default() += 1;
        }
        expected += sample.hits.len();
        for hit in extractor.extract(&sample.text) {
            found += 1;
            let name = (hit.kind, hit.value);
            if let Some(left) = open.get_mut(&name).filter(|left| **left > 0) {
                *left -= 1;
                right += 1;
            } else {
                println!("wrong {} {:?} in {:?}", name.0, name.1, sample.text);
            }
        }
        for ((kind, value), _) in open.into_iter().filter(|(_, left)| *left > 0) {
            println!("missed {kind} {value:?} in {:?}", sample.text);
        }
    }
    let precision = f64::from(right) / f64::from(found);
    let recall = f64::from(right) / expected as f64;
    println!(
        "{} sentences, {expected} expected hits: precision {precision:.4}, recall {recall:.4}",
        samples.len()
    );
    [precision, recall]
}

/// Megabytes per second in the best of five single-threaded passes over at least 8 MB.
fn speed(extractor: &Extractor, name: &str, text: &str) -> f64 {
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
    megabytes / best
}
