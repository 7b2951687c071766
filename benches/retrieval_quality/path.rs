//! Paths through the graph, which say what the right answers to a question are.
//!
//! `T <uses malware|tool <uses intrusion-set`: from a technique against the direction of `uses` to malware and tools,
//! and from there to groups. A path begins with a letter (what the question names, see `kinds`), with an ATT&CK id, or
//! with a selection of objects. `campaign(seen=2022-01-01/2023-01-01)` selects by time: an interval of ISO 8601, open
//! where it has `..`, without its end.

use std::collections::BTreeSet;

use crate::Fallible;
use crate::graph::{Graph, Object};

pub struct Path {
    start: Start,
    steps: Vec<Step>,
}

enum Start {
    Letter(char),
    Id(String),
    All(Selection),
}

struct Step {
    leaving: bool,
    relation: String,
    to: Selection,
}

struct Selection {
    kinds: Vec<String>,
    period: Option<Period>,
}

/// A span of time; `seen` is the one from `first_seen` to `last_seen`, any other field is a moment.
struct Period {
    field: String,
    from: Option<String>,
    to: Option<String>,
}

/// The types of object that a letter stands for.
pub fn kinds(letter: char) -> Option<&'static [&'static str]> {
    match letter {
        'T' => Some(&["attack-pattern"]),
        'G' => Some(&["intrusion-set"]),
        'S' => Some(&["malware", "tool"]),
        'C' => Some(&["campaign"]),
        'M' => Some(&["course-of-action"]),
        'A' => Some(&["x-mitre-asset"]),
        'Y' => Some(&["x-mitre-tactic"]),
        'E' => Some(&["sector"]),
        'P' => Some(&["location"]),
        'I' => Some(&["infrastructure"]),
        'H' => Some(&["domain-name"]),
        'V' => Some(&["ipv4-addr"]),
        'N' => Some(&["indicator"]),
        _ => None,
    }
}

impl Path {
    pub fn parse(text: &str) -> Fallible<Self> {
        let mut words = text.split_whitespace();
        let start = Start::parse(words.next().ok_or("a path is empty")?)?;
        let mut steps = Vec::new();
        while let Some(word) = words.next() {
            let leaving = word.starts_with('>');
            let relation = word
                .strip_prefix(['<', '>'])
                .ok_or("a relation has no direction")?;
            let to = words.next().ok_or("a step leads nowhere")?;
            steps.push(Step {
                leaving,
                relation: relation.to_owned(),
                to: Selection::parse(to)?,
            });
        }
        Ok(Self { start, steps })
    }

    /// The letter for what the question names.
    pub fn letter(&self) -> Option<char> {
        match self.start {
            Start::Letter(letter) => Some(letter),
            Start::Id(_) | Start::All(_) => None,
        }
    }

    /// The STIX ids of the right answers, where `named` is what the letter stands for. What the question names is none
    /// of them.
    pub fn answers<'a>(&'a self, graph: &'a Graph, named: Option<&'a str>) -> BTreeSet<&'a str> {
        let begin: BTreeSet<&str> = match &self.start {
            Start::Letter(_) => named.into_iter().collect(),
            Start::Id(id) => graph.select(|object| object.id == *id),
            Start::All(selection) => graph.select(|object| selection.holds(object)),
        };
        let mut ends = begin.clone();
        for step in &self.steps {
            ends = ends
                .iter()
                .flat_map(|id| graph.neighbours(id, &step.relation, step.leaving))
                .filter(|id| graph.objects.get(*id).is_some_and(|object| step.to.holds(object)))
                .collect();
        }
        if !self.steps.is_empty() {
            ends.retain(|id| !begin.contains(id));
        }
        ends
    }
}

impl Start {
    fn parse(word: &str) -> Fallible<Self> {
        let mut letters = word.chars();
        let (first, second) = (letters.next(), letters.next());
        Ok(match (first, second) {
            (Some(letter), None) if kinds(letter).is_some() => Start::Letter(letter),
            (Some(_), Some(digit)) if digit.is_ascii_digit() => Start::Id(word.to_owned()),
            _ => Start::All(Selection::parse(word)?),
        })
    }
}

impl Selection {
    fn parse(word: &str) -> Fallible<Self> {
        let (names, period) = match word.split_once('(') {
            Some((names, rest)) => (names, Some(Period::parse(rest.trim_end_matches(')'))?)),
            None => (word, None),
        };
        let kinds = names.split('|').map(str::to_owned).collect();
        Ok(Self { kinds, period })
    }

    fn holds(&self, object: &Object) -> bool {
        self.kinds.contains(&object.kind) && self.period.as_ref().is_none_or(|period| period.holds(object))
    }
}

impl Period {
    fn parse(text: &str) -> Fallible<Self> {
        let (field, interval) = text.split_once('=').ok_or("a period has no field")?;
        let (from, to) = interval.split_once('/').ok_or("a period has no end")?;
        let moment = |text: &str| (text != "..").then(|| text.to_owned());
        Ok(Self {
            field: field.to_owned(),
            from: moment(from),
            to: moment(to),
        })
    }

    /// Dates and RFC 3339 times in UTC order as their texts do.
    fn holds(&self, object: &Object) -> bool {
        let (first, last) = match self.field.as_str() {
            "seen" => ("first_seen", "last_seen"),
            field => (field, field),
        };
        let (Some(first), Some(last)) = (object.time(first), object.time(last)) else {
            return false;
        };
        self.from.as_deref().is_none_or(|from| last >= from) && self.to.as_deref().is_none_or(|to| first < to)
    }
}

impl Graph {
    fn select(&self, holds: impl Fn(&Object) -> bool) -> BTreeSet<&str> {
        let found = self.objects.iter().filter(|(_, object)| holds(object));
        found.map(|(id, _)| id.as_str()).collect()
    }
}
