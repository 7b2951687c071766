//! The phrases of a text that could be names: words with capitals or digits, rare words, and words of scripts that have no
//! capitals; up to five of them, with what lies between.
//!
//! Linear in the text: a bounded number of phrases begins at each word.

use std::cell::OnceCell;
use std::ops::Range;

use super::ordinary::is_common;
use crate::domain::extraction::script::{is_latin, is_of_word, is_unspaced};

/// Words of a phrase, and those of one in a script without capitals, where every word could begin a name.
const MAX_WORDS: usize = 5;
const MAX_CASELESS: usize = 3;
/// Words of a phrase in lower case.
const MAX_LOWER: usize = 3;
/// Parts of a phrase: `APT-C-36` is one word of three.
const MAX_PARTS: usize = 6;
/// Letters of a name between others of a script without spaces.
const UNSPACED: std::ops::RangeInclusive<usize> = 2..=8;
/// Bytes from which a phrase may have the ending of a plural.
const MIN_PLURAL: usize = 6;
/// Particles that Korean attaches to a name.
const PARTICLES: [&str; 18] = [
    "은", "는", "이", "가", "을", "를", "의", "에", "와", "과", "도", "로", "으로", "에서", "에게", "부터",
    "까지", "라는",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// With a capital, with digits beside letters, or of a script without capitals.
    Strong,
    /// In lower case and no ordinary word.
    Rare,
    Plain,
    Number,
}

#[derive(Debug)]
struct Word {
    span: Range<usize>,
    /// Of a script that puts no space between words.
    is_unspaced: bool,
    /// Looked at only if a phrase that may be a name has the word.
    form: OnceCell<Form>,
}

#[derive(Debug, Clone, Copy)]
struct Form {
    shape: Shape,
    /// Of a script that has no capitals.
    is_caseless: bool,
}

impl Word {
    fn form(&self, text: &str) -> Form {
        *self
            .form
            .get_or_init(|| Form::of(text.get(self.span.clone()).unwrap_or_default()))
    }

    fn shape(&self, text: &str) -> Shape {
        self.form(text).shape
    }
}

/// Calls `look` with the place of each phrase of the text that could be a name, in the order of their first words. Where
/// `begins` says of the text from a word on that no name begins there, none is looked for.
pub(super) fn each_phrase(text: &str, begins: impl Fn(&str) -> bool, mut look: impl FnMut(Range<usize>)) {
    let words = words_of(text);
    let begins = |at: usize| begins(text.get(at..).unwrap_or_default());
    for (first, word) in words.iter().enumerate() {
        if word.is_unspaced {
            each_part(text, &word.span, begins, &mut look);
        }
        if !begins(word.span.start) || follows_apostrophe(text, word) {
            continue;
        }
        let is_caseless = word.form(text).is_caseless;
        let most = if is_caseless { MAX_CASELESS } else { MAX_WORDS };
        let mut spaces = 0;
        for last in first..words.len().min(first + MAX_PARTS) {
            let Some(phrase) = words.get(first..=last) else {
                break;
            };
            if let [.., before, end] = phrase {
                let gap = text.get(before.span.end..end.span.start).unwrap_or_default();
                spaces += usize::from(gap.contains(char::is_whitespace));
                if !joins(gap) || spaces >= most {
                    break;
                }
            }
            if could_name(text, phrase) {
                each_form(text, phrase, &mut look);
            }
        }
    }
}

/// A phrase, and what it is without the ending of a plural or a particle.
fn each_form(text: &str, phrase: &[Word], look: &mut impl FnMut(Range<usize>)) {
    let (Some(first), Some(last)) = (phrase.first(), phrase.last()) else {
        return;
    };
    let (start, end) = (first.span.start, last.span.end);
    look(start..end);
    let word = text.get(last.span.clone()).unwrap_or_default();
    if word.ends_with('s') && end - start >= MIN_PLURAL {
        look(start..end - 1);
    } else if word.ends_with(|c| matches!(c, '가'..='힣')) {
        for particle in PARTICLES {
            if word.len() > particle.len() + 3 && word.ends_with(particle) {
                look(start..end - particle.len());
            }
        }
    }
}

/// The parts of words that are written without spaces.
fn each_part(
    text: &str,
    run: &Range<usize>,
    begins: impl Fn(usize) -> bool,
    look: &mut impl FnMut(Range<usize>),
) {
    let inner = text.get(run.clone()).unwrap_or_default();
    let ends: Vec<usize> = inner
        .char_indices()
        .map(|(at, _)| run.start + at)
        .chain([run.end])
        .collect();
    for (at, start) in ends.iter().enumerate().filter(|(_, start)| begins(**start)) {
        for length in UNSPACED {
            let Some(end) = ends.get(at + length) else {
                break;
            };
            if (*start..*end) != *run {
                look(*start..*end);
            }
        }
    }
}

fn could_name(text: &str, phrase: &[Word]) -> bool {
    let shapes = || phrase.iter().map(|word| word.shape(text));
    match phrase {
        [] => false,
        [one] => one.span.len() > 1 && matches!(one.shape(text), Shape::Strong | Shape::Rare),
        [first, .., last] => match (first.shape(text), last.shape(text)) {
            (Shape::Strong | Shape::Number, Shape::Strong) | (Shape::Strong, Shape::Number) => true,
            // "Quillmoor spider"
            (Shape::Strong, Shape::Plain) => phrase.len() == 2 && !is_ordinary_word(text, first),
            (Shape::Strong | Shape::Number | Shape::Rare, _) => {
                phrase.len() <= MAX_LOWER && shapes().any(|shape| shape == Shape::Rare)
            }
            (Shape::Plain, Shape::Rare) => phrase.len() == 2,
            // "gate-7b"
            (Shape::Plain, Shape::Strong) => {
                let gap = text.get(first.span.end..last.span.start).unwrap_or_default();
                phrase.len() == 2 && !gap.contains(char::is_whitespace)
            }
            (Shape::Plain, _) => false,
        },
    }
}

fn is_ordinary_word(text: &str, word: &Word) -> bool {
    is_common(text.get(word.span.clone()).unwrap_or_default())
}

/// Whether this is what an apostrophe attaches to a word: `Group's`.
fn follows_apostrophe(text: &str, word: &Word) -> bool {
    let before = text.get(..word.span.start).unwrap_or_default();
    word.span.len() == 1 && before.ends_with(['\'', '’'])
}

/// Whether what lies between two words may be inside a name.
fn joins(gap: &str) -> bool {
    if matches!(gap, "" | " & " | "\r\n" | "\\_") {
        return true;
    }
    let mut chars = gap.chars();
    let only = chars.next().filter(|_| chars.next().is_none());
    let inside = |c| {
        matches!(
            c,
            ' ' | '\n'
                | '\u{a0}'
                | '-'
                | '_'
                | '.'
                | '&'
                | '/'
                | '+'
                | '\''
                | '’'
                | '·'
                | '・'
                | '‐'
                | '‑'
                | '–'
                | '\u{200c}'
                | '@'
        )
    };
    only.is_some_and(inside)
}

fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::with_capacity(text.len() / 6);
    let mut start: Option<(usize, Class)> = None;
    let mut previous = Class::GAP;
    let mut word = |(from, class): (usize, Class), to| {
        words.push(Word {
            span: from..to,
            is_unspaced: class.is_unspaced,
            form: OnceCell::new(),
        });
    };
    for (at, c) in text.char_indices() {
        let class = Class::of(c);
        if class == previous {
            continue;
        }
        if let Some(begun) = start.take_if(|_| class == Class::GAP || class.parts_from(previous)) {
            word(begun, at);
        }
        if class != Class::GAP && start.is_none() {
            start = Some((at, class));
        }
        previous = class;
    }
    if let Some(begun) = start {
        word(begun, text.len());
    }
    words
}

/// What a character is to words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    is_of_word: bool,
    is_latin: bool,
    is_unspaced: bool,
}

impl Class {
    const GAP: Class = Class {
        is_of_word: false,
        is_latin: false,
        is_unspaced: false,
    };

    /// The scripts of most texts are told without a table.
    fn of(c: char) -> Self {
        let is_of_word = match c {
            '\0'..='\u{7f}' => c.is_ascii_alphanumeric(),
            '\u{400}'..='\u{481}' | '\u{48a}'..='\u{4ff}' => true,
            _ => is_of_word(c),
        };
        if !is_of_word {
            return Class::GAP;
        }
        Class {
            is_of_word,
            is_latin: is_latin(c),
            is_unspaced: is_unspaced(c),
        }
    }

    /// Whether two letters that stand side by side belong to two words.
    fn parts_from(self, other: Class) -> bool {
        self.is_latin != other.is_latin || self.is_unspaced != other.is_unspaced
    }
}

impl Form {
    fn of(word: &str) -> Self {
        let has_case = |c: char| c.is_uppercase() || c.is_lowercase();
        let is_caseless = !word.chars().any(has_case) && !word.starts_with(|c: char| c.is_numeric());
        let is_number = word.chars().all(char::is_numeric);
        let shape = if is_number {
            Shape::Number
        } else if is_caseless || word.contains(|c: char| c.is_uppercase() || c.is_numeric()) {
            Shape::Strong
        } else if word.starts_with(is_latin) && !is_common(word) {
            Shape::Rare
        } else {
            Shape::Plain
        };
        Form { shape, is_caseless }
    }
}
