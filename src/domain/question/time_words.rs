//! The phrases of `assets/question/times.txt`, by the lists in which they stand.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lexicon::sections;
use super::words::Word;

const TIMES: &str = include_str!("../../../assets/question/times.txt");
/// Words of the longest phrase.
const LONGEST: usize = 3;

/// A list of phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeList {
    Newest,
    Oldest,
    Last,
    First,
    Events,
    Records,
    Releases,
    Present,
    Comparing,
    ThatDay,
    DayBefore,
    /// The English word for a word beside a date.
    Same(&'static str),
}

#[derive(Default)]
struct TimeWords {
    phrases: HashMap<&'static str, Vec<TimeList>>,
}

static WORDS: LazyLock<TimeWords> = LazyLock::new(TimeWords::read);

impl TimeWords {
    fn read() -> Self {
        let mut words = TimeWords::default();
        for (name, phrases) in sections(TIMES) {
            let Some(list) = TimeList::named(name) else {
                continue;
            };
            for phrase in phrases {
                words.phrases.entry(phrase).or_default().push(list);
            }
        }
        words
    }
}

impl TimeList {
    fn named(name: &'static str) -> Option<Self> {
        Some(match name {
            "newest" => Self::Newest,
            "oldest" => Self::Oldest,
            "last" => Self::Last,
            "first" => Self::First,
            "events" => Self::Events,
            "records" => Self::Records,
            "releases" => Self::Releases,
            "present" => Self::Present,
            "comparing" => Self::Comparing,
            "that day" => Self::ThatDay,
            "day before" => Self::DayBefore,
            _ => Self::Same(name.strip_prefix("same as ")?),
        })
    }

    /// How many words the longest phrase of the list has that begins at this word; 0 if none does.
    pub(super) fn length_at(self, words: &[Word], at: usize) -> usize {
        let behind = words.get(at..).unwrap_or_default();
        let begins = |length: &usize| {
            let Some(phrase) = behind.get(..*length) else {
                return false;
            };
            match phrase {
                [single] => self.has(&single.text),
                _ => {
                    let texts: Vec<&str> = phrase.iter().map(|word| word.text.as_str()).collect();
                    self.has(&texts.join(" "))
                }
            }
        };
        (1..=LONGEST).rev().find(begins).unwrap_or(0)
    }

    /// Whether the list has this phrase, which is in lower case. An article before an apostrophe is no part of it.
    pub(super) fn has(self, phrase: &str) -> bool {
        let stands = |phrase: &str| {
            let lists = WORDS.phrases.get(phrase);
            lists.is_some_and(|lists| lists.contains(&self))
        };
        let elided = phrase.split_once(['\'', '’']);
        stands(phrase) || elided.is_some_and(|(article, rest)| article.len() == 1 && stands(rest))
    }
}

/// The English word that a word beside a date stands for, or the word itself.
pub(super) fn in_english<'w>(word: &'w str, among: &[&'static str]) -> &'w str {
    let stands = |english: &&&'static str| TimeList::Same(english).has(word);
    among.iter().find(stands).copied().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn every_list_of_the_file_is_known_and_every_phrase_can_match() {
        for (name, phrases) in sections(TIMES) {
            let list = TimeList::named(name).unwrap_or_else(|| panic!("{name} is no list"));
            for phrase in phrases {
                let found = words(phrase);
                assert_eq!(list.length_at(&found, 0), found.len(), "{phrase}");
                assert!((1..=LONGEST).contains(&found.len()), "{phrase}");
            }
        }
    }

    #[test]
    fn words_beside_dates_are_read_as_the_english_ones() {
        let all = ["before", "after", "since", "until", "of"];
        for (word, english) in [
            ("vor", "before"),
            ("depuis", "since"),
            ("hasta", "until"),
            ("después", "after"),
            ("jahr", "of"),
            ("before", "before"),
            ("refinery", "refinery"),
        ] {
            assert_eq!(in_english(word, &all), english);
        }
    }
}
