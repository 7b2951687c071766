//! Dates as texts and questions write them: a day, a month, a quarter, a season or a year.
//!
//! Numbers alone are a day where a year stands at one end ("2024-03-01", "1.3.2024", "2024年3月1日"); "05/06/2024" may be
//! two days, so it is the time from the one to the other.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, Utc};

use super::lexicon::{month_of, part_of, season_of};
use super::words::Word;

/// A day, month or another part of a calendar, as the instants at which it begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) begin: DateTime<Utc>,
    pub(super) end: DateTime<Utc>,
}

impl Date {
    fn of_day(day: NaiveDate) -> Option<Self> {
        Some(Date {
            begin: midnight(day),
            end: midnight(day.checked_add_days(Days::new(1))?),
        })
    }

    /// So many months from the first day of this one.
    fn of_months(year: i32, month: u32, count: u32) -> Option<Self> {
        let first = NaiveDate::from_ymd_opt(year, month, 1)?;
        Some(Date {
            begin: midnight(first),
            end: midnight(first.checked_add_months(Months::new(count))?),
        })
    }

    fn of_year(year: i32) -> Option<Self> {
        Self::of_months(year, 1, 12)
    }
}

pub(super) fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// A date that begins at this word, and where it ends.
pub(super) fn date_at(words: &[Word], at: usize) -> Option<(Date, usize)> {
    let text = |place: usize| words.get(at + place).map_or("", |word| word.text.as_str());
    let word = text(0);
    if let Some(date) = numbers_date(word) {
        return Some((date, at + 1));
    }
    // "14 May 2023", "3. Oktober 2019", "2nd of June 2023"
    if let Some(day) = day_of(word) {
        let of = usize::from(matches!(text(1), "of" | "de" | "del" | "do"));
        let month = month_of(text(1 + of))?;
        let again = usize::from(matches!(text(2 + of), "de" | "del"));
        let year = year_of(text(2 + of + again))?;
        let day = NaiveDate::from_ymd_opt(year, month, day)?;
        return Some((Date::of_day(day)?, at + 3 + of + again));
    }
    if let Some(part) = calendar_part(word, text(1), text(2), text(3)) {
        return part.map(|(date, length)| (date, at + length));
    }
    let month = month_of(word.trim_start_matches("mid-"))?;
    // "May 14, 2023"
    if let (Some(day), Some(year)) = (day_of(text(1)), year_of(text(2))) {
        let day = NaiveDate::from_ymd_opt(year, month, day)?;
        return Some((Date::of_day(day)?, at + 3));
    }
    let of = usize::from(matches!(text(1), "of" | "de" | "del" | "do"));
    let year = year_of(text(1 + of))?;
    Some((Date::of_months(year, month, 1)?, at + 2 + of))
}

/// A quarter, half or season with its year, and its words: "Q3 2022", "third quarter of 2022", "autumn 2021". `None` in
/// the answer if the words begin one that is none.
#[expect(
    clippy::option_option,
    reason = "a word that begins no part leaves the reading to others"
)]
fn calendar_part(word: &str, second: &str, third: &str, fourth: &str) -> Option<Option<(Date, usize)>> {
    let year_after = |one: &str, other: &str| match year_of(one) {
        Some(year) => Some((year, 0)),
        None if one == "of" => year_of(other).map(|year| (year, 1)),
        None => None,
    };
    if let Some((month, count)) = abbreviated_part(word) {
        let year = year_after(second, third);
        return Some(year.and_then(|(year, of)| Some((Date::of_months(year, month, count)?, 2 + of))));
    }
    if let Some(number) = part_of(word) {
        let length = match second {
            "quarter" => 3,
            "half" => 6,
            _ => return None,
        };
        let year = year_after(third, fourth);
        let month = (number - 1) * length + 1;
        return Some(year.and_then(|(year, of)| Some((Date::of_months(year, month, length)?, 3 + of))));
    }
    let season = season_of(word)?;
    let year = year_after(second, third);
    Some(year.and_then(|(year, of)| Some((Date::of_months(year, season, 3)?, 2 + of))))
}

/// The first month of "q3" or "h2", and how many it has.
fn abbreviated_part(word: &str) -> Option<(u32, u32)> {
    let (letter, number) = (word.chars().next()?, word.get(1..)?.parse::<u32>().ok()?);
    match (letter, number) {
        ('q', 1..=4) => Some((number * 3 - 2, 3)),
        ('h', 1..=2) => Some((number * 6 - 5, 6)),
        _ => None,
    }
}

/// A date of numbers alone, or of a year with a quarter: "2024-03-01", "1.3.2024", "05/2023", "2023年5月", "2022-q3", "2024".
fn numbers_date(word: &str) -> Option<Date> {
    if let Some(year) = year_of(word.trim_start_matches("fy")) {
        return Date::of_year(year);
    }
    if word.contains(['年', '년']) {
        let marks = ['年', '月', '日', '号', '년', '월', '일'];
        let parts: Vec<&str> = word.split(marks).filter(|part| !part.is_empty()).collect();
        return date_of(&parts, '-');
    }
    let mark = word.chars().find(|c| matches!(c, '-' | '/' | '.'))?;
    let named: Vec<&str> = word.split(mark).collect();
    if let Some(date) = date_with_month(&named) {
        return Some(date);
    }
    // A time may follow: "2024-03-01t10:00z".
    let day = word.split('t').next().unwrap_or(word);
    let parts: Vec<&str> = day.split(mark).collect();
    date_of(&parts, mark)
}

/// "14-may-2023", "may-2023", "2023-may-14"
fn date_with_month(parts: &[&str]) -> Option<Date> {
    match parts {
        [month, year] => Date::of_months(year_of(year)?, month_of(month)?, 1),
        [first, month, last] => {
            let month = month_of(month)?;
            let (year, day) = match year_of(last) {
                Some(year) => (year, day_of(first)?),
                None => (year_of(first)?, day_of(last)?),
            };
            Date::of_day(NaiveDate::from_ymd_opt(year, month, day)?)
        }
        _ => None,
    }
}

fn date_of(parts: &[&str], mark: char) -> Option<Date> {
    let small = |part: &str| {
        let number = Some(part).filter(|part| part.len() <= 2)?;
        number.parse::<u32>().ok()
    };
    let day = |year: i32, month: u32, day: u32| Date::of_day(NaiveDate::from_ymd_opt(year, month, day)?);
    match parts {
        [year] => Date::of_year(year_of(year)?),
        // "2019.1" is a version.
        [year, part] if mark != '.' && year_of(year).is_some() => {
            let year = year_of(year)?;
            match small(part) {
                Some(month) => Date::of_months(year, month, 1),
                None => abbreviated_part(part).and_then(|(month, count)| Date::of_months(year, month, count)),
            }
        }
        [part, year] if mark != '.' || part.len() == 2 => {
            let year = year_of(year)?;
            match small(part) {
                Some(month) => Date::of_months(year, month, 1),
                None => abbreviated_part(part).and_then(|(month, count)| Date::of_months(year, month, count)),
            }
        }
        [year, month, last] if year_of(year).is_some() => day(year_of(year)?, small(month)?, small(last)?),
        [first, second, year] => {
            let (year, first, second) = (year_of(year)?, small(first)?, small(second)?);
            let day_first = day(year, second, first);
            // Only with slashes, which the United States use too, the month may come first.
            let month_first = day(year, first, second).filter(|_| mark == '/');
            match (day_first, month_first) {
                (Some(one), Some(other)) => Some(Date {
                    begin: one.begin.min(other.begin),
                    end: one.end.max(other.end),
                }),
                (one, other) => one.or(other),
            }
        }
        _ => None,
    }
}

fn year_of(word: &str) -> Option<i32> {
    let is_year = word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    word.parse()
        .ok()
        .filter(|year| is_year && (1970..2100).contains(year))
}

/// The day of a month, with the ending of an ordinal or without.
pub(super) fn day_of(word: &str) -> Option<u32> {
    let endings = ["st", "nd", "rd", "th", "er", "º", "°"];
    let number = endings.iter().find_map(|ending| word.strip_suffix(ending));
    let number = number.unwrap_or(word);
    let is_short = number.len() <= 2 && number.bytes().all(|b| b.is_ascii_digit());
    number
        .parse()
        .ok()
        .filter(|day| is_short && (1..=31).contains(day))
}

/// When the week, month, quarter or year of this day began.
pub(super) fn begin_of(unit: &str, today: NaiveDate) -> Option<DateTime<Utc>> {
    let day = match unit {
        "day" => today,
        "week" => today.week(chrono::Weekday::Mon).first_day(),
        "month" => today.with_day(1)?,
        "quarter" => NaiveDate::from_ymd_opt(today.year(), today.month0() / 3 * 3 + 1, 1)?,
        "year" => NaiveDate::from_ymd_opt(today.year(), 1, 1)?,
        _ => return None,
    };
    Some(midnight(day))
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn first(text: &str) -> Option<(String, String)> {
        let words = words(text);
        let mut found = (0..words.len()).filter_map(|at| date_at(&words, at));
        let shown = |time: DateTime<Utc>| time.format("%Y-%m-%d").to_string();
        found.next().map(|(date, _)| (shown(date.begin), shown(date.end)))
    }

    #[test]
    fn dates_are_read_in_the_spellings_of_reports() {
        for (text, begin, end) in [
            ("2021-11-05: hit", "2021-11-05", "2021-11-06"),
            ("at 2024-03-01T10:00Z", "2024-03-01", "2024-03-02"),
            ("on 1.3.2024", "2024-03-01", "2024-03-02"),
            ("on 14/05/2023", "2023-05-14", "2023-05-15"),
            ("on 05/14/2023", "2023-05-14", "2023-05-15"),
            ("05/06/2020 hit", "2020-05-06", "2020-06-06"),
            ("in 05/2023", "2023-05-01", "2023-06-01"),
            ("in 2023-05", "2023-05-01", "2023-06-01"),
            ("in December 2023", "2023-12-01", "2024-01-01"),
            ("December 2023", "2023-12-01", "2024-01-01"),
            ("in Dec 2023", "2023-12-01", "2024-01-01"),
            ("in mid-May 2023", "2023-05-01", "2023-06-01"),
            ("On 14 May 2023 the", "2023-05-14", "2023-05-15"),
            ("on May 14, 2023", "2023-05-14", "2023-05-15"),
            ("the 2nd of June 2023", "2023-06-02", "2023-06-03"),
            ("Am 3. Oktober 2019 traf", "2019-10-03", "2019-10-04"),
            ("le 3 février 2019", "2019-02-03", "2019-02-04"),
            ("el 3 de enero de 2019", "2019-01-03", "2019-01-04"),
            ("3 марта 2019", "2019-03-03", "2019-03-04"),
            ("2023年5月14日", "2023-05-14", "2023-05-15"),
            ("2023年5月", "2023-05-01", "2023-06-01"),
            ("In Q3 2022 the", "2022-07-01", "2022-10-01"),
            ("2022-Q3", "2022-07-01", "2022-10-01"),
            ("H2 of 2022", "2022-07-01", "2023-01-01"),
            ("the third quarter of 2022", "2022-07-01", "2022-10-01"),
            ("in autumn 2021", "2021-09-01", "2021-12-01"),
            ("in FY2023", "2023-01-01", "2024-01-01"),
            ("on 14-May-2023", "2023-05-14", "2023-05-15"),
            ("on 14-Oct-2023", "2023-10-14", "2023-10-15"),
            ("in Sept-2023", "2023-09-01", "2023-10-01"),
            ("le 1er mai 2023", "2023-05-01", "2023-05-02"),
            ("mayo del 2023", "2023-05-01", "2023-06-01"),
            ("in 2023", "2023-01-01", "2024-01-01"),
        ] {
            let want = Some((begin.to_owned(), end.to_owned()));
            assert_eq!(first(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_read_as_none() {
        for text in [
            "CVE-2024-3094",
            "version 2019.1",
            "10.0.19041",
            "1.2.3.4",
            "24-03-01",
            "you may use",
            "the first stage",
            "Windows 7 march",
            "31.13.2024",
            "2024-13-40",
            "Q5 2022x",
            "autumn leaves",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }
}
