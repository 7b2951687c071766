//! Answers within the attention of a language model.
//!
//! No answer has more than 25,000 tokens. Tokenisers differ, so characters are counted: an answer has its JSON twice, once as
//! text and once as structure, and each is at most [`MOST`] characters long, a character outside of ASCII counting as two.

use serde_json::Value;

/// Longest JSON of an answer.
pub(super) const MOST: usize = 40_000;
/// Longest strings and lists of a row that is too long on its own, tried in turn.
const CUTS: [(usize, usize); 4] = [(4_000, 200), (1_000, 50), (300, 20), (80, 5)];

/// The length of a text.
pub(super) fn length(text: &str) -> usize {
    text.chars()
        .map(|letter| if letter.is_ascii() { 1 } else { 2 })
        .sum()
}

fn length_of(value: &Value) -> usize {
    length(&value.to_string())
}

/// Shortens an answer until it fits: rows at the end go first, then long strings and lists are cut. Returns how many rows are
/// left out, or nothing if the answer is whole.
pub(super) fn fit(answer: &mut Value, rows: Option<&str>) -> Option<usize> {
    let whole = length_of(answer);
    if whole <= MOST {
        return None;
    }
    let mut left_out = 0;
    if let Some(list) = rows
        .and_then(|rows| answer.get_mut(rows))
        .and_then(Value::as_array_mut)
    {
        let lengths: Vec<usize> = list.iter().map(|row| length_of(row) + 1).collect();
        let other = whole - lengths.iter().sum::<usize>().min(whole);
        let mut used = other;
        let fitting = lengths.iter().take_while(|length| {
            used += **length;
            used <= MOST
        });
        // A row that is too long on its own is cut below.
        let kept = fitting.count().max(1).min(list.len());
        left_out = list.len() - kept;
        list.truncate(kept);
    }
    for (string, items) in CUTS {
        if length_of(answer) <= MOST {
            break;
        }
        cut(answer, string, items, rows);
    }
    Some(left_out)
}

/// Cuts strings and lists inside a value, and the rows themselves never.
fn cut(value: &mut Value, string: usize, items: usize, rows: Option<&str>) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(string) {
                let more = text[end..].chars().count();
                text.truncate(end);
                text.push_str(&format!("… [{more} characters left out]"));
            }
        }
        Value::Array(list) => {
            list.truncate(items);
            list.iter_mut().for_each(|part| cut(part, string, items, None));
        }
        Value::Object(object) => {
            for (name, part) in object.iter_mut() {
                match part.as_array_mut().filter(|_| rows == Some(name.as_str())) {
                    Some(list) => list.iter_mut().for_each(|row| cut(row, string, items, None)),
                    None => cut(part, string, items, None),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use test_support::extent;

    use super::*;

    fn row() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-z ]{0,60}", "[a-zé字]{0,600}", Just("\"\\\n".repeat(12_000))];
        (text, proptest::collection::vec("[a-z]{1,12}", 0..60))
            .prop_map(|(text, tags)| json!({"id": "x", "text": text, "tags": tags}))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(extent(8, 400)))]

        #[test]
        fn every_answer_fits_and_rows_are_a_beginning(rows in proptest::collection::vec(row(), 0..120)) {
            let whole = json!({"results": rows, "count": rows.len()});
            let mut answer = whole.clone();
            let left_out = fit(&mut answer, Some("results"));
            prop_assert!(length_of(&answer) <= MOST);
            let shown = answer["results"].as_array().unwrap().len();
            match left_out {
                None => prop_assert_eq!(&answer, &whole),
                Some(left_out) => prop_assert!(shown >= 1 && shown + left_out == rows.len()),
            }
        }
    }

    #[test]
    fn a_text_that_is_cut_says_so() {
        let mut answer = json!({"text": "é".repeat(50_000)});
        assert_eq!(fit(&mut answer, None), Some(0));
        let text = answer["text"].as_str().unwrap();
        assert!(text.ends_with("… [46000 characters left out]"), "{text}");
    }
}
