//! Work of the tokenizers is linear in the length of a text, whatever its scripts and separators.

use std::time::{Duration, Instant};

use chrono::DateTime;
use test_support::{extent, is_full};

use super::super::text::{canonical_key, host, refang, split, words};
use crate::domain::memory::similarity;
use crate::domain::pii::strict;
use crate::domain::question::Question;
use crate::llm::ground::{Haystack, quote_names};
use crate::search::query::phrases::phrase_words;
use crate::search::text::analyzer::{fold_accents, tokenize};

/// Letters of scripts: Latin, Cyrillic, Chinese, Arabic, pictures and letters with combining marks.
const PIECES: &[&str] = &["ab", "Ünïcode", "бг", "中文", "عرب", "🐻", "e\u{301}", "a1", "7"];
const SEPARATORS: &[&str] = &[
    ".", "-", "_", "/", "\\", ":", "@", ",", ";", " ", "", "\u{3002}", "\u{ff0e}", "\u{ff61}", "\u{2024}",
    "[.]", "(dot)", "=", "?", "&", "'", "://", "\u{200b}",
];
/// Ends that make the whole a domain, a file or a number.
const ENDS: &[&str] = &["com", "中国", "9"];
/// Tokens and bytes of tokens for each byte of a text, at most: a word and its parts, and up to 32 parent domains of the
/// last 200 bytes of a word.
const TOKENS_PER_BYTE: usize = 2;
const BYTES_PER_BYTE: usize = 40;
/// A long text takes some tenths of a second in a debug build; a tokenizer that reads each suffix takes minutes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest name that a language model may give.
const MAX_NAME: usize = 200;

/// A text of this many bytes at least.
fn repeated(piece: &str, separator: &str, end: &str, length: usize) -> String {
    let unit = format!("{piece}{separator}");
    unit.repeat(length / unit.len() + 1) + end
}

/// Number and bytes of the tokens.
fn produced(text: &str) -> (usize, usize) {
    let (mut tokens, mut bytes) = (0, 0);
    split(text, &mut |token| {
        tokens += 1;
        bytes += token.len();
    });
    (tokens, bytes)
}

fn read_in_every_way(text: &str) {
    let start = Instant::now();
    let (tokens, bytes) = produced(text);
    let begin: String = text.chars().take(20).collect();
    assert!(
        tokens <= TOKENS_PER_BYTE * text.len() + 64 && bytes <= BYTES_PER_BYTE * text.len() + 8192,
        "{begin:?}: {tokens} tokens of {bytes} bytes of a text of {}",
        text.len()
    );
    assert!(tokenize(text).len() <= tokens);
    assert!(canonical_key(text).len() <= 201);
    let plain = refang(text);
    assert!(plain.len() <= text.len());
    assert!(phrase_words(&plain).len() <= 64);
    for word in words(&plain) {
        assert!(host(word).is_none_or(|host| host.len() < word.len()));
    }
    fold_accents(text);
    let taken = start.elapsed();
    assert!(
        taken < PATIENCE,
        "{begin:?} of {} bytes takes {taken:?}",
        text.len()
    );
}

#[test]
fn a_text_of_any_script_and_separator_is_read_in_linear_time() {
    let (few, many) = extent((200, 2_000), (10_000, 100_000));
    for piece in PIECES {
        for separator in SEPARATORS {
            for end in ENDS {
                for length in [few, many] {
                    read_in_every_way(&repeated(piece, separator, end, length));
                }
            }
        }
    }
}

#[test]
fn a_word_of_a_megabyte_is_read_at_once() {
    let (pieces, separators) = extent(
        (["ab", "中文"].as_slice(), ["."].as_slice()),
        (PIECES, SEPARATORS),
    );
    for piece in pieces {
        for separator in separators {
            let tenth = repeated(piece, separator, "com", 100_000);
            let (_, of_tenth) = produced(&tenth);
            let text = repeated(piece, separator, "com", 1_000_000);
            let start = Instant::now();
            let (tokens, bytes) = produced(&text);
            let taken = start.elapsed();
            assert!(
                tokens <= TOKENS_PER_BYTE * text.len() && bytes <= 11 * of_tenth + 8192,
                "{piece}{separator}: {tokens} tokens of {bytes} bytes"
            );
            assert!(taken < PATIENCE, "{piece}{separator} takes {taken:?}");
        }
    }
}

type Reader = (&'static str, fn(&str));

/// What else splits whole texts into words: the rules of notes and questions, the proof of a model's answer, and the stricter
/// search for personal data.
const READERS: &[Reader] = &[
    ("near-duplicates", |text| {
        similarity::overlap(text, "");
        similarity::containment(text, "");
    }),
    ("question", |text| {
        Question::read(text, DateTime::UNIX_EPOCH).intent();
    }),
    ("quotes", |text| {
        let haystack = Haystack::new(text);
        haystack.quote(text);
        haystack.name(text);
    }),
    ("names in a quote", |text| {
        let name: String = text.chars().take(MAX_NAME).collect();
        quote_names(text, &format!("{name}x"));
    }),
    ("personal data, strictly", |text| drop(strict::kinds(text))),
];
/// Latin, Cyrillic, Chinese, Arabic, digits.
const SCRIPTS: &[&str] = &["ab", "бг", "中文", "عرب", "7"];
/// How many times as long a text ten times as long may take, at most. A tokenizer that reads each suffix takes a hundred
/// times as long.
const GROWTH: u32 = 40;
/// Added to that, because other tests run at the same time.
const SLACK: Duration = Duration::from_secs(1);
const TRIES: usize = 4;

/// Scripts, separators and lengths of texts: each separator with the scripts in turn, and in full with all of them.
fn long_texts() -> Vec<(&'static str, &'static str, usize)> {
    let mut all = Vec::new();
    for (place, separator) in SEPARATORS.iter().enumerate() {
        for (turn, script) in SCRIPTS.iter().enumerate() {
            let is_turn = place % SCRIPTS.len() == turn;
            if is_turn || is_full() {
                let length = if is_turn {
                    extent(50_000, 1_000_000)
                } else {
                    100_000
                };
                all.push((*script, *separator, length));
            }
        }
    }
    all
}

/// Whether a text takes longer than one of a tenth of its length lets expect.
fn is_slower(read: fn(&str), text: &str, tenth: &str) -> bool {
    let taken = |text: &str| {
        let start = Instant::now();
        read(text);
        start.elapsed()
    };
    let most = GROWTH * taken(tenth) + SLACK;
    taken(text) > most
}

#[test]
fn the_time_of_each_reader_grows_with_the_length_of_a_text() {
    for (script, separator, length) in long_texts() {
        let tenth = repeated(script, separator, "com", length / 10);
        let text = repeated(script, separator, "com", length);
        for (name, read) in READERS {
            let is_slow = (0..TRIES).all(|_| is_slower(*read, &text, &tenth));
            assert!(!is_slow, "{name}: {length} bytes of {script}{separator}");
        }
    }
}

#[test]
fn parents_of_a_usual_domain_are_all_there() {
    let mut found = Vec::new();
    split("a.b.mail.example.com", &mut |token| found.push(token.to_owned()));
    for parent in [
        "a.b.mail.example.com",
        "b.mail.example.com",
        "mail.example.com",
        "example.com",
    ] {
        assert!(found.iter().any(|token| token == parent), "{parent}: {found:?}");
    }
}
