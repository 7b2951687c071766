//! Near-duplicates: notes that say the same in nearly the same words.
//!
//! A false positive loses a fact and a false negative only keeps two notes, so every rule errs towards "different".
//! Two notes that differ in an address, date, name or "not", or in who did what to whom, are different facts, however
//! similar their wording. The newer note must repeat every meaningful word of the older one, in the same order.
//!
//! Meaning is not understood: a paraphrase or a summary is not a near-duplicate.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use crate::domain::extraction::{EntityKind, Extractor};

/// Words that negate or qualify a statement; both texts must contain each equally often.
const QUALIFIERS: &str = "\
    no not never none nothing nobody neither nor without cannot cant isnt arent wasnt werent dont doesnt \
    didnt wont wouldnt couldnt shouldnt hasnt havent hadnt unlikely likely probably possibly perhaps maybe \
    may might could allegedly alleged suspected suspects unconfirmed confirmed confirms denied denies \
    refuted disproved false true wrong incorrect benign malicious only except all every some few many most \
    more less before after until since longer formerly previously first last increased decreased up down \
    above below high low critical patched fixed mitigated retracted rejected withdrawn stopped started one \
    two three four five six seven eight nine ten dozen hundred thousand million billion nicht kein keine nie";
/// Length of the prefix by which word forms are compared, in letters.
const STEM: usize = 5;

static QUALIFIER_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| QUALIFIERS.split(' ').collect());
static STOP_WORD_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split(' ').collect());

/// Prefixes that negate a word: patched, unpatched; active, inactive.
const NEGATING_PREFIXES: &str = "un in im ir il dis de non mis re anti under over";
/// Words without meaning of their own: a near-duplicate may drop, add or exchange them.
const STOP_WORDS: &str = "\
    a an the this that these those it its he she they them his her their we our and also too then as at by for from \
    in into of on onto to toward towards with within which who whom whose is are was were be been being has have had \
    there here so very";
/// Punctuation without meaning of its own. `?`, `<`, `+` and pictures do have meaning.
const PLAIN_MARKS: &str = ".,;:!'\"()[]{}-_/\\*#|`~^–—…“”‘’„«»•·";
/// Words that are capitalised at the start of a sentence without being names.
const PLAIN_STARTS: &str = "\
    a an and as at but by for from he her his in is it its of on or our she that the their these they this \
    those to was we were with also however note observed seen update according";

/// The words of a text, in order: runs of letters and digits in lower case, without apostrophes
/// (`doesn't` becomes `doesnt`).
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(fold(word)));
    words
}

/// Word overlap of two texts, 0 to 1: the Jaccard index of their word bigrams (of single words if a text has fewer
/// than two). Bigrams preserve order: "A attacks B" is not "B attacks A".
pub fn overlap(a: &str, b: &str) -> f64 {
    let (a, b) = (words(a), words(b));
    let (a, b) = (shingles(&a), shingles(&b));
    let shared = a.intersection(&b).count();
    let all = a.len() + b.len() - shared;
    if all == 0 { 1.0 } else { shared as f64 / all as f64 }
}

/// Whether the newer text says the same as the older one in nearly the same words. Their [`overlap`] must be at least
/// `min_overlap` (0.8 is sensible), and both must have the same facts and marks in the same order. Words that only
/// one of them has must not be names or negate the other's. The newer text must repeat every meaningful word of the
/// older one, in order.
pub fn is_near_duplicate(older: &str, newer: &str, min_overlap: f64) -> bool {
    if older == newer {
        return true;
    }
    if overlap(older, newer) < min_overlap {
        return false;
    }
    let (older, newer) = (PreparedText::new(older), PreparedText::new(newer));
    // Texts without words give no evidence.
    !older.words.is_empty()
        && older.sequence == newer.sequence
        && older.facts == newer.facts
        && older.qualifiers() == newer.qualifiers()
        && older.differs_in_plain_words(&newer)
        && newer.repeats_words_of(&older)
}

/// The parts of a text that must not change: identifiers, indicators and known names by canonical value, and
/// bare numbers and dates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyFacts {
    hits: BTreeSet<(EntityKind, String)>,
    numbers: BTreeSet<String>,
}

impl KeyFacts {
    /// The facts of a text.
    pub fn of(text: &str) -> Self {
        PreparedText::new(text).facts
    }

    /// Whether all of the other's facts are included here.
    pub fn cover(&self, other: &Self) -> bool {
        self.hits.is_superset(&other.hits) && self.numbers.is_superset(&other.numbers)
    }

    /// Whether the two have a fact in common.
    pub fn share(&self, other: &Self) -> bool {
        !self.hits.is_disjoint(&other.hits)
    }

    /// The union of both.
    pub fn union(&self, other: &Self) -> Self {
        Self {
            hits: self.hits.union(&other.hits).cloned().collect(),
            numbers: self.numbers.union(&other.numbers).cloned().collect(),
        }
    }
}

/// The words of a text that negate or qualify it: "not", "only", "suspected", …
pub fn qualifying_words(text: &str) -> BTreeSet<String> {
    let read = PreparedText::new(text);
    read.qualifiers().into_keys().map(str::to_owned).collect()
}

/// The share of `part`'s words that also occur in `whole`, 0 to 1. Counts words with digits or at least four letters,
/// compared by their first letters (`uses` and `using` match). 1 if `part` has none.
pub fn containment(part: &str, whole: &str) -> f64 {
    let (part, whole) = (stems(part), stems(whole));
    let shared = part.intersection(&whole).count();
    if part.is_empty() {
        1.0
    } else {
        shared as f64 / part.len() as f64
    }
}

fn stems(text: &str) -> HashSet<String> {
    let carries = |word: &String| word.chars().count() > 3 || word.chars().any(char::is_numeric);
    let words = words(text).into_iter().filter(carries);
    words.map(|word| word.chars().take(STEM).collect()).collect()
}

/// A text prepared for comparison.
struct PreparedText {
    facts: KeyFacts,
    /// Hits, numbers and marks in text order, without adjacent repeats.
    sequence: Vec<String>,
    /// Words outside hits with their counts; true if the word looks like a name.
    words: BTreeMap<String, (usize, bool)>,
    /// Meaningful words outside hits, in text order.
    carrying: Vec<String>,
}

impl PreparedText {
    fn new(text: &str) -> Self {
        let mut read = Self {
            facts: KeyFacts::default(),
            sequence: Vec::new(),
            words: BTreeMap::new(),
            carrying: Vec::new(),
        };
        let mut end = 0;
        for hit in Extractor::shared().extract(text) {
            read.add_words(text.get(end..hit.span.start).unwrap_or_default());
            end = hit.span.end;
            read.add_fact(hit.value.clone());
            read.facts.hits.insert((hit.kind, hit.value));
        }
        read.add_words(text.get(end..).unwrap_or_default());
        read
    }

    fn add_fact(&mut self, fact: String) {
        if self.sequence.last() != Some(&fact) {
            self.sequence.push(fact);
        }
    }

    /// Reads the words, numbers and marks between hits.
    fn add_words(&mut self, text: &str) {
        for token in text.split(char::is_whitespace) {
            let marks = |c: &char| !c.is_alphanumeric() && !PLAIN_MARKS.contains(*c);
            let marks: String = token.chars().filter(marks).collect();
            if !marks.is_empty() {
                self.add_fact(marks);
            }
            let below_zero = token.starts_with(['-', '−']);
            let token = token.trim_matches(|c: char| !c.is_alphanumeric());
            if token.contains(|c: char| c.is_numeric()) {
                let number = token.to_lowercase();
                let sign = if below_zero { "-" } else { "" };
                self.add_fact(format!("{sign}{number}"));
                self.facts.numbers.insert(number);
                continue;
            }
            each_word(token, |word| {
                let folded = fold(word);
                let name = word.chars().any(char::is_uppercase)
                    && !PLAIN_STARTS.split(' ').any(|start| start == folded);
                if !STOP_WORD_SET.contains(folded.as_str()) {
                    self.carrying.push(folded.clone());
                }
                let (count, named) = self.words.entry(folded).or_default();
                *count += 1;
                *named |= name;
            });
        }
    }

    fn qualifiers(&self) -> BTreeMap<&str, usize> {
        let counted = self
            .words
            .iter()
            .map(|(word, (count, _))| (word.as_str(), *count));
        counted.filter(|(word, _)| QUALIFIER_SET.contains(word)).collect()
    }

    /// Whether this text repeats every meaningful word of the older one, in order.
    fn repeats_words_of(&self, older: &Self) -> bool {
        let mut words = self.carrying.iter();
        older.carrying.iter().all(|word| words.any(|own| own == word))
    }

    /// Whether the words that only one side has are not names and do not negate a word that only the other has.
    fn differs_in_plain_words(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.words_missing_from(other), other.words_missing_from(self));
        let named = mine.values().chain(theirs.values()).any(|name| *name);
        !named && !negates_any(&mine, &theirs) && !negates_any(&theirs, &mine)
    }

    /// The words missing from the other text; true for names.
    fn words_missing_from(&self, other: &Self) -> BTreeMap<&str, bool> {
        let own = self
            .words
            .iter()
            .filter(|(word, _)| !other.words.contains_key(*word));
        own.map(|(word, (_, name))| (word.as_str(), *name)).collect()
    }
}

/// Whether a word equals one of `others` with a negating prefix.
fn negates_any(words: &BTreeMap<&str, bool>, others: &BTreeMap<&str, bool>) -> bool {
    let negates = |word: &str| {
        let mut stems = NEGATING_PREFIXES
            .split(' ')
            .filter_map(|prefix| word.strip_prefix(prefix));
        stems.any(|stem| others.contains_key(stem))
    };
    words.keys().any(|word| negates(word))
}

fn shingles(words: &[String]) -> BTreeSet<(&str, &str)> {
    if let [word] = words {
        return BTreeSet::from([(word.as_str(), "")]);
    }
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs.map(|(a, b)| (a.as_str(), b.as_str())).collect()
}

fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let parts = text.split(|c: char| !(c.is_alphanumeric() || is_apostrophe(c)));
    parts
        .map(|word| word.trim_matches(is_apostrophe))
        .filter(|word| !word.is_empty())
        .for_each(&mut take);
}

fn fold(word: &str) -> String {
    word.chars()
        .filter(|c| !is_apostrophe(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

#[cfg(test)]
mod tests;
