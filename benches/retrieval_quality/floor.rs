//! Whether what is unknown has no result, and what is right keeps its place: the two kinds of error of the score floor.
//!
//! Questions about nothing in the store are asked in both modes: of other fields, of people's names, of random words, and of
//! identifiers. The questions of the other parts are asked with the floor and without: a right answer among the first 20
//! without it must be among those with it.

use serde_json::Value;

use crate::Fallible;
use crate::ask::{MODES, ingested, results};
use crate::graph::Graph;
use crate::questions;

/// Results that are looked at.
const DEEP: usize = 20;
/// Questions of each kind that is made here.
const MADE: usize = 125;

const FIRST_NAMES: &str = "Maria Sofia Johann Anna Lukas Emma Noah Olivia Liam Fatima Omar Yuki Chen Priya Ravi Elena Carlos \
                           Lucia Marta Katja Sven Ingrid Amara Kwame Giulia";
const LAST_NAMES: &str = "Müller Rossi Dubois García Novak Kowalska Jensen Tanaka Wang Patel Okafor Mensah Costa Hoffmann \
                          Bennett Fletcher Ashworth Lindqvist Virtanen Nagy Popescu Dimitrov Yilmaz Haddad Cohen";

/// Prints a table of each kind of error.
pub async fn run(bundle: &Value, graph: &Graph) -> Fallible<()> {
    let dir = tempfile::tempdir()?;
    let (service, client) = ingested(dir.path(), bundle).await?;
    println!("\nfloor: questions about nothing that have a result (5 % at most)");
    println!(
        "{:14} {:>9} {:>10} {:>11}",
        "", "questions", "blended", "structured"
    );
    let (mut all, mut found) = (0, [0; 2]);
    for (kind, asked) in nothing() {
        let mut own = [0; 2];
        for text in &asked {
            for (count, (_, route)) in own.iter_mut().zip(MODES) {
                *count += usize::from(!results(&client, route, text, DEEP).await?.is_empty());
            }
        }
        println!("{kind:14} {:>9} {:>10} {:>11}", asked.len(), own[0], own[1]);
        all += asked.len();
        found[0] += own[0];
        found[1] += own[1];
    }
    let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    println!(
        "{:14} {all:>9} {:>8.1} % {:>9.1} %",
        "all",
        share(found[0], all),
        share(found[1], all)
    );
    println!("\nfloor: right answers among the first {DEEP} that it takes away (1 % at most)");
    for part in ["relational", "two-step", "time", "ordinary"] {
        let (mut right, mut lost) = ([0; 2], [0; 2]);
        for question in questions::of(part, graph)? {
            for (at, (_, route)) in MODES.iter().enumerate() {
                let whole = format!("{route}&min_score=0");
                let without = results(&client, &whole, &question.text, DEEP).await?;
                let with = results(&client, route, &question.text, DEEP).await?;
                let answers: Vec<&String> = without
                    .iter()
                    .filter(|id| question.answers.contains(id))
                    .collect();
                right[at] += answers.len();
                lost[at] += answers.iter().filter(|id| !with.contains(id)).count();
            }
        }
        println!(
            "{part:14} blended {} of {} ({:.1} %), structured {} of {} ({:.1} %)",
            lost[0],
            right[0],
            share(lost[0], right[0]),
            lost[1],
            right[1],
            share(lost[1], right[1])
        );
    }
    service.terminate()
}

/// Kinds of questions about nothing that ATT&CK for ICS has.
fn nothing() -> Vec<(&'static str, Vec<String>)> {
    let lines = include_str!("questions/nothing.txt").lines();
    let fields = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    let first: Vec<&str> = FIRST_NAMES.split_whitespace().collect();
    let last: Vec<&str> = LAST_NAMES.split_whitespace().collect();
    let name = |at: usize| {
        let pick = |list: &[&str], at: usize| {
            list.get(at % list.len().max(1))
                .map_or("", |name| *name)
                .to_owned()
        };
        format!("{} {}", pick(&first, at), pick(&last, at * 7 + at / 25))
    };
    vec![
        ("other fields", fields.map(str::to_owned).collect()),
        ("people", (0..MADE).map(name).collect()),
        ("random words", (0..MADE).map(random_words).collect()),
        ("identifiers", (0..MADE).map(unknown_identifier).collect()),
    ]
}

/// One to three words that no language has, the same in every run.
fn random_words(at: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(at as u64 + 1);
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let letter = |list: &str, at: usize| list.chars().nth(at).unwrap_or('a');
    let mut words = Vec::new();
    for _ in 0..=next(3) {
        let mut word = String::new();
        for _ in 0..2 + next(3) {
            word.push(letter("bcdfghklmnprstvwz", next(17)));
            word.push(letter("aeiou", next(5)));
        }
        words.push(word);
    }
    words.join(" ")
}

/// An identifier of one of the kinds in turn.
fn unknown_identifier(at: usize) -> String {
    let hash: String = (0..8u64)
        .map(|part| {
            format!(
                "{:08x}",
                (at as u64 + 3).wrapping_mul(0x9e37_79b9 + part * 0x85eb_ca6b) as u32
            )
        })
        .collect();
    match at % 12 {
        0 => format!("203.0.113.{at}"),
        1 => hash,
        2 => hash.chars().take(32).collect(),
        3 => format!("CVE-2031-{}", 70_000 + at),
        4 => format!("host{at}.nowhere-case.com"),
        5 => format!("hxxp://x{at}[.]nowhere-case[.]com/a/b"),
        6 => format!("who{at}@nowhere-case.com"),
        7 => format!("2001:db8::{at:x}"),
        8 => format!("T99{:02}.001", at % 100),
        9 => format!("AS{}", 64_512 + at),
        10 => format!(r"C:\Nowhere\x{at}.exe"),
        _ => format!("what do we know about 198.51.100.{at}?"),
    }
}
