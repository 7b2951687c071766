//! Questions for what changed in a time: "What is new since yesterday?", "what changed about APT29 this week".

use super::Question;
use super::period::{Period, period_of};
use super::words::{Word, mentions};

/// How such a question begins, apart from its time and what it is about.
const BEGINNINGS: [&[&str]; 13] = [
    &["what", "is", "new"],
    &["what", "new"],
    &["whats", "new"],
    &["what", "has", "changed"],
    &["what", "have", "we", "learned"],
    &["what", "changed"],
    &["what", "was", "changed"],
    &["what", "was", "added"],
    &["what", "was", "updated"],
    &["what", "happened"],
    &["anything", "new"],
    &["any", "news"],
    &["changes"],
];
/// Words that may stand between the beginning, what it is about, and the time.
const FILLERS: [&str; 9] = ["about", "on", "for", "in", "the", "to", "of", "with", "from"];

impl Question {
    /// The time of the changes that it asks for, and whether it says what they are about; `None` if it asks for none.
    pub fn changes_asked(&self) -> Option<(Period, bool)> {
        let begins = |beginning: &&&[&str]| {
            let words = self.words.iter().map(|word| word.text.to_lowercase());
            words
                .take(beginning.len())
                .eq(beginning.iter().map(|word| (*word).to_owned()))
        };
        let beginning = BEGINNINGS.iter().find(begins)?.len();
        let (period, at) = period_of(&self.words, |_| false, self.now)?;
        period.from?;
        // What asks for things of a kind is answered by their own times; behind "about" stands a name.
        let is_filler = |word: &Word| FILLERS.contains(&word.text.to_lowercase().as_str());
        let names_from = self.words.iter().skip(beginning).position(is_filler);
        let names_from = names_from.map_or(usize::MAX, |place| beginning + place);
        let kinds = mentions(&self.words, |_| false);
        if kinds.iter().any(|mention| mention.at.start < names_from) {
            return None;
        }
        let is_of_time = |place: usize, word: &Word| {
            at.contains(&place)
                || ["since", "during", "until", "before"].contains(&word.text.to_lowercase().as_str())
        };
        let rest = self.words.iter().enumerate().skip(beginning);
        let is_about = rest
            .filter(|(place, word)| !is_of_time(*place, word))
            .any(|(_, word)| !is_filler(word));
        Some((period, is_about))
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;

    #[test]
    fn questions_for_changes_are_told_from_others() {
        let now: DateTime<Utc> = "2024-05-15T12:00:00Z".parse().unwrap();
        for (text, want) in [
            ("What is new since yesterday?", Some(("2024-05-14", false))),
            ("what's new since yesterday", Some(("2024-05-14", false))),
            ("What changed about APT29 this week?", Some(("2024-05-13", true))),
            (
                "any news on Sandworm Team since 2024-05-01",
                Some(("2024-05-01", true)),
            ),
            ("Anything new this month?", Some(("2024-05-01", false))),
            ("What has changed since March 2024?", Some(("2024-03-01", false))),
            ("What is new?", None),
            ("What changed about APT29?", None),
            ("Which groups are new since yesterday?", None),
            ("What groups used X-Agent since yesterday?", None),
            ("What is new malware since yesterday?", None),
            ("new malware since yesterday", None),
            ("What is Newscaster doing since 2014?", None),
        ] {
            let asked = Question::read(text, now).changes_asked();
            let told = asked.map(|(period, about)| (period.from.unwrap().date_naive().to_string(), about));
            assert_eq!(told, want.map(|(day, about)| (day.to_owned(), about)), "{text}");
        }
    }
}
