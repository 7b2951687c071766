//! The nouns of a question that stand for kinds, one for each kind, and whether the words before one ask for it.

use std::ops::Range;

use super::kind::Kind;
use super::lexicon::{ACTORS, List};
use super::words::{self, Word};
use super::{Name, Question};

/// A noun for things of a kind, or several that are joined.
#[derive(Debug, Clone)]
pub(super) struct Noun {
    pub(super) at: Range<usize>,
    pub(super) kinds: Vec<Kind>,
    /// Whether the word can stand for many.
    pub(super) many: bool,
    /// Whether the words ask for these things.
    pub(super) asked: bool,
    /// Whether the word is no noun but asks itself, as "who" does.
    pub(super) asks: bool,
}

impl Noun {
    /// The kinds on the way to other things: actors are groups then, since a campaign has no tools of its own.
    pub(super) fn path_kinds(&self) -> Vec<Kind> {
        if self.kinds == ACTORS {
            vec![Kind::Group]
        } else {
            self.kinds.clone()
        }
    }

    fn is_like(&self, other: &Noun) -> bool {
        let way = self.path_kinds();
        other.path_kinds().iter().any(|kind| way.contains(kind))
    }
}

impl Question {
    /// The nouns of a question that don't only say what the name beside them is. Of several for the same kind, it is the
    /// one that asks, else the first: "Which malware uses …, and which groups have that malware?".
    pub(super) fn nouns(&self, names: &[Name], named: &[Kind]) -> Vec<Noun> {
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        let mut nouns: Vec<Noun> = Vec::new();
        let mut at = 0;
        while at < self.words.len() {
            let noun = (!is_name(at))
                .then(|| self.noun_at(at, &is_name, named))
                .flatten();
            let Some(noun) = noun else {
                at += 1;
                continue;
            };
            at = noun.at.end;
            if !self.is_clause_of_person(&noun, &nouns, names) && !self.only_names(&noun, names) {
                self.add(&mut nouns, noun);
            }
        }
        nouns.sort_by_key(|noun| noun.at.start);
        nouns
    }

    fn add(&self, nouns: &mut Vec<Noun>, noun: Noun) {
        if let Some(same) = nouns.iter_mut().find(|other| other.is_like(&noun)) {
            let adjoins = same.at.end == noun.at.start;
            if adjoins {
                // "threat actor groups"
                same.at.end = noun.at.end;
                same.many = noun.many;
            } else if noun.asked && !same.asked {
                *same = noun;
            }
            return;
        }
        // "techniques and mitigations for them"
        let refers = || {
            let mut after = self.words.iter().skip(noun.at.end).take(2);
            after.any(|word| word.is(List::Pronouns))
        };
        let joins =
            |last: &&mut Noun| !noun.asked && self.are_joined(last.at.end, noun.at.start) && !refers();
        match nouns.last_mut().filter(joins) {
            Some(last) => {
                last.at.end = noun.at.end;
                last.many |= noun.many;
                last.kinds.extend(noun.kinds);
            }
            None => nouns.push(noun),
        }
    }

    fn noun_at(&self, at: usize, is_name: &impl Fn(usize) -> bool, named: &[Kind]) -> Option<Noun> {
        let word = |at: Option<usize>| at.and_then(|at| self.words.get(at)).map_or("", |word| &word.text);
        let before = at.checked_sub(1);
        let noun = |kinds: &[Kind]| Noun {
            at: at..at + 1,
            kinds: kinds.to_vec(),
            many: true,
            asked: false,
            asks: false,
        };
        // "what else do its users have": more of what is named
        if word(Some(at)) == "else" && word(before) == "what" && named == [Kind::Software] {
            let asked = true;
            return Some(Noun { asked, ..noun(named) });
        }
        let Some(mention) = words::mention_at(&self.words, at) else {
            let found = noun(&[self.kind_in_context(at, is_name)?]);
            let asked = self.is_asked_for(&found.at, is_name);
            return Some(Noun { asked, ..found });
        };
        // "the malware of whoever is behind it", "attribution of campaigns"
        let is_pronoun = matches!(word(Some(at)), "who" | "whom") || !List::Prepositions.has(word(before));
        let asks = mention.asks && is_pronoun && word(Some(at)) != "attribution";
        let is_named = mention.kinds.iter().any(|kind| named.contains(kind));
        let asked = asks || self.is_asked_for(&mention.at, is_name) || self.asks_of(at, is_named);
        Some(Noun {
            at: mention.at,
            many: mention.many,
            asked,
            asks,
            ..noun(mention.kinds)
        })
    }

    /// Whether "other" or "any" before a noun asks for it: "used by other groups" than the one that is named, "Was malware
    /// with … used in any campaign?".
    fn asks_of(&self, at: usize, is_named: bool) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", |word| word.text.as_str());
        match at.checked_sub(1).map(word) {
            Some("other") => {
                is_named
                    && !at
                        .checked_sub(2)
                        .is_some_and(|at| matches!(word(at), "and" | "or"))
            }
            // Right behind the verb, it is the subject.
            Some("any") => at > 2 && List::YesOrNo.has(word(0)),
            _ => false,
        }
    }

    /// The kind that a word means only beside others: "… operations", "during its operations", "the people behind …".
    fn kind_in_context(&self, at: usize, is_name: &impl Fn(usize) -> bool) -> Option<Kind> {
        let word = |at: usize| self.words.get(at).map_or("", |word| word.text.as_str());
        let before = at.checked_sub(1);
        let said = before.map_or("", word);
        match word(at) {
            "operations" => {
                let follows =
                    before.is_some_and(is_name) || List::Qualifiers.has(said) || List::Prepositions.has(said);
                follows.then_some(Kind::Campaign)
            }
            "attackers" | "people" | "those" => {
                let is_of_name = before.is_some_and(is_name) && word(at) == "attackers";
                (is_of_name || matches!(word(at + 1), "behind" | "responsible")).then_some(Kind::Group)
            }
            _ => None,
        }
    }

    /// Whether "who" only begins a clause about a group: "the groups who …", "…, who attacked …".
    fn is_clause_of_person(&self, noun: &Noun, nouns: &[Noun], names: &[Name]) -> bool {
        let start = noun.at.start;
        let is_group = |kinds: &[Kind]| kinds.contains(&Kind::Group);
        let follows_noun = nouns
            .last()
            .is_some_and(|last| last.at.end == start && is_group(&last.kinds));
        let follows_name = names
            .iter()
            .any(|name| name.words.end == start && is_group(&name.kinds));
        let mark = self.mark_before(start);
        let begins_clause = mark.is_none() || mark == Some(',');
        noun.asks
            && (follows_noun || follows_name)
            && begins_clause
            && !words::asks_by_whom(&self.words, start)
    }

    /// Whether a noun only says of what kind the name beside it is: "the group APT28", "Sandworm group".
    fn only_names(&self, noun: &Noun, names: &[Name]) -> bool {
        let kinds = noun.path_kinds();
        let is_of = |name: &&Name| name.kinds.iter().any(|kind| kinds.contains(kind));
        let mut of_kind = names.iter().filter(is_of).peekable();
        // "malware with that capability"
        let before = noun.at.start.checked_sub(1);
        let before = before
            .and_then(|before| self.words.get(before))
            .map_or("", |word| word.text.as_str());
        if matches!(before, "that" | "this" | "these" | "those") && of_kind.peek().is_some() {
            return true;
        }
        of_kind.any(|name| {
            let follows = name.words.end == noun.at.start && self.mark_before(noun.at.start).is_none();
            !noun.asks && (follows || self.are_apposed(noun.at.end, name.words.start))
        })
    }

    /// Whether the words before a noun ask for it: "which other groups", "list all groups".
    pub(super) fn is_asked_for(&self, at: &Range<usize>, is_name: &impl Fn(usize) -> bool) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", |word| word.text.as_str());
        let ends_part = |at: usize| self.words.get(at).is_some_and(Word::ends_part);
        let qualifies = |at: &usize| {
            let qualifier = List::Qualifiers.has(word(*at)) || List::Being.has(word(*at));
            let is_noun = words::mention_at(&self.words, *at).is_some();
            !ends_part(*at) && !is_name(*at) && !is_noun && (qualifier || !words::is_function_word(word(*at)))
        };
        let is_asking = |at: usize| matches!(word(at), "which" | "what") || List::Listing.has(word(at));
        let before = (0..at.start).rev().take(MAX_QUALIFIERS);
        let Some(place) = before
            .take_while(|at| qualifies(at) || is_asking(*at))
            .find(|at| is_asking(*at))
        else {
            return false;
        };
        if ends_part(place) {
            return false;
        }
        let starts = place == 0 || ends_part(place - 1);
        match word(place) {
            "which" => starts || !self.is_relative(place, at, is_name),
            "what" => true,
            _ => starts || matches!(word(place - 1), "please" | "to" | "and" | "me" | "you"),
        }
    }

    /// Whether "which" begins a clause about the noun or name before it: "tools which groups …", "campaigns in which …".
    fn is_relative(&self, which: usize, noun: &Range<usize>, is_name: &impl Fn(usize) -> bool) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", |word| word.text.as_str());
        let is_thing = |at: usize| is_name(at) || words::mention_at(&self.words, at).is_some();
        let Some(before) = which.checked_sub(1) else {
            return false;
        };
        let preposition = List::Prepositions.has(word(before));
        // "… campaigns by which groups", "… against which groups' techniques"
        let is_last = || (noun.end..self.words.len()).all(|at| words::mention_at(&self.words, at).is_some());
        if preposition && is_last() {
            return false;
        }
        let antecedent = before.checked_sub(usize::from(preposition));
        antecedent.is_some_and(|at| {
            is_thing(at) && !(preposition && self.words.get(at).is_some_and(Word::ends_part))
        })
    }
}

/// How many words may lie between the one that asks and the noun.
const MAX_QUALIFIERS: usize = 6;
