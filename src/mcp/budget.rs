//! Answers within the attention of a language model.
//!
//! No answer has more than 25,000 tokens. Tokenisers differ, so characters are counted: an answer has its JSON twice, once as
//! text and once as structure, and each is at most [`MOST`] characters long, a character outside of ASCII counting as two.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// Longest JSON of an answer.
pub(super) const MOST: usize = 40_000;
/// Room for what an answer has beside that of the API: the notice, the cursor and the name that it stands under.
const FRAME: usize = 500;
/// Longest strings and lists of what is too long, tried in turn.
const CUTS: [(usize, usize); 4] = [(4_000, 200), (1_000, 50), (300, 20), (80, 5)];
/// Fields of an object that are never left out: no answer of the API has more, but an original may have any number.
const FIELDS: usize = 40;
/// Longest name of a field.
const NAME: usize = 200;
/// Depths below which values are left out where all that is not enough, tried in turn.
const DEPTHS: std::ops::RangeInclusive<usize> = 2..=6;
const LEFT_OUT: &str = "… [left out]";

/// What of an answer goes on in the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rows<'a> {
    /// Lists whose entries go on together: an answer has as many of each.
    pub lists: &'a [&'a str],
    /// A list of which an answer has what its rows name, and the fields of a row that name it by `id`.
    pub named: Option<(&'a str, &'a [&'a str])>,
}

/// The length of a text.
pub(super) fn length(text: &str) -> usize {
    text.chars()
        .map(|letter| if letter.is_ascii() { 1 } else { 2 })
        .sum()
}

fn length_of(value: &Value) -> usize {
    length(&value.to_string())
}

/// Shortens an answer until it fits: what is no row gets half of the room at most, then rows at the end go. Returns how many
/// rows are left out, or nothing if the answer is whole.
pub(super) fn fit(answer: &mut Value, rows: Rows<'_>) -> Option<usize> {
    const ROOM: usize = MOST - FRAME;
    if length_of(answer) <= ROOM {
        return None;
    }
    let mut taken = TakenRows::of(answer, rows);
    shorten(answer, ROOM / 2);
    let room = ROOM.saturating_sub(length_of(answer));
    let left_out = taken.keep_what_fits(room);
    taken.give_back(answer);
    // One row that is too long on its own.
    shorten(answer, ROOM);
    Some(left_out)
}

/// The rows of an answer, outside of it.
struct TakenRows<'a> {
    rows: Rows<'a>,
    lists: Vec<Vec<Value>>,
    named: Vec<Value>,
}

impl<'a> TakenRows<'a> {
    fn of(answer: &mut Value, rows: Rows<'a>) -> Self {
        let mut take = |name: &str| match answer.get_mut(name).and_then(Value::as_array_mut) {
            Some(list) => std::mem::take(list),
            None => Vec::new(),
        };
        let lists: Vec<Vec<Value>> = rows.lists.iter().map(|name| take(name)).collect();
        let has_rows = lists.iter().any(|list| !list.is_empty());
        let named = rows.named.filter(|_| has_rows);
        Self {
            rows: Rows { named, ..rows },
            lists,
            named: named.map(|(name, _)| take(name)).unwrap_or_default(),
        }
    }

    /// Keeps the rows at the beginning that fit, one at least; returns how many are left out.
    fn keep_what_fits(&mut self, room: usize) -> usize {
        let count = self.lists.iter().map(Vec::len).max().unwrap_or(0);
        let mut lengths: HashMap<&str, usize> = HashMap::new();
        for part in &self.named {
            if let Some(id) = part["id"].as_str() {
                lengths.insert(id, length_of(part) + 1);
            }
        }
        let fields = self.rows.named.map_or(&[][..], |(_, fields)| fields);
        let mut kept_ids: HashSet<String> = HashSet::new();
        let (mut kept, mut used) = (0, 0);
        while kept < count {
            let of_place: Vec<&Value> = self.lists.iter().filter_map(|list| list.get(kept)).collect();
            let ids = of_place
                .iter()
                .flat_map(|row| fields.iter().filter_map(|field| row[*field].as_str()));
            let new: HashSet<&str> = ids.filter(|id| !kept_ids.contains(*id)).collect();
            used += of_place.iter().map(|row| length_of(row) + 1).sum::<usize>();
            used += new.iter().filter_map(|id| lengths.get(id)).sum::<usize>();
            if used > room && kept > 0 {
                break;
            }
            kept_ids.extend(new.into_iter().map(str::to_owned));
            kept += 1;
        }
        self.lists.iter_mut().for_each(|list| list.truncate(kept));
        self.named
            .retain(|part| part["id"].as_str().is_some_and(|id| kept_ids.contains(id)));
        count - kept
    }

    fn give_back(self, answer: &mut Value) {
        let Self { rows, lists, named } = self;
        let lists = rows.lists.iter().copied().zip(lists);
        for (name, list) in lists.chain(rows.named.map(|(name, _)| (name, named))) {
            if let Some(place) = answer.get_mut(name).and_then(Value::as_array_mut) {
                *place = list;
            }
        }
    }
}

/// Cuts long strings, lists and objects inside a value until it is no longer than that.
fn shorten(value: &mut Value, most: usize) {
    for (string, items) in CUTS {
        if length_of(value) <= most {
            return;
        }
        cut(value, string, items);
    }
    for depth in DEPTHS.rev() {
        if length_of(value) <= most {
            return;
        }
        flatten(value, depth);
    }
}

fn cut(value: &mut Value, string: usize, items: usize) {
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
            list.iter_mut().for_each(|part| cut(part, string, items));
        }
        Value::Object(object) => {
            cut_fields(object, items.max(FIELDS));
            object.values_mut().for_each(|part| cut(part, string, items));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Leaves out the fields of an object beyond so many, and those with a long name.
fn cut_fields(object: &mut Map<String, Value>, most: usize) {
    let count = object.len();
    let mut kept = 0;
    object.retain(|name, _| {
        let is_kept = kept < most && name.len() <= NAME;
        kept += usize::from(is_kept);
        is_kept
    });
    if kept < count {
        object.insert(
            "…".to_owned(),
            Value::from(format!("[{} fields left out]", count - kept)),
        );
    }
}

/// Leaves out the lists and objects inside a value that lie deeper than that.
fn flatten(value: &mut Value, depth: usize) {
    match value {
        Value::Array(list) if depth > 0 => list.iter_mut().for_each(|part| flatten(part, depth - 1)),
        Value::Object(object) if depth > 0 => {
            object.values_mut().for_each(|part| flatten(part, depth - 1));
        }
        Value::Array(_) | Value::Object(_) => *value = Value::from(LEFT_OUT),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use test_support::extent;

    use super::*;

    const RESULTS: Rows<'_> = Rows {
        lists: &["results"],
        named: None,
    };
    const EDGES: Rows<'_> = Rows {
        lists: &["edges"],
        named: Some(("nodes", &["source", "target"])),
    };

    /// The part so often, as far as that is no more than some ten answers.
    fn repeat(part: &Value, count: usize) -> Vec<Value> {
        let most = 10 * MOST / (length_of(part) + 1);
        vec![part.clone(); count.min(most.max(1))]
    }

    fn anything() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-z ]{0,60}", "[a-zé字]{0,600}", Just("\"\\\n".repeat(12_000))];
        let leaf = prop_oneof![text.prop_map(Value::from), any::<i64>().prop_map(Value::from)];
        leaf.prop_recursive(3, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                (inner.clone(), 1..200usize).prop_map(|(part, count)| repeat(&part, count).into()),
                (inner, 1..3000usize).prop_map(|(part, count)| {
                    let parts = repeat(&part, count).into_iter().enumerate();
                    parts.map(|(at, part)| (format!("x_{at}"), part)).collect()
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(extent(24, 2000)))]

        #[test]
        fn every_answer_fits_and_rows_are_a_beginning(
            rows in proptest::collection::vec(anything(), 0..30), beside in anything()
        ) {
            let whole = json!({"results": rows, "count": rows.len(), "beside": beside});
            let mut answer = whole.clone();
            let left_out = fit(&mut answer, RESULTS);
            prop_assert!(length_of(&answer) <= MOST);
            let shown = answer["results"].as_array().unwrap().len();
            match left_out {
                None => prop_assert_eq!(&answer, &whole),
                Some(left_out) => {
                    prop_assert!(shown >= 1.min(rows.len()) && shown + left_out == rows.len());
                }
            }
        }

        #[test]
        fn pages_of_edges_have_the_nodes_of_theirs_and_together_all(
            ends in proptest::collection::vec((0..300usize, 0..300usize), 1..1500)
        ) {
            let nodes: Vec<Value> = (0..300).map(|at| json!({"id": format!("tool:{at}"), "label": "x".repeat(60)})).collect();
            let edges: Vec<Value> = ends
                .iter()
                .map(|(from, to)| json!({"source": format!("tool:{from}"), "target": format!("tool:{to}")}))
                .collect();
            let (mut seen, mut shown) = (HashSet::new(), 0);
            while shown < edges.len() {
                let mut page = json!({"nodes": nodes, "edges": edges[shown..]});
                fit(&mut page, EDGES);
                prop_assert!(length_of(&page) <= MOST);
                let of_page: HashSet<&str> =
                    page["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
                let kept = page["edges"].as_array().unwrap();
                prop_assert!(!kept.is_empty());
                for edge in kept {
                    for end in ["source", "target"] {
                        prop_assert!(of_page.contains(edge[end].as_str().unwrap()));
                    }
                }
                seen.extend(of_page.into_iter().map(str::to_owned));
                shown += kept.len();
            }
            let connected = ends.iter().flat_map(|(from, to)| [*from, *to]).map(|at| format!("tool:{at}"));
            for node in connected {
                prop_assert!(seen.contains(&node));
            }
        }
    }

    #[test]
    fn a_text_that_is_cut_says_so() {
        let mut answer = json!({"text": "é".repeat(50_000)});
        assert_eq!(fit(&mut answer, Rows::default()), Some(0));
        let text = answer["text"].as_str().unwrap();
        assert!(text.ends_with("… [46000 characters left out]"), "{text}");
    }

    #[test]
    fn what_is_no_row_takes_no_more_than_half() {
        let rows: Vec<Value> = (0..100)
            .map(|at| json!({"id": at, "text": "x".repeat(300)}))
            .collect();
        let mut answer = json!({"node": {"description": "ы".repeat(28_000)}, "relationships": rows});
        let rows = Rows {
            lists: &["relationships"],
            named: None,
        };
        let left_out = fit(&mut answer, rows).unwrap();
        assert!(left_out < 60, "{left_out} of 100 rows are left out");
    }

    #[test]
    fn lists_that_go_on_together_are_cut_at_the_same_place() {
        let list = |name: &str| -> Vec<Value> {
            (0..50)
                .map(|at| json!({"id": at, "name": name.repeat(500)}))
                .collect()
        };
        let mut answer = json!({"notes": list("a")[..3], "neighbours": list("b")});
        let rows = Rows {
            lists: &["notes", "neighbours"],
            named: None,
        };
        let mut long = json!({"notes": list("abcd"), "neighbours": list("efgh")});
        assert_eq!(fit(&mut answer, rows), None);
        let left_out = fit(&mut long, rows).unwrap();
        let counts = ["notes", "neighbours"].map(|name| long[name].as_array().unwrap().len());
        assert_eq!(counts, [50 - left_out; 2]);
    }
}
