//! Splits long texts into overlapping chunks, preferably at the end of a paragraph, sentence or word.

use std::ops::Range;

use crate::domain::cursor::Cursor;

/// Where to split, best first.
const BREAKS: [&[&str]; 4] = [
    &["\n\n", "\r\n\r\n"],
    &["\n"],
    &[". ", "! ", "? ", "。"],
    &[" ", "\t"],
];

/// Byte ranges of at most `max` characters that cover the text. Each but the first repeats about `overlap` characters
/// of its predecessor.
pub fn chunks(text: &str, max: usize, overlap: usize) -> Vec<Range<usize>> {
    let max = max.max(1);
    // Half at most, so that every chunk makes progress.
    let overlap = overlap.min(max / 2);
    let mut parts = Vec::new();
    let mut cursor = Cursor::new(text);
    let mut end = 0;
    loop {
        let start = cursor.at();
        let window = after(text, start, max);
        if window == text.len() {
            parts.push(start..window);
            return parts;
        }
        end = end_of_part(text, start, end, window);
        parts.push(start..end);
        cursor.bump();
        cursor.skip_to(start_of_next(text, start, end, overlap));
    }
}

/// The last good split point in the second half of the window, after the end of the previous chunk.
fn end_of_part(text: &str, start: usize, previous: usize, window: usize) -> usize {
    let half = boundary_at_or_after(text, start + (window - start) / 2).max(previous);
    let last = |marks: &[&str]| {
        let part = text.get(half..window)?;
        marks
            .iter()
            .filter_map(|mark| part.rfind(mark).map(|at| half + at + mark.len()))
            .max()
    };
    BREAKS.iter().find_map(|marks| last(marks)).unwrap_or(window)
}

/// The first start of a sentence, or else of a word, in the overlap.
fn start_of_next(text: &str, start: usize, end: usize, overlap: usize) -> usize {
    let from = before(text, end, overlap).max(boundary_at_or_after(text, start + 1));
    let Some(part) = text.get(from..end).filter(|part| !part.is_empty()) else {
        return end;
    };
    let first = |marks: &[&str]| {
        let ends = marks
            .iter()
            .filter_map(|mark| part.find(mark).map(|at| from + at + mark.len()));
        ends.filter(|at| *at < end).min()
    };
    BREAKS.iter().find_map(|marks| first(marks)).unwrap_or(from)
}

/// The offset `count` characters after `from`.
fn after(text: &str, from: usize, count: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.char_indices()
        .nth(count)
        .map_or(text.len(), |(at, _)| from + at)
}

/// The offset `count` characters before `to`.
fn before(text: &str, to: usize, count: usize) -> usize {
    let Some(last) = count.checked_sub(1) else {
        return to;
    };
    let head = text.get(..to).unwrap_or_default();
    head.char_indices().nth_back(last).map_or(0, |(at, _)| at)
}

fn boundary_at_or_after(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str, max: usize, overlap: usize) -> Vec<&str> {
        chunks(text, max, overlap)
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn a_short_text_is_one_part() {
        assert_eq!(parts("abc", 3, 1), ["abc"]);
        assert_eq!(parts("", 3, 1), [""]);
    }

    #[test]
    fn parts_end_with_paragraphs_then_sentences_then_words() {
        assert_eq!(
            parts("One two three.\n\nFour five six.", 20, 0),
            ["One two three.\n\n", "Four five six."]
        );
        assert_eq!(
            parts("One two three. Four five six.", 20, 0),
            ["One two three. ", "Four five six."]
        );
        assert_eq!(parts("aaaa bbbb cccc", 7, 0), ["aaaa ", "bbbb ", "cccc"]);
        assert_eq!(parts("éééééé", 4, 0), ["éééé", "éé"]);
    }

    #[test]
    fn the_next_part_repeats_the_last_sentence() {
        let text = "First sentence here. Second one here. Third one here.";
        assert_eq!(
            parts(text, 40, 20),
            [
                "First sentence here. Second one here. ",
                "Second one here. Third one here."
            ]
        );
    }

    proptest! {
        #[test]
        fn parts_cover_the_text_in_order_and_are_no_longer_than_asked(
            text in r"([a-z]{0,9}[ .\n]|é漢字|\. |\n\n){0,60}", max in 1usize..40, overlap in 0usize..40,
        ) {
            let ranges = chunks(&text, max, overlap);
            prop_assert_eq!(ranges.first().unwrap().start, 0);
            prop_assert_eq!(ranges.last().unwrap().end, text.len());
            for range in &ranges {
                let part = text.get(range.clone());
                prop_assert!(part.is_some_and(|part| part.chars().count() <= max));
            }
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].start < pair[1].start && pair[1].start <= pair[0].end);
                prop_assert!(pair[0].end < pair[1].end);
            }
        }
    }
}
