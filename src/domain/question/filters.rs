//! Turns a question into filters: the kind of thing asked for, and the names and identifiers.
//!
//! "malware used by Sandworm" asks for tools near any name of Sandworm; the remaining words are the text to search
//! for. Questions are typed carelessly, so names match in any case, unless they are ordinary words.

use std::collections::BTreeSet;

use super::lexicon::{List, node_types};
use super::words::Word;
use crate::domain::extraction::{Entry, Extractor, Gazetteer, canonical_name};
use crate::domain::node::NodeType;

/// The filters of a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuestionFilters {
    pub node_types: Vec<NodeType>,
    /// Each name in the question, with all its aliases.
    pub names: Vec<String>,
    /// Canonical identifiers and indicators.
    pub identifiers: Vec<String>,
    /// The remaining words, without function words.
    pub text: String,
}

/// Extracts the filters from a question.
pub(super) fn filters_of(question: &str, words: &[Word]) -> QuestionFilters {
    let gazetteer = Gazetteer::shared();
    let mut filters = QuestionFilters::default();
    let mut used = vec![false; words.len()];
    let mut entries: Vec<&Entry> = Vec::new();
    for hit in Extractor::shared().extract(&upper_identifiers(question, words)) {
        let first = words.partition_point(|word| word.span.end <= hit.span.start);
        let behind = words.partition_point(|word| word.span.start < hit.span.end);
        if let Some(covered) = used.get_mut(first..behind) {
            covered.fill(true);
        }
        match gazetteer.resolve(&hit.value).filter(|_| hit.kind.is_name()) {
            Some(entry) => entries.push(entry),
            None if hit.kind.is_name() => filters.names.push(hit.value),
            None => filters.identifiers.push(hit.value),
        }
    }
    typed_names(question, words, &mut used, &mut entries);
    let mut named = BTreeSet::new();
    for entry in entries
        .into_iter()
        .filter(|entry| named.insert(entry.name.as_str()))
    {
        filters.names.extend(entry.names().map(str::to_owned));
    }
    let mut rest = Vec::new();
    for (word, _) in words.iter().zip(used).filter(|(_, used)| !used) {
        match node_types(&word.text) {
            Some(types) => filters.node_types.extend(types),
            None if word.is(List::Filler) => {}
            None => rest.push(question.get(word.span.clone()).unwrap_or_default()),
        }
    }
    filters.text = rest.join(" ");
    once_each(&mut filters);
    filters
}

/// The question with identifiers such as `t0866` and `g0007` in upper case; its byte length is unchanged.
fn upper_identifiers(question: &str, words: &[Word]) -> String {
    let mut upper = question.to_owned();
    for span in words.iter().map(|word| word.span.clone()) {
        let word = question.get(span.clone()).unwrap_or_default();
        let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let letters = word.len() - digits.len();
        let identifier =
            matches!(letters, 1 | 2) && digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit());
        if identifier && let Some(word) = upper.get_mut(span) {
            word.make_ascii_uppercase();
        }
    }
    upper
}

fn once_each(filters: &mut QuestionFilters) {
    let types: BTreeSet<NodeType> = filters.node_types.drain(..).collect();
    filters.node_types.extend(types);
    let mut seen = BTreeSet::new();
    filters.names.retain(|name| seen.insert(canonical_name(name)));
    let mut seen = BTreeSet::new();
    filters.identifiers.retain(|id| seen.insert(id.clone()));
}

/// Names in a case that would not count in running text: "lockbit", "conti".
fn typed_names<'g>(question: &str, words: &[Word], used: &mut [bool], entries: &mut Vec<&'g Entry>) {
    let gazetteer: &'g Gazetteer = Gazetteer::shared();
    for count in (1..=3usize).rev() {
        for (at, group) in words.windows(count).enumerate() {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            let Some(taken) = used
                .get_mut(at..at + count)
                .filter(|taken| !taken.contains(&true))
            else {
                continue;
            };
            let text = question.get(first.span.start..last.span.end).unwrap_or_default();
            if text.len() > 3
                && let Some(entry) = gazetteer.resolve(text).filter(|entry| entry.is_distinct(text))
            {
                taken.fill(true);
                entries.push(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn question_filters(question: &str) -> QuestionFilters {
        filters_of(question, &words(question))
    }

    #[test]
    fn a_question_becomes_types_names_identifiers_and_text() {
        let filters = question_filters("which technique abuses remote services for lateral movement?");
        assert_eq!(filters.node_types, [NodeType::Attck]);
        assert_eq!(filters.text, "abuses remote services lateral movement");

        let filters = question_filters("malware used by Sandworm");
        assert_eq!(filters.node_types, [NodeType::Tool]);
        assert!(filters.names.iter().any(|name| name == "Voodoo Bear"));
        assert_eq!(filters.text, "");

        for question in ["T0866", "t0866"] {
            let filters = question_filters(question);
            assert_eq!(filters.identifiers, ["T0866"]);
            assert!(filters.node_types.is_empty() && filters.names.is_empty());
        }

        let filters = question_filters("vulnerabilities exploited by fancy bear, e.g. cve-2023-23397");
        assert_eq!(filters.node_types, [NodeType::Cve, NodeType::Vulnerability]);
        assert_eq!(filters.identifiers, ["CVE-2023-23397"]);
        assert!(filters.names.iter().any(|name| name == "APT28"));
    }

    #[test]
    fn carelessly_typed_names_count_but_ordinary_words_do_not() {
        assert!(
            question_filters("what does lockbit do")
                .names
                .iter()
                .any(|name| name == "LockBit")
        );
        assert!(
            question_filters("how do they play with registry hive keys")
                .names
                .is_empty()
        );
        assert_eq!(question_filters(""), QuestionFilters::default());
    }
}
