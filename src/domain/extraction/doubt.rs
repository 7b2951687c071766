//! Words by which a sentence denies or doubts what it says.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::domain::with_ascii_edges;

const WORDS: &str = r"(?i)\b(?:not|no|none|never|neither|nor|without|may|might|could|would|should|can|if|whether|unlikely|unclear|allegedly|reportedly|possibly|perhaps|suspected|suspects|likely|unconfirmed|denied|denies|deny|cannot|unrelated|rather than|instead of|claims|claimed|hypothetical|false|similar|maybe|presumably|supposedly|potentially|suspect|possible that)\b|n't\b";
/// Words before the month of May.
const BEFORE_MONTH: &[&str] = &[
    "after", "and", "before", "by", "during", "early", "from", "in", "last", "late", "mid", "mid-", "next",
    "of", "or", "since", "this", "through", "till", "to", "until",
];

static DOUBT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&with_ascii_edges(WORDS)).ok());

/// The words of a sentence that deny or doubt something. The month of May and "not only" don't.
pub(super) fn doubts(sentence: &str) -> impl Iterator<Item = Range<usize>> {
    let found = DOUBT.iter().flat_map(|words| words.find_iter(sentence));
    let spans = found.map(|word| word.range());
    spans.filter(|span| !is_month(sentence, span) && !is_only(sentence, span))
}

/// Whether a sentence denies or doubts something.
pub(super) fn is_doubtful(sentence: &str) -> bool {
    doubts(sentence).next().is_some()
}

/// Whether "may" is a month: "May 2023", "in May".
fn is_month(sentence: &str, span: &Range<usize>) -> bool {
    let word = sentence.get(span.clone()).unwrap_or_default();
    if !word.eq_ignore_ascii_case("may") {
        return false;
    }
    let after = sentence.get(span.end..).unwrap_or_default();
    if after.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return true;
    }
    let before = sentence.get(..span.start).unwrap_or_default();
    let last = before.split_whitespace().next_back().unwrap_or_default();
    let last = last
        .trim_start_matches(|c: char| !c.is_alphanumeric())
        .to_ascii_lowercase();
    word == "May" && (BEFORE_MONTH.contains(&last.as_str()) || last.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_only(sentence: &str, span: &Range<usize>) -> bool {
    let word = sentence.get(span.clone()).unwrap_or_default();
    let after = sentence.get(span.end..).unwrap_or_default();
    let next = after.split_whitespace().next().unwrap_or_default();
    word.eq_ignore_ascii_case("not") && matches!(next, "only" | "just" | "merely")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_month_of_may_is_no_doubt() {
        for text in [
            "In May 2023 APT28 used Mimikatz.",
            "On May 12, 2017 WannaCry spread.",
            "on 12 May the group used Mimikatz",
            "Since May the group has used Mimikatz.",
            "between April and May it was seen in mid-May",
            "in may 2023 apt28 used mimikatz",
            "They used not only Mimikatz but PsExec.",
        ] {
            assert!(!is_doubtful(text), "{text}");
        }
        for text in [
            "APT28 may have used Mimikatz.",
            "May be a copy of Mimikatz.",
            "APT28 May Have Used Mimikatz",
            "In May 2023 APT28 may have used Mimikatz.",
            "They didn't use Mimikatz.",
            "They used tools similar to Mimikatz.",
        ] {
            assert!(is_doubtful(text), "{text}");
        }
    }
}
