//! Words of the field in other languages, read as the English words for the same concept, in notes and in questions: one
//! about a "Krankenhaus" finds a text about an "hôpital".

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::fold;

/// Each line: the English words, a colon, the words that stand for them.
const TERMS: &str = include_str!("../../../assets/lexicon/terms.txt");
/// Characters of the shortest beginning that stands for a word, and of the longest word of a language without spaces.
const MIN_BEGINNING: usize = 3;
const MAX_UNSPACED: usize = 12;
/// What Arabic writes before a word: the article, "and", "for", "with".
const ARABIC_PREFIXES: [&str; 7] = ["وال", "بال", "لل", "ال", "و", "ل", "ب"];

struct Lexicon {
    whole: HashMap<String, &'static str>,
    beginnings: HashMap<String, &'static str>,
    /// Words of Chinese and Japanese, by their first character.
    unspaced: HashMap<char, Vec<(&'static str, &'static str)>>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon {
        whole: HashMap::new(),
        beginnings: HashMap::new(),
        unspaced: HashMap::new(),
    };
    let lines = TERMS.lines().filter(|line| !line.starts_with('#'));
    for (english, words) in lines.filter_map(|line| line.split_once(':')) {
        for word in words.split_whitespace() {
            match (word.chars().next(), word.strip_suffix('*')) {
                (Some(first), None) if is_unspaced(first) => {
                    lexicon.unspaced.entry(first).or_default().push((word, english));
                }
                (_, Some(beginning)) => {
                    lexicon.beginnings.entry(fold(beginning)).or_insert(english);
                }
                (_, None) => {
                    lexicon.whole.entry(fold(word)).or_insert(english);
                }
            }
        }
    }
    for words in lexicon.unspaced.values_mut() {
        words.sort_unstable_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    }
    lexicon
});

/// Whether a letter is of a script that writes words without spaces between them.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// The English words for a folded word of another language.
pub(super) fn english_of(word: &str) -> Option<&'static str> {
    let lexicon = &*LEXICON;
    if let Some(english) = lexicon.whole.get(word) {
        return Some(english);
    }
    let ends = word.char_indices().map(|(at, _)| at).skip(MIN_BEGINNING);
    let mut ends: Vec<usize> = ends.take(MAX_UNSPACED).collect();
    ends.push(word.len());
    let beginning = ends
        .iter()
        .rev()
        .find_map(|end| lexicon.beginnings.get(word.get(..*end)?));
    beginning.copied().or_else(|| of_arabic(word))
}

/// Whether a word is one of another language that has English words here.
pub(in crate::search) fn knows(word: &str) -> bool {
    english_of(&fold(word)).is_some()
}

fn of_arabic(word: &str) -> Option<&'static str> {
    if !word.starts_with(|c: char| ('\u{600}'..='\u{6ff}').contains(&c)) {
        return None;
    }
    // Vowels are written now and then.
    let bare: String = word
        .chars()
        .filter(|c| !('\u{64b}'..='\u{652}').contains(c))
        .collect();
    let stems = ARABIC_PREFIXES
        .iter()
        .filter_map(|prefix| bare.strip_prefix(prefix));
    let mut forms = std::iter::once(bare.as_str()).chain(stems);
    forms.find_map(|form| LEXICON.whole.get(form).copied())
}

/// The English words for what stands in a text without spaces, the longest words first at each place.
pub(super) fn english_in(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let words = LEXICON.unspaced.get(&first).map_or(&[][..], Vec::as_slice);
        let here = words.iter().find(|(word, _)| rest.starts_with(word));
        let length = here.map_or(first.len_utf8(), |(word, _)| word.len());
        found.extend(here.map(|(_, english)| *english));
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

/// A text with the English words beside those of other languages, for a model that knows only English.
pub(in crate::search) fn with_english(text: &str) -> Cow<'_, str> {
    let mut english: Vec<&str> = Vec::new();
    for word in super::words(text) {
        if word.contains(is_unspaced) {
            english.extend(english_in(word));
        } else if word.chars().all(char::is_alphabetic) {
            english.extend(english_of(&fold(word)));
        }
    }
    if english.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{} {text}", english.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_seven_languages_are_one_concept() {
        for word in [
            "Krankenhaus",
            "Krankenhauses",
            "hôpital",
            "hôpitaux",
            "hospitales",
            "больницы",
            "المستشفى",
            "مستشفى",
        ] {
            assert_eq!(english_of(&fold(word)), Some("hospital clinic"), "{word}");
        }
        for text in ["攻击者进入医院网络", "病院のサーバー", "医院"] {
            assert!(english_in(text).contains(&"hospital clinic"), "{text}");
        }
        assert_eq!(english_in("勒索软件"), ["ransomware"]);
    }

    #[test]
    fn english_stays_as_it_is() {
        let text = "The attackers encrypted the servers of a hospital, deleted the backups and asked for a ransom; military \
                    and election networks, pirates, clients, journalists and a compromised certificate were no targets.";
        assert!(
            matches!(with_english(text), Cow::Borrowed(_)),
            "{}",
            with_english(text)
        );
    }

    #[test]
    fn every_line_has_english_and_other_words() {
        for line in TERMS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            let (english, words) = line.split_once(':').unwrap();
            assert!(english.split_whitespace().count() > 0, "{line}");
            assert!(words.split_whitespace().count() > 2, "{line}");
            for word in words.split_whitespace() {
                let letters = word.trim_end_matches('*');
                assert!(letters.chars().all(|c| c.is_alphanumeric()), "{word}");
                let is_english = english.split_whitespace().any(|one| one == word);
                assert!(!is_english, "{word}");
            }
        }
    }
}
