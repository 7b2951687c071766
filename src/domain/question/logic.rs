//! How a question combines what it names: "both A and B", "do not use A", "but not by B", "other than A".
//!
//! Rule: nobody is given the opposite of what was asked. A negation that the rules can't place makes the whole question
//! one that they don't understand: it is answered by words and meaning, and the answer says which word it was.

use std::ops::Range;

use super::lexicon::{List, verb_form};
use super::words::{Word, mention_at};
use super::{Kind, Name, Question};

/// Which things answer, given those related to each name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Combination {
    /// Those related to any name, those related to more of them first.
    #[default]
    Any,
    /// Those related to all.
    All,
    /// Those related to none.
    None,
}

/// How a question combines what it names. Names are given as [`super::NameCandidate::words`] tells them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logic {
    pub combination: Combination,
    /// Names that answer nothing, neither themselves nor by what is related to them: "other than A".
    pub excepted: Vec<Range<usize>>,
    /// Names to which the answers must not be related: "but not by B".
    pub without: Vec<Range<usize>>,
}

/// What the things to which a walk leads are to the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// They are the answers, or the opposite of these ([`Combination::None`]).
    Answers,
    /// Only these can be answers.
    Required,
    /// None of these is an answer.
    Barred,
}

impl Logic {
    /// Whether a name is one that the answers are related to.
    pub fn asks_about(&self, name: &Range<usize>) -> bool {
        !self.excepted.contains(name) && !self.without.contains(name)
    }

    /// Whether the names alone don't tell the answers: what is related to them may be the opposite of what is asked for.
    pub fn is_plain(&self) -> bool {
        *self == Logic::default()
    }

    /// The walks that a question needs, the one to the answers first: of each the places of the names where it begins.
    pub fn walks(&self, names: &[Range<usize>]) -> Vec<(Role, Vec<usize>)> {
        let places = |is_one: &dyn Fn(&Range<usize>) -> bool| -> Vec<usize> {
            let named = names.iter().enumerate().filter(|(_, name)| is_one(name));
            named.map(|(place, _)| place).collect()
        };
        let asked = places(&|name| self.asks_about(name));
        let required = match self.combination {
            Combination::All => asked.clone(),
            Combination::Any | Combination::None => Vec::new(),
        };
        let barred = places(&|name| self.without.contains(name));
        let each = |role, places: Vec<usize>| places.into_iter().map(move |place| (role, vec![place]));
        std::iter::once((Role::Answers, asked))
            .chain(each(Role::Required, required))
            .chain(each(Role::Barred, barred))
            .collect()
    }
}

/// How many words may lie between "except" and what is excepted.
const MAX_BETWEEN: usize = 4;

impl Question {
    /// How the question combines these names, given the kinds that it asks for.
    ///
    /// # Errors
    ///
    /// The word that denies something else than the rules understand.
    pub(super) fn logic(&self, names: &[Name], wanted: &[Kind]) -> Result<Logic, &str> {
        let mut logic = Logic::default();
        let time = self.time_beside(|at| is_named(names, at));
        for at in 0..self.words.len() {
            let is_taken = is_named(names, at) || time.as_ref().is_some_and(|time| time.contains(&at));
            if is_taken || self.compares_times(at) {
                continue;
            }
            if self.word(at) == "both" {
                logic.combination = Combination::All;
            } else if self.excepts(at) {
                let excepted = self.names_behind(at, names);
                let of_wanted = |name: &&Name| name.kinds.iter().any(|kind| wanted.contains(kind));
                if excepted.is_empty() || !excepted.iter().all(of_wanted) {
                    return Err(self.word(at));
                }
                logic
                    .excepted
                    .extend(excepted.iter().map(|name| name.words.clone()));
            } else if self.is_negating(at) {
                self.add_negation(at, names, &mut logic)?;
            }
        }
        let asked = names.iter().filter(|name| logic.asks_about(&name.words)).count();
        match logic.combination {
            // "both" of what nothing names says nothing, and "not" denies nothing.
            Combination::All if asked < 2 => logic.combination = Combination::Any,
            Combination::None if asked == 0 || !logic.without.is_empty() => return Err("not"),
            Combination::Any | Combination::All | Combination::None => {}
        }
        if asked == 0 && !logic.without.is_empty() {
            return Err("not");
        }
        if asked == 0 {
            // "Apart from X itself, what do the groups that use it have?": nothing that is named answers anyway.
            logic.excepted.clear();
        }
        Ok(logic)
    }

    fn add_negation(&self, at: usize, names: &[Name], logic: &mut Logic) -> Result<(), &str> {
        let before = at.checked_sub(1).map_or("", |before| self.word(before));
        let is_contrast = self.word(at) == "not"
            && (matches!(before, "but" | "and")
                || at.checked_sub(1).is_some_and(|before| self.ends_part(before)));
        if is_contrast {
            let without = self.names_behind(at, names);
            logic
                .without
                .extend(without.iter().map(|name| name.words.clone()));
            return if without.is_empty() { Err("not") } else { Ok(()) };
        }
        if self.word(at) == "not" && self.word(at + 1) == "only" {
            return Ok(());
        }
        if self.denies_verb(at) && logic.combination == Combination::Any && !self.has_time(names) {
            logic.combination = Combination::None;
            return Ok(());
        }
        Err(self.word(at))
    }

    fn has_time(&self, names: &[Name]) -> bool {
        self.time_beside(|at| is_named(names, at)).is_some()
    }

    /// Whether the word makes a verb mean its opposite: "do not use", "never used", "not used by", "doesn't target".
    fn denies_verb(&self, at: usize) -> bool {
        let denies = !matches!(self.word(at), "no" | "none" | "neither" | "nor" | "without");
        let may_lie_between = |word: &str| {
            List::Adverbs.has(word)
                || word.ends_with("ly")
                || matches!(word, "be" | "been" | "being" | "have")
        };
        let mut behind = self.words.iter().skip(at + 1);
        let verb = behind.find(|word| !may_lie_between(&word.text));
        denies && verb.is_some_and(|verb| verb_form(&verb.text).is_some() && !verb.is(List::Protecting))
    }

    /// Whether the word begins an exception: "except", "other than".
    fn excepts(&self, at: usize) -> bool {
        match self.word(at) {
            "other" | "rather" => self.word(at + 1) == "than",
            "apart" | "aside" => self.word(at + 1) == "from",
            word => List::Excepting.has(word),
        }
    }

    /// Whether a word is part of a comparison of times: "no later than 2020", "not before May".
    fn compares_times(&self, at: usize) -> bool {
        let next = self.word(at + 1);
        matches!(self.word(at), "no" | "not")
            && matches!(next, "later" | "earlier" | "older" | "newer" | "before" | "after")
    }

    fn is_negating(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| word.is(List::Negating))
    }

    /// The names that follow a word, joined by "and", "or" or commas, behind words that only introduce them: "but not by
    /// the group APT28 or Turla".
    fn names_behind<'n>(&self, at: usize, names: &'n [Name]) -> Vec<&'n Name> {
        let mut found = Vec::new();
        let mut next = at + 1;
        let mut between = 0;
        while next < self.words.len() && between <= MAX_BETWEEN {
            if let Some(name) = names.iter().find(|name| name.words.start == next) {
                found.push(name);
                next = name.words.end;
                between = 0;
                // Another one follows only behind "and", "or" or a comma.
                let joins = matches!(self.word(next), "and" | "or" | "nor" | "&");
                if !joins && self.mark_before(next) != Some(',') {
                    break;
                }
                continue;
            }
            let introduces = |word: &Word| {
                word.is(List::Prepositions)
                    || word.is(List::Qualifiers)
                    || matches!(word.text.as_str(), "than" | "from" | "and" | "or" | "nor" | "&")
            };
            let is_kind = mention_at(&self.words, next).is_some();
            if !is_kind && !self.words.get(next).is_some_and(introduces) {
                break;
            }
            next += 1;
            between += 1;
        }
        found
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    fn ends_part(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(Word::ends_part)
    }
}

fn is_named(names: &[Name], at: usize) -> bool {
    names.iter().any(|name| name.words.contains(&at))
}
