//! Questions of two steps, whatever their form: which kind is asked for and which lies between it and the name follows
//! from the order of the two nouns and the name, and from the words and marks that link them.
//!
//! English puts what is asked for first where words link the nouns ("groups with malware that does T"), and last where
//! they only stand side by side ("T malware groups", "T: malware: groups") or where the question comes after what it is
//! about ("Malware with T: used by whom?").

use std::ops::Range;

use super::kind::{Kind, relationships};
use super::lexicon::List;
use super::nouns::Noun;
use super::words::{self, Word};
use super::{Name, Question, is_arrow};

/// Which of two nouns is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    First,
    Second,
    /// Nothing links the words, so the kinds decide.
    Unsaid,
}

/// Two nouns of different kinds, and what the question names.
struct NounPair<'w> {
    words: &'w [Word],
    first: &'w Noun,
    second: &'w Noun,
    name: Range<usize>,
    named: &'w [Kind],
}

impl Question {
    /// The kind asked for and the one on the way to it, if a question has nouns for two kinds besides what it names, or
    /// besides a time if it names nothing.
    pub(super) fn kinds_of_pair(&self, names: &[Name], named: &[Kind]) -> Option<(Vec<Kind>, Vec<Kind>)> {
        let first = names
            .iter()
            .map(|name| name.words.clone())
            .min_by_key(|at| at.start);
        let name = first.or_else(|| self.time())?;
        let nouns = self.nouns(names, named);
        let (first, second) = match nouns.as_slice() {
            [first, second] => (first, second),
            nouns => select_pair(nouns, &name, named)?,
        };
        let pair = NounPair {
            words: &self.words,
            first,
            second,
            name,
            named,
        };
        let (asked, between) = match pair.head()? {
            Head::First => (first, second),
            Head::Second => (second, first),
            Head::Unsaid => pair.usual_roles(),
        };
        if leads(asked, between, named) || pair.attributes(asked, between) {
            return Some((asked.kinds.clone(), between.path_kinds()));
        }
        if asked.asked {
            // What lies between may be said to no purpose: "Who is APT28, and which malware do they use?".
            let is_second = between.at.start < asked.at.start;
            return is_second.then(|| (asked.kinds.clone(), Vec::new()));
        }
        let describes = between.path_kinds().iter().any(|kind| named.contains(kind));
        let turned = !describes && leads(between, asked, named);
        turned.then(|| (between.kinds.clone(), asked.path_kinds()))
    }
}

/// Of more than two nouns, the last that is asked for and the one before it that is nearest to the name: "Malware with …:
/// which groups used it in their campaigns?".
fn select_pair<'n>(nouns: &'n [Noun], name: &Range<usize>, named: &[Kind]) -> Option<(&'n Noun, &'n Noun)> {
    let last = nouns.iter().rposition(|noun| noun.asked)?;
    let asked = nouns.get(last)?;
    let distance = |noun: &&Noun| {
        let before = name.start.saturating_sub(noun.at.end);
        before + noun.at.start.saturating_sub(name.end)
    };
    let fitting = nouns.iter().take(last).filter(|noun| leads(asked, noun, named));
    fitting.min_by_key(distance).map(|between| (between, asked))
}

/// Whether relationships lead from what is named to things of one kind, and from these to what is asked for.
fn leads(asked: &Noun, between: &Noun, named: &[Kind]) -> bool {
    let way = between.path_kinds();
    let reached = named.is_empty() || relates(&way, named);
    reached && !way.iter().any(|kind| named.contains(kind)) && relates(&asked.kinds, &way)
}

fn relates(one: &[Kind], other: &[Kind]) -> bool {
    let mut pairs = one
        .iter()
        .flat_map(|one| other.iter().map(|other| (*one, *other)));
    pairs.any(|(one, other)| !relationships(one, other).is_empty())
}

fn qualifies(word: &Word) -> bool {
    word.is(List::Qualifiers)
}

fn has(words: &[Word], list: List) -> bool {
    words.iter().any(|word| word.is(list))
}

fn has_word(words: &[Word], text: &str) -> bool {
    words.iter().any(|word| word.text == text)
}

impl NounPair<'_> {
    fn head(&self) -> Option<Head> {
        let (first, second) = (self.first.asked, self.second.asked);
        if second && (!first || self.is_separate()) {
            return Some(Head::Second);
        }
        if self.refers_back() {
            return Some(Head::Second);
        }
        if self.asks_what_they_have() {
            return Some(Head::Second);
        }
        if first {
            return self.is_between().then_some(Head::First);
        }
        if self.is_fronted() {
            return Some(Head::Second);
        }
        self.head_by_order()
    }

    /// Whether what lies between are groups that are attributed to the named one: "malware of groups run by …".
    fn attributes(&self, asked: &Noun, between: &Noun) -> bool {
        let groups = [Kind::Group];
        let are_groups = between.path_kinds() == groups && self.named.contains(&Kind::Group);
        let is_other = !asked.kinds.contains(&Kind::Group) && relates(&asked.kinds, &groups);
        are_groups && is_other && has(self.words_at(between.at.end..self.name.start), List::Attributing)
    }

    /// "What do the users of … have in their arsenal?"
    fn asks_what_they_have(&self) -> bool {
        let opens = match self.words {
            [what, does, ..] => what.text == "what" && matches!(does.text.as_str(), "do" | "does" | "did"),
            _ => false,
        };
        let before = self.words_at(self.first.at.end..self.second.at.start);
        let owners = before.split_at(before.len() - self.qualifiers(before)).1;
        opens && !self.first.asked && self.second.kinds == [Kind::Software] && has(owners, List::Possessives)
    }

    /// Where nothing asks: by the order of nouns and name.
    fn head_by_order(&self) -> Option<Head> {
        let (first, second, name) = (&self.first.at, &self.second.at, &self.name);
        let adjoin = first.end == second.start;
        let mark = self.is_marked(first.end..second.start);
        if second.end <= name.start {
            let said = mark || !adjoin;
            let head = if said { Head::First } else { Head::Unsaid };
            return (said || !self.links(second.end..name.start)).then_some(head);
        }
        if name.end <= first.start {
            if mark {
                return Some(Head::Second);
            }
            if !self.links(first.end..second.start) {
                // Unlike "malware groups", "malware campaigns" are no more than campaigns.
                let usual = self.first.kinds == [Kind::Software] && self.second.kinds == [Kind::Campaign];
                return (self.second.many && !usual).then_some(Head::Second);
            }
            let is_linked = self.is_marked(name.end..first.start) || self.is_means();
            return is_linked.then_some(Head::First);
        }
        if self.is_marked(first.end..name.start) {
            return Some(Head::First);
        }
        if self.is_marked(name.end..second.start) {
            return Some(Head::Second);
        }
        if !self.links(first.end..name.start) && !self.links(name.end..second.start) {
            return Some(Head::Unsaid);
        }
        self.is_between().then_some(Head::First)
    }

    /// Whether the second noun says by way of what the first is related to the name.
    fn is_between(&self) -> bool {
        let (first, second, name) = (&self.first.at, &self.second.at, &self.name);
        if second.end <= name.start {
            return first.end < second.start || self.is_marked(first.end..second.start);
        }
        if name.end <= first.start {
            return first.end < second.start && !self.is_purpose();
        }
        self.is_of_name() || self.is_means()
    }

    /// Whether the second noun is the name's: "… malware", "…'s malware", "…-attributed campaigns".
    fn is_of_name(&self) -> bool {
        let mut between = self.words_at(self.name.end..self.second.at.start).iter();
        !self.is_marked(self.name.end..self.second.at.start)
            && between.all(|word| word.attached || qualifies(word))
    }

    /// Whether the second noun is a means: "with malware", "through its own malware", "in campaigns".
    fn is_means(&self) -> bool {
        let before = self.words_at(self.name.end.max(self.first.at.end)..self.second.at.start);
        let (links, owners) = before.split_at(before.len() - self.qualifiers(before));
        let mut links = links.iter().rev().map(|word| word.text.as_str());
        let link = links.next().unwrap_or_default();
        if link == "of" {
            return matches!(links.next(), Some("means" | "way" | "virtue" | "use" | "help"));
        }
        // "apart from malware"
        if link == "from" && matches!(links.next(), Some("apart" | "aside")) {
            return false;
        }
        let is_owned = has(owners, List::Possessives) && !List::Joining.has(link);
        let is_of_operations = has_word(self.words_at(self.second.at.clone()), "operations");
        match self.second.kinds.as_slice() {
            [Kind::Software] => List::Means.has(link) || is_owned,
            [Kind::Technique] => List::Means.has(link),
            // What groups do in their operations, they do.
            [Kind::Campaign] if self.first.kinds.contains(&Kind::Group) && is_of_operations => false,
            [Kind::Campaign] => List::Means.has(link) || List::Places.has(link) || is_owned,
            _ => matches!(link, "through" | "via"),
        }
    }

    /// How many of the last of these words only qualify what follows them.
    fn qualifiers(&self, words: &[Word]) -> usize {
        let last = words.iter().rev();
        last.take_while(|word| qualifies(word) && !word.ends_part())
            .count()
    }

    /// "to deliver malware" says what something is for.
    fn is_purpose(&self) -> bool {
        let between = self.words_at(self.first.at.end..self.second.at.start);
        let verb = between.len() - self.qualifiers(between);
        let before = verb.checked_sub(2).and_then(|at| between.get(at));
        before.is_some_and(|word| word.text == "to")
    }

    /// Whether the second noun begins a part of its own that refers to the first: "malware with …, and its users".
    fn refers_back(&self) -> bool {
        let before = self.words_at(self.first.at.end..self.second.at.start);
        let (before, owners) = before.split_at(before.len() - self.qualifiers(before));
        let begins = before
            .last()
            .is_some_and(|word| word.ends_part() || word.is(List::Joining));
        if !begins || self.second.at.start < self.name.end {
            return false;
        }
        let rest = self.words_at(self.second.at.end..self.words.len());
        let is_owned = has(owners, List::Possessives) && !self.belongs_to_name(has_word(owners, "its"));
        is_owned || (!self.first.asked && (has(rest, List::Pronouns) || self.repeats_first()))
    }

    /// Whether the first noun is meant once more: "software with …, campaigns with that software".
    fn repeats_first(&self) -> bool {
        let way = self.first.path_kinds();
        let is_first = |at: usize| {
            let mention = words::mention_at(self.words, at + 1);
            mention.is_some_and(|mention| mention.kinds.iter().any(|kind| way.contains(kind)))
        };
        let shows = |at: &usize| self.words.get(*at).is_some_and(|word| word.text == "that");
        (self.second.at.end..self.words.len()).filter(shows).any(is_first)
    }

    /// Whether "its" and "their" mean what is named: "techniques of a group and its malware".
    fn belongs_to_name(&self, single: bool) -> bool {
        let owns =
            |kind: &Kind| *kind == Kind::Group || (single && [Kind::Campaign, Kind::Software].contains(kind));
        self.first.at.end <= self.name.start && self.named.iter().any(owns)
    }

    /// Whether the first noun only opens the question: "Of the malware that …", "Through their malware, …".
    fn is_fronted(&self) -> bool {
        let start = self.first.at.start;
        let before = self.words_at(0..start);
        let mut words = before.iter().rev().skip_while(|word| qualifies(word));
        let opens = words.next().is_some_and(|word| word.is(List::Topics));
        opens && words.next().is_none_or(Word::ends_part)
    }

    /// Whether a mark or "and" parts the nouns.
    fn is_separate(&self) -> bool {
        let between = self.first.at.end..self.second.at.start;
        self.words_at(between.clone())
            .iter()
            .any(|word| word.text == "and" || word.ends_part())
            || self.ends_part(between)
    }

    /// Whether a colon, dash, arrow or the like stands between these words and the one before them.
    fn is_marked(&self, at: Range<usize>) -> bool {
        let words = self
            .words
            .get(at.start.saturating_sub(1)..at.end)
            .unwrap_or_default();
        let is_mark = |mark| is_arrow(mark) || matches!(mark, ';' | '?' | '.');
        let leads_on = match words {
            [_, single] => matches!(single.text.as_str(), "to" | "then"),
            words => words.iter().skip(1).any(|word| word.text == "then"),
        };
        leads_on || words.iter().filter_map(|word| word.mark).any(is_mark)
    }

    fn ends_part(&self, at: Range<usize>) -> bool {
        at.start
            .checked_sub(1)
            .and_then(|last| self.words.get(last))
            .is_some_and(Word::ends_part)
    }

    /// Whether any of these words links others.
    fn links(&self, at: Range<usize>) -> bool {
        self.words_at(at).iter().any(|word| !qualifies(word))
    }

    fn words_at(&self, at: Range<usize>) -> &[Word] {
        self.words.get(at).unwrap_or_default()
    }

    /// The noun asked for and the one on the way where nothing else tells: the way leads from what is named over what is
    /// nearest to it.
    fn usual_roles(&self) -> (&Noun, &Noun) {
        let near: &[Kind] = match self.named.first() {
            Some(Kind::Technique) => &[Kind::Software, Kind::Campaign, Kind::Group],
            Some(Kind::Campaign) => &[Kind::Group, Kind::Software],
            Some(Kind::Mitigation) => &[Kind::Technique],
            _ => &[Kind::Campaign, Kind::Group, Kind::Software, Kind::Technique],
        };
        let distance = |noun: &Noun| {
            let way = noun.path_kinds();
            near.iter()
                .position(|kind| way.contains(kind))
                .unwrap_or(near.len())
        };
        if distance(self.first) < distance(self.second) {
            (self.second, self.first)
        } else {
            (self.first, self.second)
        }
    }
}
