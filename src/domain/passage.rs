//! Passages: texts about nodes, such as the example of a procedure on a relationship.

/// Longest passage, in characters.
const MAX_CHARS: usize = 2000;
/// Bytes of a text that are read: enough for a passage with its citations, and a bound on the search for closing
/// brackets.
const MAX_READ: usize = 16 << 10;
/// Fewer words say nothing that the nodes do not.
const MIN_WORDS: usize = 4;
/// How ATT&CK cites its sources within a text.
const CITATION: &str = "(Citation:";

/// How the proof of a relationship begins that MISP states in its structure: where it stands. What somebody wrote about it
/// follows after a colon.
const PLACES: [&str; 3] = [
    "MISP object reference ",
    "MISP galaxy cluster on attribute ",
    "MISP attribute ",
];

/// What somebody wrote in the proof of a relationship. Where the source states it is for those who check it, and speaks
/// for no search result.
pub fn written_in(proof: &str) -> &str {
    if PLACES.iter().any(|place| proof.starts_with(place)) {
        return proof.split_once(": ").map_or("", |(_, comment)| comment);
    }
    proof
}

/// The text of a passage: plain, without citations, with links reduced to their words; `None` for one that is too short
/// to say anything.
pub fn passage_of(text: &str) -> Option<String> {
    let plain = plain(readable_part(text));
    let mut words = plain.split_whitespace();
    words.nth(MIN_WORDS - 1)?;
    let mut out = String::with_capacity(plain.len().min(MAX_CHARS));
    let mut left = MAX_CHARS;
    for word in plain.split_whitespace() {
        let length = word.chars().count() + 1;
        if length > left {
            break;
        }
        left -= length;
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    (!out.is_empty()).then_some(out)
}

/// The part of a text that is read for a passage.
pub fn readable_part(text: &str) -> &str {
    let end = (0..=MAX_READ.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// A text without citations and addresses of links.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['(', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some((words, after)) = link(from) {
            out.push_str(words);
            rest = after;
        } else if let Some(after) = after_citation(from) {
            rest = after;
        } else {
            let (bracket, after) = from.split_at(1);
            out.push_str(bracket);
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// The words of a link at the start of a text, and what follows it.
fn link(text: &str) -> Option<(&str, &str)> {
    let (words, after) = text.strip_prefix('[')?.split_once(']')?;
    let (_, after) = after.strip_prefix('(')?.split_once(')')?;
    Some((words, after))
}

/// What follows a citation at the start of a text.
fn after_citation(text: &str) -> Option<&str> {
    let (_, after) = text.strip_prefix(CITATION)?.split_once(')')?;
    Some(after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn where_misp_states_a_relationship_is_no_passage() {
        let place = "MISP object reference a16f of file 7c0e";
        for (proof, written) in [
            (place.to_owned(), ""),
            ("MISP galaxy cluster on attribute 7c0e".to_owned(), ""),
            ("MISP attribute 7c0e".to_owned(), ""),
            (format!("{place}: seen at night: twice"), "seen at night: twice"),
            ("Sandworm used it: often".to_owned(), "Sandworm used it: often"),
        ] {
            assert_eq!(written_in(&proof), written);
        }
    }

    #[test]
    fn citations_and_addresses_are_left_out() {
        for (text, plain) in [
            (
                "[Sandworm](https://attack.mitre.org/groups/G0034) wiped\nthe  disks (of servers).(Citation: Report 2016)",
                Some("Sandworm wiped the disks (of servers)."),
            ),
            ("uses a [bracket for this", Some("uses a [bracket for this")),
            (
                "(Citation: never closed, four words",
                Some("(Citation: never closed, four words"),
            ),
            ("only three words", None),
            ("(Citation: A)(Citation: B c d e f)", None),
            ("", None),
        ] {
            assert_eq!(passage_of(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_words() {
        let cut = passage_of(&"grüße ".repeat(1000)).unwrap();
        assert!(cut.chars().count() <= MAX_CHARS && cut.ends_with("grüße"));
        assert!(cut.chars().count() > MAX_CHARS - 10);
        assert_eq!(passage_of(&format!("{} a b c d", "x".repeat(3000))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[\\PC()\\[\\] ]{0,120}") {
            if let Some(passage) = passage_of(&text) {
                prop_assert!(passage.split_whitespace().count() >= 1);
                prop_assert!(passage.chars().count() <= MAX_CHARS);
            }
        }
    }
}
