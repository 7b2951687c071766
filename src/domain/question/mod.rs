//! Understands what a question asks for: the kind of thing, what it is about, how the two are related, and when.
//!
//! Rules only, over words that one tagger looks up in the lists of `assets/question` ([`lexicon`]). A question is read
//! once, as a [`Question`], and planned when its names are known, since only the index knows which words are names:
//! [`Question::candidates`] are what could be a name, and [`Question::plan`] takes the names that were found. What does not
//! ask for related things, such as a sentence of a report, has no plan and is searched for by words and meaning alone.

mod asking;
mod changed;
mod context;
mod context_routes;
mod context_words;
mod dates;
mod description;
mod filters;
mod identifiers;
mod intent;
mod interpretation;
mod kind;
pub(in crate::domain) mod lexicon;
mod logic;
mod model_reading;
mod noun_pairs;
mod nouns;
mod period;
mod sentence;
mod similarity;
mod statement;
#[cfg(test)]
mod tests;
mod time_order;
mod time_words;
mod verbs;
pub mod walk;
mod words;

use std::ops::Range;
use std::sync::OnceLock;

use chrono::{DateTime, Utc};

use crate::domain::node::NodeType;

pub use context::ContextPlan;
pub use context_routes::KILL_CHAIN_PHASE;
pub use context_words::{bare_sector, country_names};
pub use description::Description;
pub use filters::QuestionFilters;
pub use identifiers::AskedIdentifier;
pub use intent::Intent;
pub use interpretation::{AskedPeriod, CombinationAsked, NameAsked, QuestionAsked};
use kind::connect_kinds;
pub use kind::{Kind, intermediate_kind, relationship_code, relationship_of_code, relationships};
pub use logic::{Combination, Logic, Role};
pub use model_reading::ModelReading;
pub use period::Period;
pub use similarity::name_similarity;
pub use statement::is_statement;
pub use time_order::{AskedTime, StatedTimes, TimeOrder};
use words::{KindMention, Word};
pub use words::{is_function_word, kind_words};

/// Longest name, in words, and how many words of a question are looked at for names.
const MAX_NAME_WORDS: usize = 8;
const MAX_WORDS: usize = 48;

/// What a question asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionPlan {
    /// Kinds of the things asked for, the most fitting one first.
    pub wanted: Vec<Kind>,
    /// Kinds of the things on the way to them.
    pub through: Vec<Kind>,
    /// The time asked for, and whether it is that of the things on the way.
    pub period: Option<Period>,
    pub period_is_of_through: bool,
    /// How what is named is combined.
    pub logic: Logic,
}

/// A name that was found in a question.
#[derive(Debug, Clone)]
pub struct Name {
    /// The words, as [`NameCandidate::words`] tells them.
    pub words: Range<usize>,
    /// The kinds of the nodes that have it.
    pub kinds: Vec<Kind>,
}

/// Words that could be a name.
#[derive(Debug, Clone)]
pub struct NameCandidate<'a> {
    pub words: Range<usize>,
    pub text: &'a str,
}

/// A text that was asked, read once.
#[derive(Debug)]
pub struct Question {
    text: String,
    words: Vec<Word>,
    now: DateTime<Utc>,
    is_statement: bool,
    asks: bool,
    meant: Option<ModelReading>,
    intent: OnceLock<Intent>,
    filters: OnceLock<QuestionFilters>,
    identifiers: OnceLock<Vec<AskedIdentifier>>,
}

impl Question {
    /// Reads a text that is asked at this time.
    pub fn read(text: &str, now: DateTime<Utc>) -> Self {
        let words = words::words(text);
        let no_names = |_| false;
        let asks = asking::asks(text, &words)
            && (!words::mentions(&words, no_names).is_empty()
                || verbs::is_about_protection(&words, no_names)
                || verbs::is_about_use(&words)
                || verbs::is_about_ability(&words));
        Question {
            text: text.to_owned(),
            is_statement: statement::is_statement_of(text, &words),
            words,
            now,
            asks,
            meant: None,
            intent: OnceLock::new(),
            filters: OnceLock::new(),
            identifiers: OnceLock::new(),
        }
    }

    /// As it was asked.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it may ask for related things; what does not has no plan, whatever its words name.
    pub fn asks_for_related(&self) -> bool {
        self.asks
    }

    /// Whether it states something rather than asks for it or merely lists words. What it says then weighs more than the
    /// names in it.
    pub fn is_statement(&self) -> bool {
        self.is_statement
    }

    /// The kind of answer that it wants.
    pub fn intent(&self) -> Intent {
        *self
            .intent
            .get_or_init(|| intent::intent_of(&self.text, &self.words))
    }

    /// The types, names and identifiers that it has, and its other words.
    pub fn filters(&self) -> &QuestionFilters {
        self.filters
            .get_or_init(|| filters::filters_of(&self.text, &self.words))
    }

    /// The identifiers that it consists of, if it says nothing else.
    pub fn identifiers(&self) -> &[AskedIdentifier] {
        self.identifiers
            .get_or_init(|| identifiers::identifiers_of(&self.text, &self.words))
    }

    /// The words that could be names, longest first.
    pub fn candidates(&self) -> Vec<NameCandidate<'_>> {
        let words = self.words.len().min(MAX_WORDS);
        let mut candidates = Vec::new();
        for length in (1..=MAX_NAME_WORDS.min(words)).rev() {
            for first in 0..=words - length {
                let at = first..first + length;
                if self.could_name(&at) {
                    candidates.extend(self.text_of(&at).map(|text| NameCandidate { words: at, text }));
                }
            }
        }
        candidates
    }

    fn could_name(&self, at: &Range<usize>) -> bool {
        let Some(words) = self.words.get(at.clone()) else {
            return false;
        };
        let edge = |word: Option<&Word>| word.is_some_and(|word| !words::is_function_word(&word.text));
        let kind = |place: usize| {
            let mention = words::mentions(&self.words, |other| other != place);
            !mention.is_empty()
        };
        match words {
            [single] => {
                !words::is_function_word(&single.text) && !kind(at.start) && single.text.chars().count() > 1
            }
            _ => edge(words.first()) || edge(words.last()),
        }
    }

    /// The part of the text with these words.
    pub fn text_of(&self, at: &Range<usize>) -> Option<&str> {
        let first = self.words.get(at.start)?;
        let last = self.words.get(at.end.checked_sub(1)?)?;
        self.text.get(first.span.start..last.span.end)
    }

    /// The words that say what the question is about, if none of them is a name.
    pub fn subject(&self) -> Vec<&str> {
        self.other_words(&[])
    }

    /// The words that are neither part of a name nor say how the question is put.
    pub fn other_words(&self, names: &[Name]) -> Vec<&str> {
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        let mentions = words::mentions(&self.words, is_name);
        let time = self.time_beside(is_name);
        let is_taken = |at: usize| {
            is_name(at)
                || mentions.iter().any(|mention| mention.at.contains(&at))
                || time
                    .as_ref()
                    .is_some_and(|time| time.contains(&at) && time.len() > 1)
        };
        let words = self.words.iter().enumerate();
        words
            .filter(|(at, word)| !is_taken(*at) && !words::is_function_word(&word.text))
            .map(|(_, word)| word.text.as_str())
            .filter(|word| !verbs::is_protecting(word))
            .collect()
    }

    /// The words that tell a time.
    fn time(&self) -> Option<Range<usize>> {
        self.time_beside(|_| false)
    }

    fn time_beside(&self, is_name: impl Fn(usize) -> bool) -> Option<Range<usize>> {
        period::period_of(&self.words, is_name, self.now).map(|(_, at)| at)
    }

    /// From the first to the last of these words.
    pub fn subject_words(&self) -> Range<usize> {
        let subject = self.subject();
        let is_of = |word: &&Word| subject.contains(&word.text.as_str());
        let first = self.words.iter().position(|word| is_of(&word)).unwrap_or(0);
        let last = self.words.iter().rposition(|word| is_of(&word)).unwrap_or(0);
        first..last + 1
    }

    /// The types of nodes that the question can be about, by what it asks for.
    pub fn subject_types(&self) -> Vec<NodeType> {
        let mentions = words::mentions(&self.words, |_| false);
        let wanted = mentions
            .first()
            .map_or(&[Kind::Mitigation][..], |mention| mention.kinds);
        let mut types: Vec<NodeType> = Vec::new();
        for kind in wanted.iter().flat_map(|kind| kind.connected_kinds()) {
            let new = kind.node_types().iter().filter(|kind| !types.contains(kind));
            let new: Vec<NodeType> = new.copied().collect();
            types.extend(new);
        }
        types
    }

    /// What the question asks for, given the names in it. `None` if it doesn't ask for anything related to them, or denies
    /// something in a way that the rules don't understand.
    pub fn plan(&self, names: &[Name]) -> Option<QuestionPlan> {
        self.plan_or_denial(names)?.ok()
    }

    /// The word that denies something else than the rules understand, given the names in the question.
    pub fn denial(&self, names: &[Name]) -> Option<&str> {
        self.plan_or_denial(names)?.err()
    }

    fn plan_or_denial(&self, names: &[Name]) -> Option<Result<QuestionPlan, &str>> {
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        let mut named: Vec<Kind> = Vec::new();
        for kind in names.iter().flat_map(|name| &name.kinds) {
            if !named.contains(kind) {
                named.push(*kind);
            }
        }
        let period = period::period_of(&self.words, is_name, self.now).map(|(period, _)| period);
        let mentions = words::mentions(&self.words, is_name);
        let linked = self.kinds_of_pair(names, &named);
        let (wanted, through) = linked.or_else(|| self.kinds(&mentions, names, &named))?;
        let (wanted, through) = self.apply_verbs(wanted, through, &named);
        if named.is_empty() && period.is_none() {
            return None;
        }
        let through = connect_kinds(&wanted, through, &named)?;
        let logic = match self.logic(names, &wanted) {
            Ok(logic) => logic,
            Err(word) => return Some(Err(word)),
        };
        if logic.combination == Combination::None && !through.is_empty() {
            return Some(Err("not"));
        }
        Some(Ok(QuestionPlan {
            period_is_of_through: through.contains(&Kind::Campaign) && wanted != [Kind::Campaign],
            wanted,
            through,
            period,
            logic,
        }))
    }

    /// The kinds asked for, and those on the way to them as far as the question says.
    fn kinds(
        &self,
        mentions: &[KindMention],
        names: &[Name],
        named: &[Kind],
    ) -> Option<(Vec<Kind>, Vec<Kind>)> {
        let relevant: Vec<&KindMention> = mentions
            .iter()
            .filter(|mention| !self.is_apposition(mention, names))
            .collect();
        if let Some((owners, owned)) = self.owners(&relevant) {
            // What is named lies on no way to its owner: "Whose malware is Stuxnet?"
            let owned = owned.iter().filter(|kind| !named.contains(kind));
            return Some((owners.to_vec(), owned.copied().collect()));
        }
        let mut unions: Vec<(Range<usize>, Vec<Kind>)> = Vec::new();
        for mention in &relevant {
            let joined = unions
                .last_mut()
                .filter(|(at, _)| self.are_joined(at.end, mention.at.start));
            match joined {
                Some((at, kinds)) => {
                    at.end = mention.at.end;
                    let new = mention.kinds.iter().filter(|kind| !kinds.contains(kind)).copied();
                    let new: Vec<Kind> = new.collect();
                    kinds.extend(new);
                }
                None => unions.push((mention.at.clone(), mention.kinds.to_vec())),
            }
        }
        let mut unions = unions.into_iter();
        let Some((asked, wanted)) = unions.next() else {
            return self
                .implied_kinds(named, names)
                .map(|wanted| (wanted, Vec::new()));
        };
        let end = self.end_of_question(names, named, (&asked, &wanted));
        let is_way = |kinds: &[Kind]| *kinds != wanted && !repeats(kinds, &wanted, named);
        let through = unions.find(|(at, kinds)| at.start <= end && is_way(kinds));
        // "Sandworm group malware" is that of Sandworm itself.
        let owners = relevant.first().map_or(&[][..], |mention| mention.owners);
        let is_named = owners.first().is_some_and(|owner| named.contains(owner));
        let owners = if is_named { &[][..] } else { owners };
        Some((
            wanted,
            through.map_or_else(|| owners.to_vec(), |(_, kinds)| kinds),
        ))
    }

    /// What begins behind the last name and is not next to it belongs to another part of the sentence, unless the whole
    /// question follows the names or is what things of one kind have in common.
    fn end_of_question(
        &self,
        names: &[Name],
        named: &[Kind],
        (asked, wanted): (&Range<usize>, &[Kind]),
    ) -> usize {
        let Some(end) = names.iter().map(|name| name.words.end).max() else {
            return usize::MAX;
        };
        let follows = asked.start > end && self.mark_before(end).is_some();
        if follows || wanted.iter().any(|kind| named.contains(kind)) {
            return usize::MAX;
        }
        let attached = self.words.get(end).is_some_and(|word| word.attached);
        end + usize::from(attached)
    }

    /// The owners that a question asks for, and what they own: "Whose malware …", "Which groups' malware …", "the malware of
    /// which groups …".
    fn owners(&self, mentions: &[&KindMention]) -> Option<(&'static [Kind], &'static [Kind])> {
        let first = mentions.first()?;
        if words::before(&self.words, first) == "whose" {
            return Some((&[Kind::Group], first.kinds));
        }
        words::owners(&self.text, &self.words, first).map(|owners| (owners, first.kinds))
    }

    /// "How can we mitigate the techniques of …" asks for mitigations, and "What can the malware of … do?" for techniques.
    fn apply_verbs(&self, wanted: Vec<Kind>, through: Vec<Kind>, named: &[Kind]) -> (Vec<Kind>, Vec<Kind>) {
        let said = |kind: Kind| wanted.contains(&kind) || named.contains(&kind);
        let protects =
            verbs::asks_for_method(&self.words) && verbs::is_about_protection(&self.words, |_| false);
        if protects && !said(Kind::Mitigation) {
            return (vec![Kind::Mitigation], wanted);
        }
        let asks_for_these = said(Kind::Technique) || said(Kind::Mitigation);
        if !protects && verbs::is_about_ability(&self.words) && !asks_for_these {
            return (vec![Kind::Technique], wanted);
        }
        (wanted, through)
    }

    /// The kinds asked for by a question that names none: "How can phishing be mitigated?".
    fn implied_kinds(&self, named: &[Kind], names: &[Name]) -> Option<Vec<Kind>> {
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        if verbs::is_about_protection(&self.words, is_name) {
            let wanted = if named.contains(&Kind::Mitigation) {
                Kind::Technique
            } else {
                Kind::Mitigation
            };
            return Some(vec![wanted]);
        }
        let uses = verbs::is_about_use(&self.words) || verbs::is_about_ability(&self.words);
        (uses && !named.is_empty()).then(|| vec![Kind::Technique, Kind::Software])
    }

    /// Whether a kind only says what the name beside it is: "the group APT28", "Sandworm group".
    fn is_apposition(&self, mention: &KindMention, names: &[Name]) -> bool {
        let of_kind = |name: &&Name| name.kinds.iter().any(|kind| mention.kinds.contains(kind));
        if mention.asks {
            // "the malware of APT28, who attacked …"
            let last = mention.at.start.checked_sub(1).and_then(|at| self.words.get(at));
            let mut before = names.iter().filter(|name| name.words.end == mention.at.start);
            return last.is_some_and(|word| word.mark == Some(','))
                && before.any(|name| of_kind(&name))
                && !words::asks_by_whom(&self.words, mention.at.start);
        }
        let follows = |name: &&Name| self.are_apposed(mention.at.end, name.words.start);
        let precedes = |name: &&Name| name.words.end == mention.at.start;
        names.iter().any(|name| {
            let name = &name;
            (of_kind(name) && (follows(name) || precedes(name))) || (precedes(name) && !mention.many)
        })
    }

    /// Whether only "and", "or" or a comma lies between two words.
    fn are_joined(&self, end: usize, start: usize) -> bool {
        match self.words.get(end..start) {
            Some([]) => self.mark_before(end).is_some_and(|mark| !is_arrow(mark)),
            Some([word]) => matches!(word.text.as_str(), "and" | "or" | "and/or" | "&"),
            Some(_) | None => false,
        }
    }

    /// The mark that ends the word before this one.
    fn mark_before(&self, at: usize) -> Option<char> {
        at.checked_sub(1).and_then(|last| self.words.get(last)?.mark)
    }

    /// Whether nothing lies between a kind and a name but what introduces the name.
    fn are_apposed(&self, end: usize, start: usize) -> bool {
        let introduces = |word: &Word| {
            matches!(
                word.text.as_str(),
                "also" | "tracked" | "known" | "as" | "called" | "named" | "aka" | "the"
            )
        };
        self.words
            .get(end..start)
            .is_some_and(|between| between.iter().all(introduces))
    }
}

/// Whether a mark leads from one kind to the next, as ":" and the beginning of "->" do.
fn is_arrow(mark: char) -> bool {
    matches!(mark, ':' | '-' | '–' | '—' | '=' | '>' | '<' | '|' | '→' | '←')
}

/// Whether kinds said to lie between only repeat what is named or asked for: "Which tools do operators of Sandworm use?",
/// "groups whose techniques include …", "Who of the known groups uses …?".
fn repeats(kinds: &[Kind], wanted: &[Kind], named: &[Kind]) -> bool {
    let is_group = |kinds: &[Kind]| kinds.contains(&Kind::Group);
    let of_all = |others: &[Kind]| kinds.iter().all(|kind| others.contains(kind));
    let are_named = of_all(named) || (is_group(kinds) && is_group(named));
    let are_wanted = kinds == [Kind::Group] && is_group(wanted);
    are_wanted || (are_named && !of_all(wanted))
}
