//! Corrections: texts that withdraw what an older text says about the same thing.
//!
//! Nothing is decided here about which text is true: the two are a pair that conflicts, and readers see both. A text corrects
//! another if it has words of correction (`assets/memory/corrections.txt`), is not older, and says most of what a sentence of
//! the other says, names that both mention aside. Sentences without such a name are often of one form ("It leaves the trace X
//! behind"): they are about the same thing only if the codes in them are the same.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};

use super::note::truncate_chars;
use super::similarity::words;
use crate::domain::question::lexicon::{month_of, sections};
use crate::domain::question::{StatedTimes, TimeOrder};

const CORRECTIONS: &str = include_str!("../../../assets/memory/corrections.txt");
/// Characters of a text that are read.
const READ: usize = 2_000;
/// Letters by which forms of a word are compared, and letters of the shortest word that says something.
const STEM: usize = 5;
const SHORTEST: usize = 3;
/// Words that texts must share which mention nothing in common.
const SHARED_WITHOUT_NAMES: usize = 3;
/// Characters of the shortest code; shorter ones are numbers with a unit.
const SHORTEST_CODE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Beginning,
    Anywhere,
}

struct Phrase {
    /// Its words behind the first; empty for any word.
    rest: Vec<String>,
    place: Place,
}

struct Phrases {
    /// By their first words.
    by_word: HashMap<String, Vec<Phrase>>,
    /// In the form of [`stem`].
    function_words: HashSet<String>,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut phrases = Phrases {
        by_word: HashMap::new(),
        function_words: HashSet::new(),
    };
    for (name, entries) in sections(CORRECTIONS) {
        let place = match name {
            "headings" => Place::Beginning,
            "anywhere" => Place::Anywhere,
            _ => {
                phrases
                    .function_words
                    .extend(entries.into_iter().map(str::to_owned));
                continue;
            }
        };
        for entry in entries {
            let parts = entry.split(' ').flat_map(|part| match part {
                "*" => vec![String::new()],
                part => words(part),
            });
            let mut parts = parts.collect::<Vec<String>>().into_iter();
            if let Some(first) = parts.next() {
                let rest = parts.collect();
                phrases
                    .by_word
                    .entry(first)
                    .or_default()
                    .push(Phrase { rest, place });
            }
        }
    }
    phrases
});

/// Whether the words of a sentence correct something; that is the first one of a text if it `begins` it.
fn has_correction(words: &[String], begins_text: bool) -> bool {
    let begins = |at: usize, phrase: &Phrase| {
        let follows = |(back, word): (usize, &String)| {
            let found = words.get(at + 1 + back);
            found.is_some_and(|found| word.is_empty() || found == word)
        };
        let is_placed = phrase.place == Place::Anywhere || (begins_text && is_heading(words, at));
        is_placed && phrase.rest.iter().enumerate().all(follows)
    };
    words.iter().enumerate().any(|(at, word)| {
        let phrases = PHRASES.by_word.get(word);
        phrases.is_some_and(|phrases| phrases.iter().any(|phrase| begins(at, phrase)))
    })
}

/// Whether nothing but the numbers of a date stands before a word.
fn is_heading(words: &[String], at: usize) -> bool {
    let mut before = words.iter().take(at);
    before.all(|word| word.bytes().all(|b| b.is_ascii_digit()))
}

/// What stands for the forms of a word; `None` for one that says nothing of its own.
fn stem(word: &str) -> Option<String> {
    let says = word.chars().count() >= SHORTEST || !word.is_ascii();
    let is_date = month_of(word).is_some() || word.bytes().all(|b| b.is_ascii_digit());
    let is_known = is_date || PHRASES.function_words.contains(word);
    (says && !is_known).then(|| word.chars().take(STEM).collect())
}

fn stems(text: &str) -> HashSet<String> {
    words(text).iter().filter_map(|word| stem(word)).collect()
}

/// The codes in a text (services, hosts, addresses, identifiers): words of letters and digits, or of joined pieces. Marks do
/// not count, so that a defanged host is the same.
fn codes(text: &str) -> HashSet<String> {
    text.split_whitespace().filter_map(code).collect()
}

fn code(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let has_letters = word.chars().any(char::is_alphabetic);
    let is_joined = word.contains(['_', '\\', '@', '$']) || word.contains("[.]") || has_inner_dot(word);
    let is_mixed = has_letters && word.contains(|c: char| c.is_ascii_digit());
    let is_address = || word.replace(['[', ']'], "").parse::<IpAddr>().is_ok();
    let is_code = is_mixed || (has_letters && is_joined) || is_address();
    if !is_code {
        return None;
    }
    let plain: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
    (plain.chars().count() >= SHORTEST_CODE).then(|| plain.to_lowercase())
}

/// Whether a point joins pieces of more than a letter, unlike those in "e.g".
fn has_inner_dot(word: &str) -> bool {
    let mut pieces = word.split('.');
    word.contains('.') && pieces.all(|piece| piece.chars().count() > 1)
}

/// A sentence, as far as it can be compared with others.
#[derive(Debug)]
struct Sentence {
    /// What it says.
    stems: HashSet<String>,
    codes: HashSet<String>,
}

/// What a text says, as far as it can be compared with others.
#[derive(Debug)]
pub struct Claim {
    sentences: Vec<Sentence>,
    all: HashSet<String>,
    codes: HashSet<String>,
    /// What the sentences with words of correction say, each with the one that follows.
    corrected: HashSet<String>,
    /// Whether it has words of correction.
    pub corrects: bool,
    /// The newest time that it states, up to when it was written.
    stated: Option<DateTime<Utc>>,
    written: DateTime<Utc>,
}

impl Claim {
    /// Reads a text that was written at this time.
    pub fn read(text: &str, written: DateTime<Utc>) -> Self {
        let text = truncate_chars(text, READ);
        let ends = |c: char| matches!(c, '\n' | '!' | '?' | '。' | ';');
        let parts = text.split(ends).flat_map(|part| part.split(". "));
        let parts = parts.map(|part| (words(part), codes(part)));
        let parts: Vec<(Vec<String>, HashSet<String>)> =
            parts.filter(|(words, _)| !words.is_empty()).collect();
        let sentences: Vec<Sentence> = parts
            .iter()
            .map(|(words, codes)| Sentence {
                stems: words.iter().filter_map(|word| stem(word)).collect(),
                codes: codes.clone(),
            })
            .collect();
        let mut corrected = HashSet::new();
        let mut corrects = false;
        for (place, (words, _)) in parts.iter().enumerate() {
            if has_correction(words, place == 0) {
                corrects = true;
                let said = sentences.iter().skip(place).take(2);
                corrected.extend(said.flat_map(|sentence| &sentence.stems).cloned());
            }
        }
        let all = sentences.iter().flat_map(|sentence| &sentence.stems);
        Claim {
            all: all.cloned().collect(),
            codes: codes(text),
            sentences,
            corrected,
            corrects,
            stated: StatedTimes::in_text(text, written).first_in_order(TimeOrder::NewestFirst, None, written),
            written,
        }
    }

    /// Whether it corrects another text; `shared` are the names that both mention.
    pub fn is_correction_of(&self, other: &Claim, shared: &[&str]) -> bool {
        let is_later = self.is_later_than(other) || (!other.corrects && !other.is_later_than(self));
        let said = (&self.corrected, &self.codes);
        self.corrects && is_later && other.is_repeated_in(said, shared, |share| share > 0.5)
    }

    /// Whether it tells of the same as an older text, as two notes on where somebody is.
    pub fn is_newer_on_the_same(&self, other: &Claim, shared: &[&str]) -> bool {
        let at_least_half = |share: f32| share >= 0.5;
        !shared.is_empty()
            && self.is_later_than(other)
            && other.is_repeated_in((&self.all, &self.codes), shared, at_least_half)
            && self.is_repeated_in((&other.all, &other.codes), shared, at_least_half)
    }

    /// By the times that both state, else by when they were written.
    fn is_later_than(&self, other: &Claim) -> bool {
        match (self.stated, other.stated) {
            (Some(own), Some(others)) if own != others => own > others,
            _ => self.written > other.written,
        }
    }

    /// Whether so large a share of what one of its sentences says is said there, too, with these codes.
    fn is_repeated_in(
        &self,
        (said, codes): (&HashSet<String>, &HashSet<String>),
        shared: &[&str],
        is_enough: impl Fn(f32) -> bool,
    ) -> bool {
        let names: HashSet<String> = shared.iter().flat_map(|name| stems(name)).collect();
        let least = if shared.is_empty() {
            SHARED_WITHOUT_NAMES
        } else {
            1
        };
        self.sentences.iter().any(|sentence| {
            let is_about = if shared.is_empty() {
                sentence.codes.is_subset(codes)
            } else {
                sentence.stems.iter().any(|word| names.contains(word))
            };
            let own = || sentence.stems.iter().filter(|word| !names.contains(*word));
            let repeated = own().filter(|word| said.contains(*word)).count();
            is_about && repeated >= least && is_enough(repeated as f32 / own().count() as f32)
        })
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn claims(older: &str, newer: &str) -> (Claim, Claim) {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        (
            Claim::read(older, now),
            Claim::read(newer, now + TimeDelta::seconds(1)),
        )
    }

    const BASED: &str = "The Lathe Group is based in Ruritania.";

    #[test]
    fn words_of_correction_about_the_same_thing_make_a_pair() {
        for (older, newer, shared) in [
            (
                BASED,
                "Update: the Lathe Group has moved and is now based in Graustark, no longer in Ruritania.",
                &["lathe-group"][..],
            ),
            (
                BASED,
                "The Lathe Group is no longer based in Ruritania.",
                &["lathe-group"],
            ),
            (
                BASED,
                "Correction: the Lathe Group is not based in Ruritania, it is in Graustark.",
                &["lathe-group"],
            ),
            (
                "The Lathe Group hit the Varnholt refinery with Marrowgate.",
                "Correction: it was not the Lathe Group that hit the Varnholt refinery, it was the Gorse Team.",
                &["lathe-group"],
            ),
            (
                "The attack on the Varnholt refinery was carried out by the Lathe Group.",
                "Retraction: the attack on Varnholt's refinery was wrongly attributed to the Lathe Group.",
                &["lathe-group"],
            ),
            (
                "Die Lathe Group hat ihren Sitz in Ruritanien.",
                "Korrektur: Die Lathe Group hat ihren Sitz in Graustark, nicht in Ruritanien.",
                &["lathe-group"],
            ),
            (
                "Die Lathe Group nutzt Marrowgate.",
                "Die Lathe Group nutzt Marrowgate nicht mehr.",
                &["lathe-group"],
            ),
            (
                "Le groupe Lathe est basé en Ruritanie.",
                "Le groupe Lathe n'est plus basé en Ruritanie mais au Graustark.",
                &["lathe"],
            ),
            (
                "El grupo Lathe tiene su sede en Ruritania.",
                "Corrección: el grupo Lathe ya no tiene su sede en Ruritania.",
                &["lathe"],
            ),
            (
                "Marrowgate exfiltrates files over DNS tunnels.",
                "Correction: Marrowgate exfiltrates files over HTTPS, not DNS tunnels.",
                &[],
            ),
        ] {
            let (older, newer) = claims(older, newer);
            assert!(newer.is_correction_of(&older, shared), "{newer:?}");
            assert!(!older.is_correction_of(&newer, shared), "{older:?}");
        }
    }

    #[test]
    fn other_facts_about_the_same_thing_make_none() {
        let update =
            "Update: the Lathe Group has moved and is now based in Graustark, no longer in Ruritania.";
        for (older, newer) in [
            ("The Lathe Group uses Marrowgate.", update),
            ("The Lathe Group targets refineries in Graustark.", update),
            ("The Lathe Group demanded 2 million.", update),
            (
                "The Lathe Group uses Peckware.",
                "The Lathe Group no longer uses Marrowgate.",
            ),
            (BASED, "The Lathe Group is based in Graustark."),
            (
                "The Lathe Group uses Peckware.",
                "The Lathe Group uses many tools, among them Peckware and Marrowgate, in all of its attacks. It does not stay long.",
            ),
            (
                BASED,
                "A firmware update was installed where the Lathe Group is based in Ruritania.",
            ),
            (
                "The Lathe Group hit the Holt dam.",
                "Correction: the Varnholt refinery was not hit by the Lathe Group.",
            ),
        ] {
            let (older, newer) = claims(older, newer);
            assert!(!newer.is_correction_of(&older, &["lathe-group"]), "{newer:?}");
        }
    }

    #[test]
    fn sentences_of_one_form_about_other_codes_are_not_corrected() {
        let claims_of = |old: &str, new: &str| {
            claims(
                &format!("A botnet spread by mail. It leaves the trace {old} behind."),
                &format!("Control by remote software instead of malware. It leaves the trace {new} behind."),
            )
        };
        for (old, new) in [
            ("svcqx17", "svcqx17b"),
            ("q7-panel", "q7-panelb"),
            ("updmngr_k9", "updmngr_k8"),
            ("msdtcx.dll", "msdtcy.dll"),
            ("\\\\pipe\\brnt", "\\\\pipe\\brnx"),
            ("198.51.100.7", "198.51.100.9"),
            ("2001:db8::7", "2001:db8::9"),
            ("gate.lathe.example", "gate.gorse.example"),
            ("CVE-2024-3094", "CVE-2024-3095"),
        ] {
            let (older, newer) = claims_of(old, new);
            assert!(!newer.is_correction_of(&older, &[]), "{old} {new}");
            let (older, newer) = claims_of(old, old);
            assert!(newer.is_correction_of(&older, &[]), "{old}");
        }
        // Defanged, and without a code at all.
        let (older, newer) = claims_of("gate.lathe.example", "gate[.]lathe[.]example");
        assert!(newer.is_correction_of(&older, &[]));
        for plain in [
            "e.g. 3rd 2024-05-01",
            "10.000 25.12.2023 24h",
            "U.S. and/or well-known",
        ] {
            assert!(codes(plain).is_empty(), "{plain} {:?}", codes(plain));
        }
    }

    #[test]
    fn the_time_that_texts_state_tells_which_is_later() {
        let corrected = "Update of 3 May 2021: the Lathe Group is no longer based in Ruritania.";
        let (older, newer) = claims(
            "As of 2 June 2022, the Lathe Group is based in Ruritania.",
            corrected,
        );
        assert!(!newer.is_correction_of(&older, &["lathe-group"]));
        // Written before, but of a later time.
        let (newer, older) = claims(
            corrected,
            "As of 2 June 2020, the Lathe Group is based in Ruritania.",
        );
        assert!(newer.is_correction_of(&older, &["lathe-group"]));
    }

    #[test]
    fn of_two_notes_on_the_same_the_newer_one_is_known() {
        let (older, newer) = claims(BASED, "The Lathe Group is based in Graustark.");
        assert!(newer.is_newer_on_the_same(&older, &["lathe-group"]));
        assert!(!older.is_newer_on_the_same(&newer, &["lathe-group"]));
        let (older, newer) = claims(BASED, "The Lathe Group demanded 2 million.");
        assert!(!newer.is_newer_on_the_same(&older, &["lathe-group"]));
    }
}
