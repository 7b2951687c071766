//! Questions to the local service about analysts' notes in eight languages among sentences of ATT&CK for ICS, beside plain
//! BM25.
//!
//! The questions are mostly English ones about notes in another language; a third is in `questions/unseen/`.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::Fallible;
use crate::bundle::plain;
use crate::program::{Service, program};

/// Sentences among which the notes stand, and notes per request.
const SENTENCES: usize = 800;
const BATCH: usize = 50;
/// Results that are looked at.
const DEEP: usize = 5;

/// Prints how many questions have the right note first and among the first five.
pub async fn run(bundle: &Value) -> Fallible<()> {
    let notes = lines(include_str!("questions/mixed_notes.txt"));
    let sentences = sentences(bundle)?;
    let mut all: Vec<(Option<&str>, &str)> = notes.iter().map(|(key, note)| (Some(*key), *note)).collect();
    all.extend(sentences.iter().map(|text| (None, text.as_str())));
    let dir = tempfile::tempdir()?;
    let mut command = program();
    command
        .args(["local", "--port", "0", "--data-dir"])
        .arg(dir.path())
        .env("LOCAL_WEB_ADMIN_BIND", "127.0.0.1:0")
        .env("LOCAL_WEB_RATE_LIMIT_PER_MINUTE", "100000000");
    let (service, _) = Service::launch(command, "/api/health").await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let post = async |path: &str, body: Value| -> Fallible<Value> {
        let answer = http
            .post(format!("{}{path}", service.base()))
            .json(&body)
            .send()
            .await?;
        Ok(answer.error_for_status()?.json().await?)
    };
    let mut ids: HashMap<String, &str> = HashMap::new();
    for batch in all.chunks(BATCH) {
        let items: Vec<Value> = batch.iter().map(|(_, text)| json!({"content": text})).collect();
        let told = post("/api/ingest", json!({"items": items})).await?;
        let results = told["results"].as_array().ok_or("an ingest has results")?;
        for ((key, _), result) in batch.iter().zip(results) {
            let id = result["note_id"].as_str().ok_or("a note was refused")?;
            ids.extend(key.map(|key| (id.to_owned(), key)));
        }
    }
    let words = Bm25::of(&all);
    println!(
        "\nmixed: notes in eight languages among {} sentences",
        sentences.len()
    );
    println!(
        "{:8} {:>9} {:>6} {:>8}   BM25 first, in five",
        "", "questions", "first", "in five"
    );
    for (title, text) in [
        ("seen", include_str!("questions/mixed.txt")),
        ("unseen", include_str!("questions/unseen/mixed.txt")),
    ] {
        let (questions, mut found, mut by_words) = (lines(text), [0usize; 2], [0usize; 2]);
        for (key, question) in &questions {
            let answer = post("/api/recall", json!({"query": question, "k": DEEP})).await?;
            let results = answer["results"].as_array().ok_or("an answer has results")?;
            let keys = results
                .iter()
                .map(|note| note["id"].as_str().and_then(|id| ids.get(id).copied()));
            count(&mut found, keys, key);
            count(&mut by_words, words.best(question).into_iter(), key);
        }
        let share = |part: usize| part as f64 / questions.len().max(1) as f64;
        println!(
            "{title:8} {:>9} {:>6.2} {:>8.2}   {:.2}, {:.2}",
            questions.len(),
            share(found[0]),
            share(found[1]),
            share(by_words[0]),
            share(by_words[1])
        );
    }
    service.terminate()
}

fn count<'a>([first, five]: &mut [usize; 2], found: impl Iterator<Item = Option<&'a str>>, key: &str) {
    let place = found.take(DEEP).position(|one| one == Some(key));
    *first += usize::from(place == Some(0));
    *five += usize::from(place.is_some());
}

/// The lines of a file: a key and a text.
fn lines(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).collect()
}

/// Sentences of the bundle, the same in every run.
fn sentences(bundle: &Value) -> Fallible<Vec<String>> {
    let objects = bundle["objects"].as_array().ok_or("a bundle has objects")?;
    let descriptions = objects.iter().filter_map(|object| object["description"].as_str());
    let mut sentences: Vec<String> = descriptions
        .flat_map(|text| plain(text).split(". ").map(str::to_owned).collect::<Vec<_>>())
        .filter(|sentence| (40..400).contains(&sentence.len()))
        .collect();
    sentences.sort_unstable();
    sentences.dedup();
    let step = (sentences.len() / SENTENCES).max(1);
    Ok(sentences.into_iter().step_by(step).take(SENTENCES).collect())
}

/// BM25 (k1 1.2, b 0.75) over words in lower case.
struct Bm25<'a> {
    docs: Vec<(Option<&'a str>, HashMap<String, usize>, usize)>,
    holders: HashMap<String, usize>,
    mean: f64,
}

impl<'a> Bm25<'a> {
    fn of(texts: &[(Option<&'a str>, &str)]) -> Self {
        let mut holders: HashMap<String, usize> = HashMap::new();
        let mut docs = Vec::new();
        for (key, text) in texts {
            let mut times: HashMap<String, usize> = HashMap::new();
            let words = words(text);
            words
                .iter()
                .for_each(|word| *times.entry(word.clone()).or_default() += 1);
            times
                .keys()
                .for_each(|word| *holders.entry(word.clone()).or_default() += 1);
            docs.push((*key, times, words.len()));
        }
        let mean = docs.iter().map(|(.., length)| *length as f64).sum::<f64>() / docs.len().max(1) as f64;
        Bm25 { docs, holders, mean }
    }

    /// The keys of the best texts.
    fn best(&self, question: &str) -> Vec<Option<&'a str>> {
        let asked: HashSet<String> = words(question).into_iter().collect();
        let all = self.docs.len() as f64;
        let mut scored: Vec<(f64, Option<&str>)> = self
            .docs
            .iter()
            .map(|(key, times, length)| {
                let weigh = |word: &String| {
                    let often = times.get(word).copied().unwrap_or(0) as f64;
                    let holders = self.holders.get(word).copied().unwrap_or(0) as f64;
                    let rare = ((all - holders + 0.5) / (holders + 0.5) + 1.0).ln();
                    rare * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * *length as f64 / self.mean))
                };
                (asked.iter().map(weigh).sum::<f64>(), *key)
            })
            .collect();
        scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        scored
            .into_iter()
            .take(DEEP)
            .filter(|(score, _)| *score > 0.0)
            .map(|(_, key)| key)
            .collect()
    }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
