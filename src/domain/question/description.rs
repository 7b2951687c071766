//! Groups that a question describes but does not name: "malware of Russian groups", "groups attributed to the GRU".

use std::ops::Range;

use super::kind::Kind;
use super::lexicon::{List, country_of};
use super::words::{self, KindMention, Word};
use super::{Name, Question, QuestionPlan};

/// Least length of a country's name, in bytes.
const MIN_COUNTRY: usize = 4;

/// What a question says of the groups that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The words, as [`super::NameCandidate::words`] tells them.
    pub words: Range<usize>,
    /// Those that describe, each with other words for it: "Russian" and "Russia".
    terms: Vec<Vec<String>>,
}

impl Description {
    /// All words by which groups that fit can be looked for.
    pub fn text(&self) -> String {
        let terms: Vec<&str> = self.terms.iter().flatten().map(String::as_str).collect();
        terms.join(" ")
    }

    /// Whether a text about a group says all of it.
    pub fn fits(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let said: Vec<&str> = word_parts(&text).collect();
        let means = |said: &str, words: &[String]| {
            let is_word = words.iter().any(|word| is_same(word, said));
            is_word || countries(said).any(|country| words.first() == Some(&country))
        };
        let is_said = |words: &Vec<String>| said.iter().any(|said| means(said, words));
        self.terms.iter().all(is_said)
    }
}

/// The words of a text without hyphens and other marks.
fn word_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// Whether two words are the same but for the ending of a plural.
fn is_same(word: &str, said: &str) -> bool {
    fn singular(word: &str) -> &str {
        word.strip_suffix('s').unwrap_or(word)
    }
    word == said || (singular(word).len() > 2 && singular(word) == singular(said))
}

/// What the country of an adjective can be called: "Russian", "Iranian", "Vietnamese" and "Iraqi" contain its name.
pub(super) fn countries(adjective: &str) -> impl Iterator<Item = String> {
    let irregular = country_of(adjective).into_iter();
    let endings = ["n", "ian", "ese", "i"].into_iter();
    let regular = endings.filter_map(|ending| adjective.strip_suffix(ending));
    let regular = regular.filter(|country| country.len() >= MIN_COUNTRY);
    let found = irregular.chain(regular);
    found.map(str::to_owned)
}

impl Question {
    /// What the question says of groups without naming them.
    pub fn description(&self) -> Option<Description> {
        let places = self.find_describing_words();
        let terms: Vec<Vec<String>> = places
            .iter()
            .filter_map(|at| self.words.get(*at))
            .flat_map(|word| word_parts(&word.text))
            .filter(|part| part.chars().count() > 1 && !words::is_function_word(part))
            .map(|part| std::iter::once(part.to_owned()).chain(countries(part)).collect())
            .collect();
        let (first, last) = (places.iter().min()?, places.iter().max()?);
        (!terms.is_empty()).then_some(Description {
            words: *first..last + 1,
            terms,
        })
    }

    /// What the question asks for if its subject describes groups: things of theirs.
    pub fn plan_for_described_groups(&self) -> Option<QuestionPlan> {
        let name = |at: usize| Name {
            words: at..at + 1,
            kinds: vec![Kind::Group],
        };
        let names: Vec<Name> = self.find_describing_words().into_iter().map(name).collect();
        let mut plan = self.plan(&names)?;
        if plan.through.contains(&Kind::Group) {
            plan.through.clear();
            plan.period_is_of_through = false;
        }
        let asks_for_them = plan.wanted.contains(&Kind::Group) && plan.through.is_empty();
        (!asks_for_them).then_some(plan)
    }

    /// The words next to a mention of groups that describe them.
    fn find_describing_words(&self) -> Vec<usize> {
        let mentions = words::mentions(&self.words, |_| false);
        let of_groups = |kinds: &[Kind]| kinds.contains(&Kind::Group);
        let groups = mentions
            .iter()
            .filter(|mention| !mention.asks && (of_groups(mention.kinds) || of_groups(mention.owners)));
        let describing = groups.map(|groups| {
            let mut found = self.modifiers(groups);
            if of_groups(groups.kinds) {
                found.extend(self.attributes(groups, &mentions));
            }
            found
        });
        let mut describing = describing.peekable();
        if describing.peek().is_none() {
            return Vec::new();
        }
        let beside = describing.find(|found| !found.is_empty());
        beside.unwrap_or_else(|| self.proper_nouns())
    }

    /// The proper nouns of a question that names no node: "The GRU has many groups: what malware do they use?".
    fn proper_nouns(&self) -> Vec<usize> {
        let subject = self.subject();
        let words = self.words.iter().enumerate();
        let proper =
            words.filter(|(at, word)| subject.contains(&word.text.as_str()) && self.is_proper(*at, word));
        proper.map(|(at, _)| at).collect()
    }

    /// Whether a word is written in capitals, or with one within the sentence.
    fn is_proper(&self, at: usize, word: &Word) -> bool {
        let text = self.text.get(word.span.clone()).unwrap_or_default();
        let mut capitals = text.chars().map(char::is_uppercase);
        let first = capitals.next() == Some(true);
        first && (at > 0 || (text.len() > 1 && capitals.all(|capital| capital)))
    }

    /// The words right before groups: "Russian groups", "GRU-linked actors".
    fn modifiers(&self, groups: &KindMention) -> Vec<usize> {
        let before = self.words.get(..groups.at.start).unwrap_or_default();
        let describe = before.iter().enumerate().rev().take_while(|(_, word)| {
            !word.ends_part() && (word.attached || !words::is_function_word(&word.text))
        });
        describe
            .filter(|(at, word)| !word.attached && self.is_descriptive(*at, word))
            .map(|(at, _)| at)
            .collect()
    }

    /// The words after groups that a preposition, participle or verb links to them: "groups attributed to the GRU", "groups
    /// from Iran", "groups that the GRU controls".
    fn attributes(&self, groups: &KindMention, mentions: &[KindMention]) -> Vec<usize> {
        let is_mention = |at: usize| {
            mentions
                .iter()
                .any(|mention| !mention.asks && mention.at.contains(&at))
        };
        let mut found = Vec::new();
        let mut is_linked = false;
        let mut last = groups.at.end - 1;
        for (at, word) in self.words.iter().enumerate().skip(groups.at.end) {
            let after_mark = self.words.get(last).is_some_and(Word::ends_part);
            if is_mention(at) || after_mark {
                break;
            }
            last = at;
            let text = word.text.as_str();
            if found.is_empty() && self.links(at) {
                is_linked = true;
            } else if !found.is_empty() && List::Employs.has(text) {
                is_linked = true;
                break;
            } else if words::is_function_word(text) {
                // "the Ministry of Intelligence and Security"
                if !found.is_empty() && !matches!(text, "of" | "and" | "the") {
                    break;
                }
            } else {
                found.extend(self.is_descriptive(at, word).then_some(at));
            }
        }
        if is_linked { found } else { Vec::new() }
    }

    /// Whether a word links what follows to what is before it.
    fn links(&self, at: usize) -> bool {
        let word = |at: usize| self.words.get(at);
        let Some(text) = word(at).map(|word| word.text.as_str()) else {
            return false;
        };
        let is_participle =
            || text.len() > 4 && (text.ends_with("ed") || text.ends_with("ing")) && !List::Using.has(text);
        List::Belonging.has(text)
            || is_participle()
            || (text == "in" && word(at + 1).is_some_and(|word| self.is_proper(at + 1, word)))
    }

    fn is_descriptive(&self, at: usize, word: &Word) -> bool {
        let is_time = self.time().is_some_and(|time| time.contains(&at));
        !is_time && !word.is(List::Vague)
    }
}
