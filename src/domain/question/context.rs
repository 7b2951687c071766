//! Questions about the objects that give context: what detects a technique, whom a group targets, where something was
//! sighted, which reports mention it, what a domain resolves to.
//!
//! What is asked for is told by a noun ("which sectors") or by the verb alone ("how can I detect"); the verb also says which
//! relationships count. Which way leads from what is named to it follows from the kinds of both (`context_routes.rs`).

use std::ops::Range;

use super::context_routes::{Way, leads_by, ways_between};
use super::context_words::{self, Verb, noun_at, verbs_at};
use super::description::countries;
use super::kind::Kind;
use super::lexicon::List;
use super::walk::Goal;
use super::{Combination, Logic, Name, NameCandidate, Period, Question, asking, period, verbs, words};

/// Kinds whose time is that of a question: they are dated, unlike what they are about.
const DATED: [Kind; 4] = [Kind::Sighting, Kind::Report, Kind::Note, Kind::Incident];

/// Kinds whose names hardly stand in a question that does not mean them.
const DISTINCT: [Kind; 7] = [
    Kind::Tactic,
    Kind::Detection,
    Kind::Analytic,
    Kind::Report,
    Kind::Note,
    Kind::Incident,
    Kind::Infrastructure,
];

/// Those who target others.
const ATTACKERS: [Kind; 4] = [Kind::Group, Kind::Campaign, Kind::Software, Kind::Incident];

/// What a question asks for among the objects that give context, or by way of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPlan {
    /// Kinds of the things asked for, the most fitting one first.
    pub wanted: Vec<Kind>,
    /// The ways to them from what is named, the best one first.
    ways: Vec<Way>,
    /// The relationships that the question says; all that are usual if there are none.
    along: Vec<&'static str>,
    /// Whether what is asked for lies onward, rather than back.
    outgoing: Option<bool>,
    /// Whether the question asks for nothing else, even if it names what has relationships of the usual kinds, too.
    pub is_certain: bool,
    /// The time asked for.
    pub period: Option<Period>,
    /// How what is named is combined.
    pub logic: Logic,
}

/// A noun of a question, of either population.
#[derive(Debug)]
struct AskedNoun {
    at: Range<usize>,
    kinds: Vec<Kind>,
    is_asked: bool,
    /// Whether it is a word that asks, such as "who", and no noun of its own.
    is_pronoun: bool,
}

/// A verb of a question, and its words.
type SaidVerb = (Range<usize>, &'static Verb);

/// What told what a question asks for.
#[derive(Debug, Clone)]
enum Told {
    /// A noun, and whether the words before it ask for it or there is no noun for what an ingest counts.
    ByNoun {
        is_head: bool,
    },
    ByVerb(Range<usize>),
}

/// What a question asks for, and how it is to be reached.
struct Reading {
    wanted: Vec<Kind>,
    ways: Vec<Way>,
    along: Vec<&'static str>,
    told: Told,
}

impl AskedNoun {
    fn is_of_context(&self) -> bool {
        self.kinds.iter().all(|kind| kind.is_context())
    }
}

impl ContextPlan {
    /// The goals of each way, the best way first; of a way the last goal comes first.
    pub fn walks(&self) -> impl Iterator<Item = Vec<Goal>> {
        self.ways.iter().map(|way| self.goals(way))
    }

    /// Kinds of what lies between.
    pub fn through(&self) -> Vec<Kind> {
        let mut through: Vec<Kind> = Vec::new();
        for kind in self.ways.iter().flat_map(|way| way.iter().rev().skip(1)) {
            if !through.contains(kind) {
                through.push(*kind);
            }
        }
        through
    }

    /// Whether any way leads over a kill chain phase, which no relationship states.
    pub fn needs_tactics(&self, named: &[Kind]) -> bool {
        named.contains(&Kind::Tactic) || self.ways.iter().flatten().any(|kind| *kind == Kind::Tactic)
    }

    fn goals(&self, way: &Way) -> Vec<Goal> {
        let dated = way.iter().position(|kind| DATED.contains(kind));
        let dated = dated.or(way.len().checked_sub(1));
        let goal = |(at, kind): (usize, &Kind)| Goal {
            period: self.period.filter(|_| dated == Some(at)),
            along: self.along.clone(),
            outgoing: self.outgoing,
            ..Goal::of_kinds(vec![*kind], at + 1 == way.len())
        };
        way.iter()
            .enumerate()
            .rev()
            .map(|(at, kind)| goal((at, kind)))
            .collect()
    }
}

impl Question {
    /// Whether it may ask for objects that give context, or by way of them.
    pub fn asks_for_context(&self) -> bool {
        let says = |at: usize| self.any_noun_at(at).is_some() || verbs_at(&self.words, at).is_some();
        (0..self.words.len()).any(says) && asking::asks(&self.text, &self.words)
    }

    /// The words that could be names, longest first; not those that only say what is asked for.
    pub fn context_candidates(&self) -> Vec<NameCandidate<'_>> {
        let is_noun = |words: &Range<usize>| {
            noun_at(&self.words, words.start).is_some_and(|(length, _)| length >= words.len())
        };
        let mut candidates = self.candidates();
        candidates.retain(|candidate| !is_noun(&candidate.words));
        candidates
    }

    /// The words that say what the question is about if none of them is a name, each with its place.
    pub fn context_subject(&self) -> Vec<(usize, &str)> {
        let mut taken: Vec<Range<usize>> = Vec::new();
        for at in 0..self.words.len() {
            let noun = self.any_noun_at(at).map(|(length, _)| length);
            let verb = verbs_at(&self.words, at).map(|(length, _)| length);
            taken.extend(noun.max(verb).map(|length| at..at + length));
        }
        taken.extend(self.time());
        let words = self.words.iter().enumerate();
        words
            .filter(|(at, _)| !taken.iter().any(|range| range.contains(at)))
            .filter(|(_, word)| !words::is_function_word(&word.text))
            .map(|(at, word)| (at, word.text.as_str()))
            .collect()
    }

    /// Other forms in which a name may stand in the data: the singular, and the country of an adjective.
    pub fn forms_of_name(text: &str) -> Vec<String> {
        let lower = text.to_lowercase();
        let mut forms: Vec<String> = Vec::new();
        forms.extend(lower.strip_suffix("ies").map(|stem| format!("{stem}y")));
        let is_plural = !lower.ends_with("ss") && lower.chars().count() > 3;
        forms.extend(lower.strip_suffix('s').filter(|_| is_plural).map(str::to_owned));
        forms.extend(lower.strip_suffix("es").filter(|_| is_plural).map(str::to_owned));
        if !lower.contains(' ') {
            forms.extend(countries(&lower));
        }
        forms
    }

    /// What the question asks for among the objects that give context, or by way of them, given the names in it with the
    /// kinds of both populations. `None` if it asks for nothing of the kind; an error is the word by which it denies
    /// something that is not understood.
    pub fn context_plan(&self, names: &[Name]) -> Option<Result<ContextPlan, &str>> {
        if !self.asks_for_context() {
            return None;
        }
        let mut named: Vec<Kind> = Vec::new();
        for kind in names.iter().flat_map(|name| &name.kinds) {
            if !named.contains(kind) {
                named.push(*kind);
            }
        }
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        let period = period::period_of(&self.words, is_name, self.now).map(|(period, _)| period);
        let nouns = self.asked_nouns(names);
        let verbs = self.said_verbs(names);
        let Reading {
            wanted,
            ways,
            along,
            told,
        } = if named.is_empty() {
            let noun = nouns.iter().find(|noun| noun.is_of_context())?;
            period?;
            Reading {
                wanted: noun.kinds.clone(),
                ways: Vec::new(),
                along: Vec::new(),
                told: Told::ByNoun { is_head: true },
            }
        } else {
            ways_asked_for(&nouns, &verbs, &named)?
        };
        let is_certain = match &told {
            Told::ByNoun { is_head } => *is_head && wanted.iter().all(|kind| kind.is_context()),
            Told::ByVerb(verb) => self.asks_of_whom(verb, &along, names),
        };
        let logic = match self.logic(names, &wanted) {
            Ok(logic) if logic.combination == Combination::None => return Some(Err("not")),
            Ok(logic) => logic,
            Err(word) => return Some(Err(word)),
        };
        Some(Ok(ContextPlan {
            outgoing: self.direction(names, &named, &verbs, &along),
            is_certain,
            wanted,
            ways,
            along,
            period,
            logic,
        }))
    }

    /// The nouns that may say what is asked for, those that the words before them ask for first.
    fn asked_nouns(&self, names: &[Name]) -> Vec<AskedNoun> {
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        let mut nouns: Vec<AskedNoun> = Vec::new();
        let mut at = 0;
        while at < self.words.len() {
            let found = (!is_name(at)).then(|| self.any_noun_at(at)).flatten();
            let Some((length, kinds)) = found.filter(|(length, _)| !(at..at + length).any(is_name)) else {
                at += 1;
                continue;
            };
            let noun = at..at + length;
            at = noun.end;
            if let Some(last) = nouns.last_mut()
                && self.are_joined(last.at.end, noun.start)
            {
                // "countries and organizations"
                last.at.end = noun.end;
                last.kinds.extend(kinds);
                continue;
            }
            let adjoins = nouns.last().filter(|last| last.at.end == noun.start);
            let start = adjoins.map_or(noun.start, |last| last.at.start);
            if start < noun.start {
                // Of "malware reports" the last one is asked for.
                nouns.pop();
            }
            let whole = start..noun.end;
            nouns.push(AskedNoun {
                is_asked: self.is_asked_for(&whole, &is_name) || self.asks_itself(&whole),
                is_pronoun: self.asks_itself(&whole),
                at: whole,
                kinds: kinds.to_vec(),
            });
        }
        nouns.retain(|noun| !self.only_says_kind(noun, names));
        nouns.sort_by_key(|noun| !noun.is_asked);
        nouns
    }

    /// The noun that begins here, of either population; one for context goes before another one.
    fn any_noun_at(&self, at: usize) -> Option<(usize, &'static [Kind])> {
        let of_context = noun_at(&self.words, at);
        let mention = words::mention_at(&self.words, at);
        let main = mention.map(|mention| (mention.at.len(), mention.kinds));
        match (of_context, main) {
            (Some((length, _)), Some((other, kinds))) if other > length => Some((other, kinds)),
            (Some(found), _) => Some(found),
            (None, main) => main,
        }
    }

    /// Whether a noun is a word that asks: "who", "where".
    fn asks_itself(&self, at: &Range<usize>) -> bool {
        let word = self.words.get(at.start).map(|word| word.text.as_str());
        word.is_some_and(|word| word == "where" || List::Persons.has(word))
    }

    /// Whether a noun only says what the name beside it is: "the energy sector", "domain evil.example".
    fn only_says_kind(&self, noun: &AskedNoun, names: &[Name]) -> bool {
        let of_kind = |name: &&Name| name.kinds.iter().any(|kind| noun.kinds.contains(kind));
        names.iter().filter(of_kind).any(|name| {
            name.words.end == noun.at.start
                || (self.are_apposed(noun.at.end, name.words.start) && noun.at.end <= name.words.start)
        })
    }

    /// The verbs by which relationships are asked for, in order.
    fn said_verbs(&self, names: &[Name]) -> Vec<SaidVerb> {
        let is_name = |at: usize| names.iter().any(|name| name.words.contains(&at));
        let mut verbs: Vec<SaidVerb> = Vec::new();
        let mut at = 0;
        while at < self.words.len() {
            let found = (!is_name(at)).then(|| verbs_at(&self.words, at)).flatten();
            let Some((length, meant)) = found.filter(|(length, _)| !(at..at + length).any(is_name)) else {
                at += 1;
                continue;
            };
            verbs.extend(meant.into_iter().map(|verb| (at..at + length, verb)));
            at += length;
        }
        if verbs::is_about_protection(&self.words, is_name) {
            // What "protects against" something does not target it.
            verbs.retain(|(_, verb)| !verb.along.contains(&"targets"));
        }
        if verbs.is_empty() {
            // "groups from Russia", "Russian groups"
            let at_home = |name: &&Name| name.kinds.contains(&Kind::Place);
            let place = names.iter().find(at_home).map(|name| name.words.clone());
            verbs.extend(place.zip(context_words::home()));
        }
        verbs
    }

    /// Whether a question with "who" or "whom" asks for what the verb leads to rather than for groups: "Whom does A target?",
    /// "Who was targeted by A?", "Who has seen B?", "By whom was B seen?", but not "Who has been seen with B?".
    fn asks_of_whom(&self, verb: &Range<usize>, along: &[&str], names: &[Name]) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", |word| word.text.as_str());
        let mentions = words::mentions(&self.words, |at| {
            names.iter().any(|name| name.words.contains(&at))
        });
        if !mentions.iter().all(|mention| mention.asks) {
            return false;
        }
        let follows = names.iter().any(|name| name.words.start == verb.end);
        // A technique is a means: "who gets in by phishing".
        let attacks = |name: &&Name| name.kinds.iter().any(|kind| ATTACKERS.contains(kind));
        let attackers = || names.iter().filter(attacks).map(|name| &name.words);
        let before = |attacker: &Range<usize>| attacker.start.checked_sub(1).map_or("", word);
        // "who did A attack", but not "who is behind A attacks"
        let precedes = attackers().any(|attacker| {
            let helps = matches!(before(attacker), "does" | "do" | "did" | "has" | "have");
            helps && attacker.end <= verb.start
        });
        let acts = attackers().any(|attacker| before(attacker) == "by");
        if along.contains(&"targets") {
            precedes || acts
        } else {
            let by_whom =
                (0..self.words.len()).any(|at| word(at) == "by" && matches!(word(at + 1), "whom" | "who"));
            (follows || by_whom) && (along.contains(&"sighting-of") || along.contains(&"hosts"))
        }
    }

    /// Whether the way leads on from what is named or back to it, where relationships between things of one kind leave that
    /// open.
    fn direction(&self, names: &[Name], named: &[Kind], verbs: &[SaidVerb], along: &[&str]) -> Option<bool> {
        if named != [Kind::Domain] || !along.contains(&"resolves-to") {
            return None;
        }
        let leads_on = |(at, _): &&SaidVerb| {
            self.words
                .get(at.start)
                .is_some_and(|word| context_words::leads_on(&word.text))
        };
        let (verb, _) = verbs.iter().find(leads_on)?;
        // "what does A resolve to", "resolve A", but "what resolves to A"
        Some(verb.start == 0 || names.iter().any(|name| name.words.end <= verb.start))
    }
}

/// What is asked for, the ways to it, and the relationships that count.
fn ways_asked_for(nouns: &[AskedNoun], verbs: &[SaidVerb], named: &[Kind]) -> Option<Reading> {
    let mut along: Vec<&'static str> = verbs.iter().flat_map(|(_, verb)| verb.along.clone()).collect();
    along.dedup();
    let is_alone = nouns.iter().all(AskedNoun::is_of_context);
    let by_noun = |(place, noun): (usize, &AskedNoun), along: Vec<&'static str>| {
        let ways = ways_to(&noun.kinds, named, &along);
        (!ways.is_empty()).then(|| Reading {
            wanted: noun.kinds.clone(),
            ways,
            along,
            told: Told::ByNoun {
                is_head: place == 0 && (noun.is_asked || is_alone),
            },
        })
    };
    let mut said = nouns.iter().enumerate().filter(|_| !along.is_empty());
    if let Some(reading) = said.find_map(|noun| by_noun(noun, along.clone())) {
        return Some(reading);
    }
    // "controls against A" asks for controls, and not for what A is targeted by.
    let is_noun_meant = nouns.iter().any(|noun| !noun.is_pronoun && !noun.is_of_context());
    for (at, verb) in verbs.iter().filter(|_| !is_noun_meant) {
        let ways = ways_to(&verb.asks, named, &verb.along);
        let wanted: Vec<Kind> = ways.iter().filter_map(|way| way.last().copied()).collect();
        if ways.iter().any(|way| way.len() == 1) || verb.asks.first() == wanted.first() {
            return Some(Reading {
                wanted: once_each(wanted),
                ways,
                along: verb.along.clone(),
                told: Told::ByVerb(at.clone()),
            });
        }
    }
    // Of what an ingest counts, things are only asked for if what is named can't be a mere word of the question.
    let is_distinct = named.iter().any(|kind| DISTINCT.contains(kind));
    let mut nouns = nouns.iter().enumerate();
    nouns.find_map(|(place, noun)| {
        let counts = is_distinct || noun.is_of_context();
        counts.then(|| by_noun((place, noun), Vec::new())).flatten()
    })
}

fn once_each(kinds: Vec<Kind>) -> Vec<Kind> {
    let mut once: Vec<Kind> = Vec::new();
    for kind in kinds {
        if !once.contains(&kind) {
            once.push(kind);
        }
    }
    once
}

/// The ways to things of these kinds from what is named that lead over what gives context and by one of the relationships,
/// if any are given: those to the most fitting kind first, and of these the shortest first.
fn ways_to(wanted: &[Kind], named: &[Kind], along: &[&str]) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    for asked in wanted {
        let mut to_it: Vec<Way> = Vec::new();
        for near in named {
            let leads = |way: &Way| {
                let of_context = near.is_context() || way.iter().any(|kind| kind.is_context());
                // Nearly everything targets a device over one technique or another.
                let is_far = !asked.is_context() && way.iter().rev().skip(1).any(|kind| !kind.is_context());
                of_context && !is_far && (along.is_empty() || leads_by(*near, way, along))
            };
            to_it.extend(ways_between(*near, *asked, along).into_iter().filter(leads));
        }
        to_it.sort_by_key(Vec::len);
        for way in to_it {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests;
