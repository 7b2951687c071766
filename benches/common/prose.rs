//! Texts of a set number of words for the growth runs. Words are as frequent as in real text (Zipf's law, with a long
//! tail of rare ones), and texts have subjects, so that some are closer to each other than to the rest.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::words::{Words, capitalized, often_first};

const FUNCTION_WORDS: &str = "the of and to a in that is for with on by from as it are this which be an has was can \
    may their its have or at not other used been these they using into such when will between also more through than \
    after over where all some were who each one about";
const VOCABULARY: usize = 100_000;
const SUBJECTS: usize = 2_000;
/// Words that are typical of one subject.
const TYPICAL: usize = 20;
/// Share of a text's words that are typical of its subject.
const ON_SUBJECT: f64 = 0.5;
/// Ranks of the words that can be typical of a subject: neither function words nor rare ones.
const TOPICAL: std::ops::Range<usize> = 60..540;
const SENTENCE: RangeInclusive<usize> = 9..=20;
const SEED: u64 = 1_935;

/// A vocabulary, most frequent words first, and the subjects that texts are about.
pub struct Prose {
    words: Vec<String>,
    subjects: Vec<Vec<usize>>,
}

impl Prose {
    pub fn new() -> Self {
        let mut rng = StdRng::seed_from_u64(SEED);
        let words = vocabulary(&mut rng);
        let subjects = (0..SUBJECTS)
            .map(|_| {
                let rank = |_| rng.random_range(TOPICAL);
                (0..TYPICAL).map(rank).collect()
            })
            .collect();
        Self { words, subjects }
    }

    /// A text about a random subject.
    pub fn text(&self, rng: &mut StdRng, words: RangeInclusive<usize>) -> String {
        let subject = self.subjects.choose(rng).map_or(&[][..], Vec::as_slice);
        let mut left = rng.random_range(words);
        let mut text = String::with_capacity(left * 8);
        while left > 0 {
            let length = rng.random_range(SENTENCE).min(left);
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&capitalized(&self.words(rng, subject, length)));
            text.push('.');
            left -= length;
        }
        text
    }

    /// What somebody looking for a random subject asks: a question, a few words, or a sentence of a report.
    pub fn question(&self, rng: &mut StdRng) -> String {
        let subject = self.subjects.choose(rng).map_or(&[][..], Vec::as_slice);
        let mut typical = || self.typical(rng, subject).unwrap_or_default();
        let (one, two, three) = (typical(), typical(), typical());
        match rng.random_range(0..4) {
            0 => format!("which malware was used for the {one} of {two} with {three}"),
            1 => format!("{one} {two} through {three}"),
            _ => {
                let length = rng.random_range(SENTENCE);
                self.words(rng, subject, length)
            }
        }
    }

    /// This many words of a text about the subject.
    fn words(&self, rng: &mut StdRng, subject: &[usize], count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.word(rng, subject)).collect();
        words.join(" ")
    }

    fn word(&self, rng: &mut StdRng, subject: &[usize]) -> &str {
        if rng.random_bool(ON_SUBJECT)
            && let Some(word) = self.typical(rng, subject)
        {
            return word;
        }
        &self.words[often_first(rng, self.words.len())]
    }

    fn typical(&self, rng: &mut StdRng, subject: &[usize]) -> Option<&str> {
        let rank = subject.choose(rng)?;
        self.words.get(*rank).map(String::as_str)
    }
}

/// Function words, the words of reports, and rare words that are two of those in one.
fn vocabulary(rng: &mut StdRng) -> Vec<String> {
    let source = Words::new();
    let reports: Vec<&str> = source.ranked().collect();
    let plain = reports.get(..TOPICAL.len()).unwrap_or(&reports);
    let mut part = || plain.choose(rng).copied().unwrap_or_default();
    let rare = std::iter::repeat_with(|| format!("{}{}", part(), part()));
    let common = FUNCTION_WORDS.split_whitespace().chain(reports.iter().copied());
    let (mut words, mut seen) = (Vec::new(), HashSet::new());
    for word in common.map(str::to_owned).chain(rare) {
        if seen.insert(word.clone()) {
            words.push(word);
        }
        if words.len() == VOCABULARY {
            break;
        }
    }
    words
}
