//! Whether words occur in a text, ignoring case, whitespace and defanging.
//!
//! Models also straighten quotes and dashes, so variants of these are treated as equal. A name must occur as separate
//! words: "Play" does not occur in "display". Look-ups use a word index, so that thousands of them, as in an answer
//! crafted to be slow, cost little. A match must start at the start of a word.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::domain::cursor::Cursor;
use crate::domain::extraction::{canonical_name, refang};

/// Number of leading needle words among which the rarest is used for the look-up.
const MAX_WORDS: usize = 12;
/// Maximum number of positions checked per look-up; a needle of only very frequent words is not worth more.
const MAX_PLACES: usize = 2000;

/// A text indexed for look-ups.
#[derive(Debug)]
pub struct Haystack {
    written: FoldedText,
    /// For each byte of the folded text, its byte offset in the original.
    origin: Vec<usize>,
    /// The text with its indicators refanged; `None` if that changes nothing.
    refanged: Option<FoldedText>,
}

/// A folded text and the start offsets of its words.
#[derive(Debug)]
struct FoldedText {
    text: String,
    words: HashMap<u64, Vec<usize>>,
}

/// Where words were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotePosition {
    /// Byte range in the original text.
    At(Range<usize>),
    /// Only in the refanged text.
    Refanged,
}

impl Haystack {
    pub fn new(text: &str) -> Self {
        let (folded, origin) = fold_with_origin(text);
        let plain = refang(text);
        let refanged = (plain != text).then(|| FoldedText::new(fold(&plain)));
        Self {
            written: FoldedText::new(folded),
            origin,
            refanged,
        }
    }

    /// Finds a name as separate words.
    pub fn name(&self, name: &str) -> Option<QuotePosition> {
        self.find(name, true)
    }

    /// Finds a passage.
    pub fn quote(&self, quote: &str) -> Option<QuotePosition> {
        self.find(quote, false)
    }

    fn find(&self, words: &str, whole: bool) -> Option<QuotePosition> {
        let needle = fold(words);
        if let Some(at) = self.written.find(&needle, whole) {
            let original = |folded: usize| self.origin.get(folded).copied().unwrap_or_default();
            return Some(QuotePosition::At(original(at)..original(at + needle.len())));
        }
        let refanged = self.refanged.as_ref()?;
        let needle = fold(&refang(words));
        refanged.find(&needle, whole).map(|_| QuotePosition::Refanged)
    }
}

impl FoldedText {
    fn new(text: String) -> Self {
        let mut words: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, word) in words_of(&text) {
            words.entry(hash(word)).or_default().push(at);
        }
        Self { text, words }
    }

    fn find(&self, needle: &str, whole: bool) -> Option<usize> {
        let places = |word: &str| self.words.get(&hash(word)).map_or(&[][..], Vec::as_slice);
        // The last word of a quote may be truncated, so it is used only if it is the only one.
        let words: Vec<(usize, &str)> = words_of(needle).take(MAX_WORDS).collect();
        let sure = words.len().saturating_sub(1).max(1);
        let (lead, rarest) = words
            .iter()
            .take(sure)
            .map(|(lead, word)| (*lead, places(word)))
            .min_by_key(|(_, places)| places.len())?;
        let starts = rarest
            .iter()
            .take(MAX_PLACES)
            .filter_map(|place| place.checked_sub(lead));
        starts
            .filter(|at| self.text.get(*at..).is_some_and(|rest| rest.starts_with(needle)))
            .find(|at| !whole || stands_alone(&self.text, *at, at + needle.len()))
    }
}

/// Words and their offsets: runs of letters and digits, or single letters in scripts without case.
fn words_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut cursor = Cursor::new(text);
    std::iter::from_fn(move || {
        loop {
            let start = cursor.at();
            let first = cursor.bump()?;
            if joins(first) {
                cursor.skip_while(joins);
            }
            if first.is_alphanumeric() || joins(first) {
                return Some((start, text.get(start..cursor.at())?));
            }
        }
    })
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

/// Whether a quote contains a name, allowing for different separators (`X Agent`, `X-Agent`).
pub fn quote_names(quote: &str, name: &str) -> bool {
    let plain = fold(&refang(quote));
    let needle = fold(&refang(name));
    let mut places = plain.match_indices(&needle).filter(|_| !needle.is_empty());
    if places.any(|(at, _)| stands_alone(&plain, at, at + needle.len())) {
        return true;
    }
    let canonical = canonical_name(name);
    // Looks for consecutive words of the quote that together form the name.
    let words: Vec<String> = plain
        .split(|c: char| !c.is_alphanumeric())
        .map(str::to_owned)
        .filter(|word| !word.is_empty())
        .collect();
    !canonical.is_empty()
        && (0..words.len()).any(|from| spells(words.get(from..).unwrap_or_default(), &canonical))
}

fn spells(words: &[String], name: &str) -> bool {
    let mut rest = name;
    for word in words {
        match rest.strip_prefix(word.as_str()) {
            Some("") => return true,
            Some(more) => rest = more,
            None => return false,
        }
    }
    false
}

/// The folded text and, for each of its bytes and its end, the offset in the original.
fn fold_with_origin(text: &str) -> (String, Vec<usize>) {
    let mut folded = String::with_capacity(text.len());
    let mut origin = Vec::with_capacity(text.len() + 1);
    for (at, c) in text.char_indices() {
        fold_char(c, folded.ends_with(' '), |c| {
            folded.push(c);
            origin.resize(folded.len(), at);
        });
    }
    origin.push(text.len());
    (folded, origin)
}

/// Normalises text for comparison.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.trim().chars() {
        let spaced = folded.ends_with(' ');
        fold_char(c, spaced, |c| folded.push(c));
    }
    folded
}

fn fold_char(c: char, spaced: bool, mut push: impl FnMut(char)) {
    match c {
        // Zero-width characters, left behind by PDF readers.
        '\u{200b}' | '\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => {}
        '‘' | '’' | '`' => push('\''),
        '“' | '”' => push('"'),
        '\u{2010}'..='\u{2015}' => push('-'),
        _ if c.is_whitespace() || c.is_control() => {
            if !spaced {
                push(' ');
            }
        }
        _ => c.to_lowercase().for_each(push),
    }
}

/// Whether a range is not part of a longer word.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let inside = text.get(start..end).unwrap_or_default();
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    let after = text.get(end..).and_then(|after| after.chars().next());
    let joins = |a: Option<char>, b: Option<char>| a.is_some_and(joins) && b.is_some_and(joins);
    !joins(before, inside.chars().next()) && !joins(inside.chars().next_back(), after)
}

/// Cased letters, digits and underscores continue a word; scripts without case do not separate words by spaces.
fn joins(c: char) -> bool {
    c.is_lowercase() || c.is_ascii_digit() || c == '_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at<'t>(text: &'t str, words: &str) -> Option<&'t str> {
        match Haystack::new(text).name(words)? {
            QuotePosition::At(range) => Some(&text[range]),
            QuotePosition::Refanged => Some(""),
        }
    }

    #[test]
    fn case_space_quotes_and_defanging_do_not_matter() {
        let text = "The  group’s\n“X–Agent” calls evil[.]com.";
        assert_eq!(at(text, "the group's"), Some("The  group’s"));
        assert_eq!(at(text, "x-agent"), Some("X–Agent"));
        assert_eq!(at(text, "evil[.]com"), Some("evil[.]com"));
        assert_eq!(at(text, "evil.com"), Some(""));
        assert_eq!(at(text, "other.com"), None);
        assert_eq!(at(text, " "), None);
    }

    #[test]
    fn a_name_stands_as_words_of_its_own() {
        assert_eq!(at("the display plays", "Play"), None);
        assert_eq!(at("a replay; Play struck", "Play"), Some("Play"));
        assert_eq!(at("11.2.3.45", "1.2.3.4"), None);
        assert_eq!(at("攻撃者は摩訶草を使用", "摩訶草"), Some("摩訶草"));
        let text = "The group used a display.";
        assert!(Haystack::new(text).quote("group used a disp").is_some());
        assert!(Haystack::new(text).name("group used a disp").is_none());
        assert!(Haystack::new(text).quote("group uses a display").is_none());
    }

    #[test]
    fn a_quote_holds_names_in_other_spellings() {
        for (quote, name, want) in [
            ("APT 28 used X Agent.", "X-Agent", true),
            ("APT 28 used X Agent.", "APT28", true),
            ("It calls evil[.]com.", "evil.com", true),
            ("The display failed.", "Play", false),
            ("A long gap between X and Agent.", "X-Agent", false),
            ("", "X", false),
            ("X", "", false),
        ] {
            assert_eq!(quote_names(quote, name), want, "{quote} / {name}");
        }
    }

    proptest! {
        #[test]
        fn words_of_a_text_are_found_in_it(
            text in r"([a-zA-Zé0-9_.'“-]{1,8}[ \n]{1,2}|漢字|evil\[\.\]com ){0,20}", from in 0usize..20, len in 1usize..9,
        ) {
            let words: Vec<&str> = text.split_whitespace().skip(from).take(len).collect();
            let words = words.join(" ");
            if words_of(&fold(&words)).next().is_some() {
                for place in [Haystack::new(&text).quote(&words), Haystack::new(&text).name(&words)] {
                    prop_assert!(matches!(&place, Some(QuotePosition::At(range)) if text.get(range.clone()).is_some()), "{place:?}");
                }
            }
        }

        #[test]
        fn any_words_may_be_looked_up_in_any_text(text in any::<String>(), words in any::<String>()) {
            if let Some(QuotePosition::At(range)) = Haystack::new(&text).quote(&words) {
                prop_assert!(text.get(range).is_some());
            }
        }
    }
}
