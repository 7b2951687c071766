//! Passages: texts about nodes, such as the example of a procedure on a relationship.

/// Longest passage, in characters.
const MAX_CHARS: usize = 2000;
/// Bytes of a text that are read where one passage is enough.
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
/// to say anything. Of a long text it is the beginning.
pub fn passage_of(text: &str) -> Option<String> {
    passages_of(readable_part(text)).into_iter().next()
}

/// The passages of a text, one after the other: a long one is divided, so that what stands late in it is found as well as
/// what stands early. Words longer than a passage are left out. None if the text is too short to say anything.
pub fn passages_of(text: &str) -> Vec<String> {
    let plain = plain(text);
    let mut passages: Vec<String> = Vec::new();
    if plain.split_whitespace().nth(MIN_WORDS - 1).is_none() {
        return passages;
    }
    // Characters that the last passage has room for.
    let mut left = 0;
    for word in plain.split_whitespace() {
        let length = word.chars().count() + 1;
        if length > MAX_CHARS {
            continue;
        }
        match passages.last_mut() {
            Some(last) if length <= left => {
                last.push(' ');
                last.push_str(word);
            }
            _ => {
                passages.push(word.to_owned());
                left = MAX_CHARS;
            }
        }
        left -= length;
    }
    passages
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
    let mut closing = Closing {
        words: Mark::of(text, ']'),
        address: Mark::of(text, ')'),
        citation: Mark::of(text, ')'),
    };
    let (mut copied, mut read) = (0, 0);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    while let Some(at) = text
        .get(read..)
        .and_then(|rest| rest.find(['(', '[']))
        .map(|at| read + at)
    {
        read = at + 1;
        let (kept, after) = if let Some((end, after)) = closing.link(text, at) {
            (part(at + 1, end), after)
        } else if let Some(after) = closing.citation(text, at) {
            ("", after)
        } else {
            continue;
        };
        out.push_str(part(copied, at));
        out.push_str(kept);
        (copied, read) = (after, after);
    }
    out.push_str(part(copied, text.len()));
    out
}

/// The closing brackets of a text, each looked for once.
struct Closing<'t> {
    words: Mark<'t>,
    address: Mark<'t>,
    citation: Mark<'t>,
}

impl Closing<'_> {
    /// Where the words of a link end that begins here, and where the link does.
    fn link(&mut self, text: &str, at: usize) -> Option<(usize, usize)> {
        text.get(at..)?.strip_prefix('[')?;
        let end = self.words.next(at)?;
        text.get(end..)?.strip_prefix("](")?;
        Some((end, self.address.next(end)? + 1))
    }

    /// Where a citation ends that begins here.
    fn citation(&mut self, text: &str, at: usize) -> Option<usize> {
        text.get(at..)?.strip_prefix(CITATION)?;
        Some(self.citation.next(at)? + 1)
    }
}

/// The places of a mark in a text, asked for from the beginning on.
struct Mark<'t> {
    text: &'t str,
    mark: char,
    /// The first one behind what was asked for last.
    found: Option<usize>,
}

impl<'t> Mark<'t> {
    fn of(text: &'t str, mark: char) -> Self {
        Self {
            text,
            mark,
            found: text.find(mark),
        }
    }

    /// The first one from here on.
    fn next(&mut self, from: usize) -> Option<usize> {
        if self.found? < from {
            self.found = self
                .text
                .get(from..)
                .and_then(|rest| rest.find(self.mark))
                .map(|at| from + at);
        }
        self.found
    }
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
            (
                "one [two (Citation: A) three four](five",
                Some("one [two three four](five"),
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
        let blob = "x".repeat(3000);
        assert_eq!(passage_of(&format!("{blob} a b c d")).as_deref(), Some("a b c d"));
    }

    #[test]
    fn every_word_of_a_long_text_stands_in_one_of_its_passages() {
        let word = |number: usize| format!("word{number}");
        let text: Vec<String> = (0..5_000).map(word).collect();
        let passages = passages_of(&text.join(" "));
        assert!(passages.len() > 20);
        assert!(
            passages
                .iter()
                .all(|passage| passage.chars().count() <= MAX_CHARS)
        );
        assert_eq!(passages.join(" "), text.join(" "));
    }

    #[test]
    fn brackets_are_read_in_linear_time() {
        for unit in ["[", "(", "[a](", "(Citation:", "[]", "[a](b)", "(Citation: a)"] {
            let text = unit.repeat(200_000);
            let since = std::time::Instant::now();
            passages_of(&text);
            assert!(since.elapsed().as_secs() < 10, "{unit}: {:?}", since.elapsed());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[\\PC()\\[\\] ]{0,120}") {
            for passage in passages_of(&text) {
                prop_assert!(passage.split_whitespace().count() >= 1);
                prop_assert!(passage.chars().count() <= MAX_CHARS);
            }
            prop_assert_eq!(passages_of(&text).into_iter().next(), passage_of(&text));
        }
    }
}
