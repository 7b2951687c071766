//! Cost is linear in the length of a text, and an adversarial text costs little more than prose.
//!
//! Both are ratios of times on the same machine. A ratio that is too large is measured again, since other load
//! may have interfered. Beside other tests a limit on the time for a short text must do.

use std::time::{Duration, Instant};

use chrono::DateTime;
use test_support::{extent, is_full};

use super::*;
use crate::domain::memory::injection::prompt_injection;
use crate::domain::memory::similarity::{containment, overlap};
use crate::domain::pii;
use crate::domain::question::Question;
use crate::domain::tlp::Tlp;
use crate::llm::ground::Haystack;

const SHORT: usize = 2_000;
/// A short text takes milliseconds; a rule that tries all ways to read it never ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// Length ratio of the long text to the short one.
const LONGER: usize = 20;
/// Quadratic work would take `LONGER * LONGER` times as long.
const GROWTH: f64 = 8.0 * LONGER as f64;
/// Rescanning a window of up to a thousand bytes for every word would cost 500.
const COSTLIER_THAN_PROSE: f64 = 100.0;
const TRIES: usize = 8;

const PROSE: &str = "In March 2021 the operators of the campaign sent messages with a lure about a conference to \
                     engineers of two utilities. The attachment was a document that loaded a template from a server, \
                     and the server answered only to addresses of the country. ";

/// Fragments that make rules look ahead, back or around.
const UNITS: &[&str] = &[
    "Play ",
    "Play, ",
    "Snake and ",
    "malware such as Royal, ",
    "threat actor alias ",
    "APT28, which is also known as Vexa, ",
    "malware dubbed Vexa",
    "dubbed by é as ",
    "known as the malware ",
    "VexaSoul malware ",
    "malware “Vexa ",
    "Vexa is a backdoor ",
    "SLIVER Sliver malware, ",
    "a",
    " ",
    "\n",
    ".",
    ",",
    "-",
    "_",
    ":",
    "/",
    "\\",
    "\"",
    "'",
    "(",
    "[",
    "@",
    "%",
    "é",
    "é ",
    "漢",
    "\u{200b}",
    "a\u{2011}",
    "0",
    "f",
    "0123456789",
    "[.]",
    "(dot)",
    "hxxp",
    "hxxp://",
    "http://",
    "://",
    "http://a,",
    "http://a.com/(",
    "a@",
    "a.",
    "a@b.com ",
    "C:\\",
    "C:\\A ",
    "A\\B ",
    "A\\B (",
    "%A\\B (",
    "\\A B.exe. ",
    "a\\B.exe ",
    "HKLM\\A ",
    "$env:A\\",
    "%A%\\ ",
    "/tmp/",
    "~/a ",
    "x.zip ",
    "\"a.exe\" ",
    "1.2.3.4 ",
    "1.2.3.4-",
    "1.2.3.4/24 ",
    "::1 ",
    "CVE-",
    "T1059 ",
    "t1059 ",
    "AS ",
    "APT 1 ",
    "ffffffffffffffffffffffffffffffff ",
    "a1b2c3d4e5f60718293a4b5c6d7e8f90 ",
    "bc1q",
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa ",
    "Sigma ",
    "YARA ",
    "\nrule a: b c",
    "logsource:",
    "id: logsource:",
    "apt28 ",
    "lockbit ",
    "Play ",
    "APT28 (",
    "APT28 uses X-Agent, ",
    "APT28 uses é X-Agent ",
    "TLP:AMBER   ",
    "do not share é ",
    "this report is é b c d ",
    "confidential\n",
    "1 ",
    "+1 ",
    "12 34 ",
    "phone: 1 ",
    "dob 1 ",
    "DE89 ",
    "ignore all the é previous ",
    "ab.",
    "ab-",
    "ab_",
    "ab/",
    "ab\\",
    "ab:",
    "ab@",
    "ab,",
    "ab;",
    "ffffffff\n",
    "a1b2c3d4e5f60718293a4b5c6d7e8f90\n",
    "ffffffff<br>",
    "ffffffff        ",
    "a.\n",
    "a.b-\n",
    "a\\.",
    "a\\/",
    "a DOT com ",
    "a AT b DOT ",
    "&amp;",
    "CVE-2021-1001/",
    "CVE-2021-1001, ",
    "CVE ",
    "CVE-2021-(1001,",
    "cve.2021.1001.",
    "http://a.com/b,c;",
    "a.com/b/",
    "a.com/b.com/",
    "1.2.3.4/a,",
    "a中",
    "中a",
    "中1",
    "б1.",
    "中/a",
    "http://a.com/中",
    "C:\\a中",
    "C:\\<a>\\",
    "Main Module is a RAT ",
    "ab。",
    "ab．",
    "ab[.]",
    "中文.",
    "中文-",
    "中文/",
    "中文。",
    "бг.",
    "бг@",
    "عرب.",
    "عرب-",
    "🐻.",
    "e\u{301}.",
    "1.",
    "1a.",
    "PsExec ",
    "mshta, ",
    "they used rundll32 and ",
];

type Reader = (&'static str, fn(&str));

/// Functions that read a whole text.
const READERS: &[Reader] = &[
    ("extract", |text| {
        let hits = Extractor::shared().extract(text);
        stated_relations(text, &hits);
    }),
    ("entities", |text| drop(entities_of(text))),
    ("personal data", |text| drop(pii::redact(text))),
    ("markings", |text| drop(sensitivity(text, Tlp::White))),
    ("orders to a model", |text| {
        prompt_injection(text);
    }),
    ("defang", |text| drop(defang(&refang(text)))),
    ("question", |text| {
        let question = Question::read(text, DateTime::UNIX_EPOCH);
        question.filters();
        question.intent();
    }),
    ("near-duplicates", |text| {
        overlap(text, PROSE);
        containment(text, text);
    }),
    ("quotes", |text| {
        Haystack::new(text).quote(text);
    }),
    ("personal data, strictly", |text| drop(pii::strict::kinds(text))),
];

fn taken(read: fn(&str), text: &str) -> Duration {
    let start = Instant::now();
    read(text);
    let taken = start.elapsed();
    let begin: String = text.chars().take(40).collect();
    assert!(is_full() || taken < PATIENCE, "{begin:?} takes {taken:?}");
    taken
}

/// Lengths of the short and of the long text.
fn lengths() -> (usize, usize) {
    extent((SHORT / LONGER, SHORT), (SHORT, SHORT * LONGER))
}

fn repeated(unit: &str, length: usize) -> String {
    unit.repeat(length / unit.len() + 1)
}

/// The ratio of the first time to the second, each the minimum of several tries; repeats until it is at most `most`.
/// Beside other tests it says nothing and is zero.
fn ratio(most: f64, measure: impl Fn() -> (Duration, Duration)) -> f64 {
    let (mut long, mut short) = measure();
    if !is_full() {
        return 0.0;
    }
    for _ in 1..TRIES {
        if in_proportion(long, short) <= most {
            break;
        }
        let again = measure();
        (long, short) = (long.min(again.0), short.min(again.1));
    }
    in_proportion(long, short)
}

fn in_proportion(long: Duration, short: Duration) -> f64 {
    // Below clock resolution counts as fast.
    long.as_secs_f64() / short.as_secs_f64().max(1e-5)
}

#[test]
fn the_time_for_a_text_grows_with_its_length() {
    let (short, long) = lengths();
    for (name, read) in READERS {
        read(PROSE);
        for unit in UNITS {
            let (short, long) = (repeated(unit, short), repeated(unit, long));
            let grown = ratio(GROWTH, || (taken(*read, &long), taken(*read, &short)));
            assert!(
                grown <= GROWTH,
                "{name}: {LONGER} times {unit:?} takes {grown:.0} times as long"
            );
        }
    }
}

#[test]
fn a_text_made_to_be_slow_takes_not_much_longer_than_prose() {
    let (_, long) = lengths();
    let prose = repeated(PROSE, long);
    for (name, read) in READERS {
        read(PROSE);
        for unit in UNITS {
            let text = repeated(unit, long);
            let costlier = ratio(COSTLIER_THAN_PROSE, || {
                (taken(*read, &text), taken(*read, &prose))
            });
            assert!(
                costlier <= COSTLIER_THAN_PROSE,
                "{name}: {unit:?} takes {costlier:.0} times as long as prose"
            );
        }
    }
}
