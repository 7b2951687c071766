//! The rules terminate on every text: no look-ahead ever moves a scanner back.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use test_support::{extent, shared};

use super::*;
use crate::domain::pii;

/// Far longer than any of these texts takes, yet short enough to wait for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads texts on a separate thread, and fails with the text that does not finish.
fn all_end(texts: impl IntoIterator<Item = String> + Send + 'static) {
    let current = Arc::new(Mutex::new(String::new()));
    let (done, next) = channel();
    let reading = {
        let current = Arc::clone(&current);
        std::thread::spawn(move || {
            for text in texts {
                current.lock().clone_from(&text);
                Extractor::shared().extract(&text);
                if done.send(()).is_err() {
                    return;
                }
            }
        })
    };
    loop {
        match next.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                panic!("for ever: {:?}", current.lock())
            }
        }
    }
    reading.join().unwrap();
}

#[test]
fn a_file_name_at_the_end_of_a_sentence_ends_the_path() {
    for (text, path) in [
        (
            "OilRig has named it \\ProgramData\\Adobe.exe. An APT3 downloader uses it.",
            "\\ProgramData\\Adobe.exe",
        ),
        ("It is C:\\Users\\Adobe.exe. An APT3 one.", "C:\\Users\\Adobe.exe"),
        (
            "It is C:\\Temp\\My Tool.exe... An APT3 one.",
            "C:\\Temp\\My Tool.exe",
        ),
        (
            "It is C:\\Temp\\My Tool.exe An APT3 one.",
            "C:\\Temp\\My Tool.exe",
        ),
    ] {
        all_end([text.to_owned()]);
        let hits = Extractor::shared().extract(text);
        let paths: Vec<_> = hits
            .iter()
            .filter(|hit| hit.kind == EntityKind::FilePath)
            .map(|hit| (hit.text(text), hit.value.as_str()))
            .collect();
        assert_eq!(paths, [(path, path)], "{text}");
    }
    // A component longer than the look-ahead window.
    all_end([format!(
        "C:\\Temp\\{}A.exe {} B.exe. C",
        "A ".repeat(4),
        "A".repeat(80)
    )]);
}

/// Descriptions of objects and relationships, and values of MISP attributes, split into sentences.
fn sentences() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["data/attack", "data/stix", "data/misp"] {
        let Some(folder) = shared(folder) else {
            return Vec::new();
        };
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let document = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
                collect(&document, &mut texts);
            }
        }
    }
    let mut sentences: Vec<String> = texts
        .iter()
        .flat_map(|text| text.split_inclusive(". ").flat_map(str::lines))
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty())
        .map(str::to_owned)
        .collect();
    sentences.sort_unstable();
    sentences.dedup();
    sentences
}

fn collect(value: &serde_json::Value, texts: &mut Vec<String>) {
    if let Some(items) = value.as_array() {
        items.iter().for_each(|item| collect(item, texts));
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        match member.as_str() {
            Some(text) if ["description", "comment", "info", "value"].contains(&key.as_str()) => {
                // Some originals are whole files.
                texts.push(text.chars().take(4000).collect());
            }
            Some(_) => {}
            None => collect(member, texts),
        }
    }
}

#[test]
fn report_sentences_in_any_order_are_read_to_the_end() {
    let sentences = sentences();
    if sentences.is_empty() {
        return;
    }
    assert!(sentences.len() > 5000, "{} sentences", sentences.len());
    let mut random = StdRng::seed_from_u64(20_000);
    let texts = (0..extent(4_000, 20_000)).map(move |_| {
        let parts = (0..random.random_range(2..=8)).map(|_| {
            let sentence: &String = &sentences[random.random_range(0..sentences.len())];
            sentence.as_str()
        });
        parts.collect::<Vec<_>>().join(" ")
    });
    all_end(texts);
}

#[test]
fn the_inputs_that_fuzzing_kept_are_read_to_the_end() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/rules");
    let mut count = 0;
    for file in std::fs::read_dir(corpus).unwrap() {
        let text = std::fs::read(file.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        check(&text).unwrap();
        entities_of(&text);
        pii::redact(&text);
        sensitivity(&text, crate::domain::tlp::Tlp::White);
        count += 1;
    }
    assert!(count > 100, "{count} inputs in {corpus}");
}
