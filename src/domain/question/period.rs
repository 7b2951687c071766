//! The time that a question asks about: "in 2021", "since March 2024", "between 2019 and 2021", "last month".

use std::ops::Range;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, TimeDelta, Utc};
use serde::Serialize;

use super::dates::{Date, begin_of, date_at, day_of, midnight};
use super::lexicon::{List, month_of};
use super::time_words::TimeList::Same;
use super::time_words::in_english;
use super::words::{Word, words};

/// English words that tell how a date is meant, and that other languages have words for.
const BESIDE_DATES: &[&str] = &["before", "after", "since", "until", "of"];

/// A stretch of time; a missing end is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Period {
    /// First instant.
    pub from: Option<DateTime<Utc>>,
    /// First instant after it.
    pub until: Option<DateTime<Utc>>,
    /// Whether what is asked for must begin in it, rather than only overlap it.
    pub begins: bool,
    /// Whether it means when something was entered rather than when it was seen.
    pub entered: bool,
}

impl Period {
    /// Whether something seen from `first` to `last` fits.
    pub fn covers(&self, first: DateTime<Utc>, last: DateTime<Utc>) -> bool {
        let reached = if self.begins { first } else { last.max(first) };
        self.from.is_none_or(|from| reached >= from) && self.until.is_none_or(|until| first < until)
    }

    /// Whether a text states a day, month or year of it.
    pub fn is_stated_in(&self, text: &str) -> bool {
        let words = words(text);
        let dates = (0..words.len()).filter_map(|at| Some(date_at(&words, at)?.0));
        dates.into_iter().any(|date| self.overlaps(&date))
    }

    pub(super) fn overlaps(&self, date: &Date) -> bool {
        self.from.is_none_or(|from| date.end > from) && self.until.is_none_or(|until| date.begin < until)
    }
}

/// The time that the words name, and which words name it. Words that `is_name` are part of a name.
pub(super) fn period_of(
    words: &[Word],
    is_name: impl Fn(usize) -> bool,
    now: DateTime<Utc>,
) -> Option<(Period, Range<usize>)> {
    let (period, at) = relative_period(words, &is_name, now).or_else(|| absolute_period(words, &is_name))?;
    let has = |list: List| words.iter().any(|word| word.is(list));
    let period = Period {
        begins: period.from.is_some() && period.until.is_none() && has(List::Begins),
        entered: has(List::Entered),
        ..period
    };
    Some((period, at))
}

fn absolute_period(words: &[Word], is_name: &impl Fn(usize) -> bool) -> Option<(Period, Range<usize>)> {
    let mut dates: Vec<(Date, Range<usize>)> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let date = Some(at).filter(|at| !is_name(*at));
        match date.and_then(|at| date_at(words, at)) {
            Some((date, end)) => {
                dates.push((date, at..end));
                at = end;
            }
            None => at += 1,
        }
    }
    let (first, span) = dates.first()?;
    if let Some((from, start)) = begin_before(words, first, span.start) {
        let period = Period {
            from: Some(from),
            until: Some(first.end),
            ..Period::default()
        };
        return Some((period, start..span.end));
    }
    match dates.get(1) {
        Some((second, other)) if are_joined(words, span.end..other.start) => {
            let period = Period {
                from: Some(first.begin.min(second.begin)),
                until: Some(first.end.max(second.end)),
                ..Period::default()
            };
            Some((period, span.start.saturating_sub(1)..other.end))
        }
        Some(_) | None => Some(period_around(words, *first, span.clone())),
    }
}

/// The begin of a time whose first month or day stands before the date that ends it, and has the year of that: "between January
/// and May 2023", "3 to 14 May 2023".
fn begin_before(words: &[Word], end: &Date, start: usize) -> Option<(DateTime<Utc>, usize)> {
    let text = |back: usize| {
        let word = start.checked_sub(back).and_then(|at| words.get(at));
        word.map_or("", |word| word.text.as_str())
    };
    let joins = matches!(text(1), "and" | "to" | "until" | "till" | "through") || Same("and").has(text(1));
    if !joins {
        return None;
    }
    let last = end.begin.date_naive();
    let (month, day, back) = match (month_of(text(2)), day_of(text(2))) {
        // "from 3 January to …"
        (Some(month), _) => match day_of(text(3)) {
            Some(day) => (month, day, 3),
            None => (month, 1, 2),
        },
        (None, Some(day)) if end.end - end.begin == TimeDelta::days(1) => (last.month(), day, 2),
        (None, _) => return None,
    };
    let year = last.year() - i32::from((month, day) > (last.month(), last.day()));
    let first = NaiveDate::from_ymd_opt(year, month, day)?;
    Some((midnight(first), start - back))
}

/// Whether nothing else lies between two dates: "from 2015 to 2017", "between June 2016 and the end of 2017".
fn are_joined(words: &[Word], between: Range<usize>) -> bool {
    let mut between = words.get(between).unwrap_or_default().iter();
    between.all(|word| word.is(List::DateJoining))
}

/// The time that a date and the words around it mean: "since 2022", "2022 or later", "up to the end of 2016".
fn period_around(words: &[Word], date: Date, span: Range<usize>) -> (Period, Range<usize>) {
    let text = |at: Option<usize>| {
        at.and_then(|at| words.get(at))
            .map_or("", |word| word.text.as_str())
    };
    let before = |back: usize| in_english(text(span.start.checked_sub(back)), BESIDE_DATES);
    // "the year 2000", "the end of 2016"
    let mut back = 1;
    let mut at_end = false;
    while matches!(before(back), "the" | "year" | "month" | "of" | "end") {
        at_end |= before(back) == "end";
        back += 1;
    }
    // "up to and including 2018"
    let includes = before(back) == "including";
    if includes {
        back += 1 + usize::from(before(back + 1) == "and");
    }
    let compares = before(back) == "than" || (before(back) == "to" && before(back + 1) == "prior");
    let said = back + usize::from(compares);
    let word = before(said);
    let is_denied = matches!(before(said + 1), "no" | "not");
    // "in or before 2018"
    let or_in = before(said + 1) == "or";
    let or = matches!(text(Some(span.end)), "or" | "and");
    let after = text(Some(span.end + usize::from(or)));
    let (from, until) = match (word, after) {
        ("after" | "later" | "newer", _) if is_denied => (None, Some(date.end)),
        ("before" | "earlier" | "older", _) if is_denied => (Some(date.begin), None),
        ("after", _) if or_in => (Some(date.begin), None),
        ("before", _) if or_in => (None, Some(date.end)),
        // "as of 2018"
        ("as", _) => (None, Some(date.end)),
        ("since", _) | (_, "on" | "onward" | "onwards" | "later" | "newer") => (Some(date.begin), None),
        ("after" | "later" | "newer" | "past" | "following", _) => (Some(date.end), None),
        ("before" | "earlier" | "older" | "prior" | "preceding", _) => {
            (None, Some(if at_end { date.end } else { date.begin }))
        }
        ("until" | "till" | "through", _) | (_, "earlier" | "older" | "before") => (None, Some(date.end)),
        ("by", _) => (None, Some(date.end)),
        ("to", _) if at_end || before(back + 1) == "up" => (None, Some(date.end)),
        _ => (Some(date.begin), Some(date.end)),
    };
    let is_introduced = List::Introducing.has(before(back));
    let start = if is_introduced {
        span.start.saturating_sub(back)
    } else {
        span.start
    };
    let period = Period {
        from,
        until,
        ..Period::default()
    };
    (period, start..span.end)
}

/// "last month", "this year", "in the last 30 days", "yesterday", "since last week", "before this year".
fn relative_period(
    words: &[Word],
    is_name: &impl Fn(usize) -> bool,
    now: DateTime<Utc>,
) -> Option<(Period, Range<usize>)> {
    let today = now.date_naive();
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    (0..words.len()).filter(|at| !is_name(*at)).find_map(|at| {
        let (from, until, end) = match text(at) {
            "today" => (midnight(today), None, at + 1),
            "yesterday" => (midnight(today.pred_opt()?), Some(midnight(today)), at + 1),
            "recently" => (now.checked_sub_days(Days::new(30))?, None, at + 1),
            "last" | "past" | "previous" => last(at, &text, now)?,
            "this" => (begin_of(text(at + 1), today)?, None, at + 2),
            _ => return None,
        };
        let (from, until) = match at.checked_sub(1).map_or("", text) {
            "since" => (Some(from), None),
            "before" | "until" | "till" => (None, Some(from)),
            _ => (Some(from), until),
        };
        let period = Period {
            from,
            until,
            ..Period::default()
        };
        Some((period, at..end))
    })
}

type RelativePeriod = (DateTime<Utc>, Option<DateTime<Utc>>, usize);

fn last<'a>(at: usize, text: &impl Fn(usize) -> &'a str, now: DateTime<Utc>) -> Option<RelativePeriod> {
    if let Ok(count) = text(at + 1).parse::<u32>() {
        return Some((ago(text(at + 2).trim_end_matches('s'), count, now)?, None, at + 3));
    }
    let unit = text(at + 1);
    if unit.ends_with('s') {
        return None;
    }
    // The calendar's last month, but "the past month" is the thirty days up to now.
    if text(at) == "past" {
        return Some((ago(unit, 1, now)?, None, at + 2));
    }
    let end = begin_of(unit, now.date_naive())?;
    Some((ago(unit, 1, end)?, Some(end), at + 2))
}

fn ago(unit: &str, count: u32, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match unit {
        "day" => from.checked_sub_days(Days::new(count.into())),
        "week" => from.checked_sub_days(Days::new(u64::from(count) * 7)),
        "month" => from.checked_sub_months(Months::new(count)),
        "quarter" => from.checked_sub_months(Months::new(count.checked_mul(3)?)),
        "year" => from.checked_sub_months(Months::new(count.checked_mul(12)?)),
        _ => None,
    }
}
