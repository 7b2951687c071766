//! The words of `assets/question/context.txt`: how questions ask for the objects that give context.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::kind::{Kind, relationship_code, relationship_of_code};
use super::lexicon::{kinds_of, plurals, sections};
use super::words::Word;

const CONTEXT: &str = include_str!("../../../assets/question/context.txt");
const COUNTRIES: &str = include_str!("../../../assets/question/countries.txt");
/// Words of the longest noun or phrase.
const LONGEST: usize = 5;

/// How relationships are asked for.
#[derive(Debug)]
pub(super) struct Verb {
    /// The relationships, the usual one first.
    pub(super) along: Vec<&'static str>,
    /// What is asked for if no noun says so, the most fitting one first.
    pub(super) asks: Vec<Kind>,
}

#[derive(Debug, Default)]
struct ContextWords {
    nouns: HashMap<String, Vec<Kind>>,
    verbs: Vec<Verb>,
    /// The places in `verbs` of those that a phrase means.
    phrases: HashMap<&'static str, Vec<usize>>,
    onward: Vec<&'static str>,
    sector_ends: Vec<&'static str>,
}

static WORDS: LazyLock<ContextWords> = LazyLock::new(ContextWords::read);

impl ContextWords {
    fn read() -> Self {
        let mut words = ContextWords::default();
        for (name, entries) in sections(CONTEXT) {
            let (what, rest) = name.split_once(' ').unwrap_or((name, ""));
            match what {
                "noun" => words.add_nouns(&kinds_of(rest), &entries),
                "verb" => words.add_verb(rest, entries),
                "onward" => words.onward = entries,
                "sector" => words.sector_ends = entries,
                _ => {}
            }
        }
        words
    }

    fn add_nouns(&mut self, kinds: &[Kind], nouns: &[&str]) {
        for noun in nouns {
            self.nouns.insert((*noun).to_owned(), kinds.to_vec());
            // The head of "kind of equipment" comes first.
            let (head, tail) = match noun.split_once(" of ") {
                Some((head, tail)) => (head, format!(" of {tail}")),
                None => (*noun, String::new()),
            };
            for plural in plurals(head) {
                let plural = format!("{plural}{tail}");
                self.nouns.entry(plural).or_insert_with(|| kinds.to_vec());
            }
        }
    }

    fn add_verb(&mut self, header: &'static str, phrases: Vec<&'static str>) {
        let (along, asks) = header.split_once(':').unwrap_or((header, ""));
        let known = |name: &str| relationship_of_code(relationship_code(name));
        let place = self.verbs.len();
        self.verbs.push(Verb {
            along: along.split_whitespace().filter_map(known).collect(),
            asks: kinds_of(asks.trim()),
        });
        for phrase in phrases {
            self.phrases.entry(phrase).or_default().push(place);
        }
    }
}

/// The longest phrase that begins at a word and that something is known of.
fn longest<T>(words: &[Word], at: usize, known: impl Fn(&str) -> Option<T>) -> Option<(usize, T)> {
    (1..=LONGEST).rev().find_map(|length| {
        let phrase = words.get(at..at + length)?;
        let (_, before_last) = phrase.split_last()?;
        if before_last.iter().any(Word::ends_part) {
            return None;
        }
        let texts: Vec<&str> = phrase.iter().map(|word| word.text.as_str()).collect();
        Some((length, known(&texts.join(" "))?))
    })
}

/// The noun for objects that give context which begins at a word: its length in words, and the kinds that it asks for.
pub(super) fn noun_at(words: &[Word], at: usize) -> Option<(usize, &'static [Kind])> {
    longest(words, at, |noun| WORDS.nouns.get(noun).map(Vec::as_slice))
}

/// The relationships that the words beginning here ask for, and how many words these are.
pub(super) fn verbs_at(words: &[Word], at: usize) -> Option<(usize, Vec<&'static Verb>)> {
    longest(words, at, |phrase| {
        let places = WORDS.phrases.get(phrase)?;
        Some(
            places
                .iter()
                .filter_map(|place| WORDS.verbs.get(*place))
                .collect(),
        )
    })
}

/// How "from" and the like before a place ask for what is at home there.
pub(super) fn home() -> Option<&'static Verb> {
    WORDS.verbs.iter().find(|verb| verb.along.contains(&"located-at"))
}

/// Whether a verb leads on from its subject: "resolves to".
pub(super) fn leads_on(word: &str) -> bool {
    let is_begin = |phrase: &&str| phrase.split(' ').next() == Some(word);
    WORDS.onward.iter().any(is_begin)
}

/// The names of each country by its code.
static COUNTRY_NAMES: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let lines = COUNTRIES.lines().filter(|line| !line.starts_with('#'));
    let entries = lines.filter_map(|line| line.split_once(' '));
    entries
        .map(|(code, names)| (code, names.split(", ").collect()))
        .collect()
});

/// The English names of the country with this code (ISO 3166-1), in any case.
pub fn country_names(code: &str) -> impl Iterator<Item = &'static str> {
    let names = COUNTRY_NAMES.get(code.trim().to_ascii_uppercase().as_str());
    names.into_iter().flatten().copied()
}

/// The name of a sector without the word that only says that it is one; `None` if there is no such word.
pub fn bare_sector(name: &str) -> Option<&str> {
    let (bare, end) = name.trim().rsplit_once(' ')?;
    let end = end.to_lowercase();
    WORDS.sector_ends.contains(&end.as_str()).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn every_section_is_read_and_every_phrase_can_match() {
        for (name, entries) in sections(CONTEXT) {
            let (what, rest) = name.split_once(' ').unwrap_or((name, ""));
            assert!(!entries.is_empty(), "{name}");
            let kinds = match what {
                "noun" => rest,
                "verb" => {
                    let (along, kinds) = rest.split_once(" : ").unwrap();
                    for name in along.split(' ') {
                        assert_ne!(relationship_code(name), 0, "{name}");
                    }
                    kinds
                }
                "onward" | "sector" => "",
                other => panic!("{other} is no section"),
            };
            let named = kinds.split(' ').filter(|name| !name.is_empty()).count();
            assert_eq!(kinds_of(kinds).len(), named, "{name}");
            for entry in entries {
                let found = words(entry);
                let length = match what {
                    "noun" => noun_at(&found, 0).map(|(length, _)| length),
                    "verb" => verbs_at(&found, 0).map(|(length, _)| length),
                    _ => Some(found.len()),
                };
                assert_eq!(length, Some(found.len()), "{entry}");
            }
        }
        assert!(home().is_some());
    }

    #[test]
    fn a_country_has_its_usual_names() {
        assert_eq!(country_names("ua").collect::<Vec<_>>(), ["Ukraine"]);
        assert!(country_names("US").any(|name| name == "USA"));
        assert_eq!(country_names("XX").count(), 0);
        for (code, names) in COUNTRY_NAMES.iter() {
            assert!(
                code.len() == 2 && names.iter().all(|name| name.trim() == *name && !name.is_empty()),
                "{code}"
            );
        }
    }
}
