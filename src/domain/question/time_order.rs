//! The time that a question asks about although it does not ask for related things: a period, an order such as "most recent
//! attack of A", or the present. And what two things it compares.

use std::ops::Range;

use chrono::{DateTime, Days, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::Question;
use super::asking::MAX_PLAIN;
use super::dates::{Date, date_at, midnight};
use super::lexicon::List;
use super::period::{Period, period_of};
use super::time_words::TimeList;
use super::words::{Word, is_function_word, words};

/// How many words may lie between "first" or "last" and what happened, as in "the last three ransomware attacks".
const MAX_BETWEEN: usize = 3;

/// An order by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeOrder {
    NewestFirst,
    OldestFirst,
}

/// The time that a question asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskedTime {
    pub period: Option<Period>,
    pub order: Option<TimeOrder>,
    /// Whether the order is that in which texts were written rather than that of what they tell.
    pub is_of_records: bool,
}

impl AskedTime {
    /// Whether it asks for any time.
    pub fn is_any(&self) -> bool {
        self.period.is_some() || self.order.is_some()
    }
}

impl Question {
    /// The time that the question asks about; these words of it are names.
    pub fn time_asked(&self, names: &[Range<usize>]) -> AskedTime {
        if !self.asks_plainly() {
            return AskedTime::default();
        }
        let is_name = |at: usize| names.iter().any(|name| name.contains(&at));
        let is_product = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| self.words.get(before));
            before.is_some_and(|word| word.is(List::Products))
        };
        let period = period_of(&self.words, |at| is_name(at) || is_product(at), self.now);
        let (order, is_of_records) = order_of(&self.words, is_name)
            .map_or((None, false), |(order, is_of_records)| {
                (Some(order), is_of_records)
            });
        AskedTime {
            period: period.map(|(period, _)| period).filter(|_| !self.says_today()),
            order,
            is_of_records,
        }
    }

    /// The words that are written as names are, if nothing knows its names: "Lathe Group" in "most recent attack of the Lathe
    /// Group".
    pub fn written_names(&self) -> Vec<Range<usize>> {
        let mut names: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while let Some(word) = self.words.get(at) {
            if let Some((_, end)) = date_at(&self.words, at) {
                at = end;
                continue;
            }
            let written = self.text.get(word.span.clone()).unwrap_or_default();
            let is_plain = is_function_word(&word.text)
                || Self::is_about_time(&word.text)
                || TimeList::Comparing.has(&word.text)
                || (at == 0 && (word.is(List::Openings) || word.is(List::Listing)));
            if written.starts_with(char::is_uppercase) && !is_plain {
                let follows = at
                    .checked_sub(1)
                    .and_then(|last| self.words.get(last))
                    .is_some_and(|last| !last.ends_part());
                match names.last_mut().filter(|last| last.end == at && follows) {
                    Some(last) => last.end = at + 1,
                    None => names.push(at..at + 1),
                }
            }
            at += 1;
        }
        names
    }

    /// Whether it asks what is so at present: "Where is A based now?".
    pub fn asks_about_present(&self) -> bool {
        (0..self.words.len()).any(|at| TimeList::Present.length_at(&self.words, at) > 0)
    }

    /// Whether it compares what it names: "A vs B", "difference between A and B".
    pub fn compares(&self) -> bool {
        self.asks_plainly() && self.words.iter().any(|word| TimeList::Comparing.has(&word.text))
    }

    /// Whether a word belongs to how a question about a time or a comparison is put, not to what it is about.
    pub fn is_about_time(word: &str) -> bool {
        let lists = [
            TimeList::Newest,
            TimeList::Oldest,
            TimeList::Last,
            TimeList::First,
            TimeList::Events,
            TimeList::Records,
            TimeList::Present,
            TimeList::ThatDay,
            TimeList::DayBefore,
            TimeList::Same("before"),
            TimeList::Same("after"),
            TimeList::Same("since"),
            TimeList::Same("until"),
            TimeList::Same("of"),
            TimeList::Same("and"),
        ];
        lists.iter().any(|list| list.has(word)) || matches!(word, "most" | "recent" | "recently")
    }

    /// Whether it asks, or is as short as a question without a verb. What a longer statement says weighs more than its time.
    fn asks_plainly(&self) -> bool {
        !self.is_statement || (self.words.len() <= MAX_PLAIN && !self.text.trim_end().ends_with(['.', '!']))
    }

    /// Whether its only time is the present: "Where is A based today?" asks for what is so, not for what happened today.
    fn says_today(&self) -> bool {
        let text = |at: usize| self.words.get(at).map_or("", |word| word.text.as_str());
        let is_present = List::Asking.has(text(0)) && matches!(text(1), "is" | "are" | "does" | "do");
        let mut words = (0..self.words.len()).map(text);
        is_present && words.any(|word| word == "today") && !words.any(|word| word == "since")
    }
}

/// The order for which the words ask, and whether it is that of records. Words that `is_name` are part of a name.
fn order_of(words: &[Word], is_name: impl Fn(usize) -> bool) -> Option<(TimeOrder, bool)> {
    let superlatives = [
        (TimeList::Newest, TimeOrder::NewestFirst),
        (TimeList::Oldest, TimeOrder::OldestFirst),
    ];
    let ordinals = [
        (TimeList::Last, TimeOrder::NewestFirst),
        (TimeList::First, TimeOrder::OldestFirst),
    ];
    (0..words.len()).filter(|at| !is_name(*at)).find_map(|at| {
        for (list, order) in superlatives {
            let length = list.length_at(words, at);
            if length > 0 && !is_limit(words, at) && !is_release(words, at + length) {
                let is_of_records = thing_behind(words, at + length, TimeList::Records).is_some();
                return Some((order, is_of_records));
            }
        }
        for (list, order) in ordinals {
            if list.length_at(words, at) == 0 {
                continue;
            }
            if thing_behind(words, at + 1, TimeList::Records).is_some_and(|at| !is_name(at)) {
                return Some((order, true));
            }
            let happens = thing_behind(words, at + 1, TimeList::Events).is_some_and(|at| !is_name(at));
            if happens || ends_question(words, at) {
                return Some((order, false));
            }
        }
        None
    })
}

/// Whether "the latest" only limits a time: "by May at the latest".
fn is_limit(words: &[Word], at: usize) -> bool {
    let before = |back: usize| {
        let word = at.checked_sub(back).and_then(|at| words.get(at));
        word.map_or("", |word| word.text.as_str())
    };
    before(1) == "the" && before(2) == "at"
}

fn is_release(words: &[Word], at: usize) -> bool {
    let next = words.get(at..).unwrap_or_default().iter().take(2);
    next.into_iter().any(|word| TimeList::Releases.has(&word.text))
}

/// Where a word of this list follows with only what describes it between: "first confirmed ransomware attack", but neither
/// "first seen in attacks" nor "last month".
fn thing_behind(words: &[Word], at: usize, list: TimeList) -> Option<usize> {
    let stops = |word: &Word| {
        [
            List::Prepositions,
            List::Units,
            List::Times,
            List::Conjunctions,
            List::Asking,
            List::Helping,
        ]
        .iter()
        .any(|list| word.is(*list))
    };
    for place in at..=at + MAX_BETWEEN {
        let word = words.get(place)?;
        if list.has(&word.text) {
            return Some(place);
        }
        if stops(word) || word.ends_part() {
            return None;
        }
    }
    None
}

/// Whether a question ends in this word: "Whom did A attack first?", but not "How long did it last?".
fn ends_question(words: &[Word], at: usize) -> bool {
    let first = words.first().map_or("", |word| word.text.as_str());
    at > 2 && at + 1 == words.len() && first != "how" && List::Asking.has(first)
}

/// The times that a text states, counted from when it was written where it says "yesterday".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatedTimes(Vec<Date>);

impl StatedTimes {
    /// The times in a text that was written at this time.
    pub fn in_text(text: &str, written: DateTime<Utc>) -> Self {
        let words = words(text);
        let today = written.date_naive();
        let day = |back: u64| {
            let day = today.checked_sub_days(Days::new(back))?;
            let end = day.checked_add_days(Days::new(1))?;
            Some(Date {
                begin: midnight(day),
                end: midnight(end),
            })
        };
        let mut times = Vec::new();
        let mut at = 0;
        while at < words.len() {
            if let Some((date, end)) = date_at(&words, at) {
                times.push(date);
                at = end;
                continue;
            }
            if TimeList::ThatDay.length_at(&words, at) > 0 {
                times.extend(day(0));
            } else if TimeList::DayBefore.length_at(&words, at) > 0 {
                times.extend(day(1));
            }
            at += 1;
        }
        StatedTimes(times)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them may lie in a period.
    pub fn are_in(&self, period: &Period) -> bool {
        self.0.iter().any(|date| period.overlaps(date))
    }

    /// The newest or the oldest of them that has begun by now, if there is a period then in it: its middle.
    pub fn first_in_order(
        &self,
        order: TimeOrder,
        period: Option<&Period>,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let fits = |date: &&Date| date.begin <= now && period.is_none_or(|period| period.overlaps(date));
        let middle = |date: &Date| date.begin + (date.end - date.begin) / 2;
        let middles = self.0.iter().filter(fits).map(middle);
        match order {
            TimeOrder::NewestFirst => middles.max(),
            TimeOrder::OldestFirst => middles.min(),
        }
    }
}
