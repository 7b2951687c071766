//! Turns a question into filters: the kind of thing asked for, and the names and identifiers.
//!
//! "malware used by Sandworm" asks for tools near any name of Sandworm; the remaining words are the text to search
//! for. Questions are typed carelessly, so names match in any case, unless they are ordinary words.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::domain::node::NodeType;

use super::Extractor;
use super::gazetteer::{Entry, Gazetteer, Mode, canonical_name};

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

/// Words that denote a node type.
const TYPE_WORDS: &[(&str, &[NodeType])] = &[
    ("technique", &[NodeType::Attck]),
    ("tactic", &[NodeType::Attck]),
    ("ttp", &[NodeType::Attck]),
    ("subtechnique", &[NodeType::Attck]),
    ("mitigation", &[NodeType::Attck]),
    ("attck", &[NodeType::Attck]),
    ("countermeasure", &[NodeType::Attck]),
    ("malware", &[NodeType::Tool]),
    ("tool", &[NodeType::Tool]),
    ("toolset", &[NodeType::Tool]),
    ("software", &[NodeType::Tool]),
    ("ransomware", &[NodeType::Tool]),
    ("backdoor", &[NodeType::Tool]),
    ("trojan", &[NodeType::Tool]),
    ("implant", &[NodeType::Tool]),
    ("wiper", &[NodeType::Tool]),
    ("actor", &[NodeType::Actor]),
    ("group", &[NodeType::Actor]),
    ("gang", &[NodeType::Actor]),
    ("apt", &[NodeType::Actor]),
    ("adversary", &[NodeType::Actor]),
    ("who", &[NodeType::Actor]),
    ("attacker", &[NodeType::Actor]),
    ("campaign", &[NodeType::Actor]),
    ("ioc", &[NodeType::Ioc]),
    ("indicator", &[NodeType::Ioc]),
    ("hash", &[NodeType::Ioc]),
    ("domain", &[NodeType::Ioc]),
    ("url", &[NodeType::Ioc]),
    ("ip", &[NodeType::Ioc]),
    ("cve", &[NodeType::Cve]),
    ("vulnerability", &[NodeType::Cve, NodeType::Vulnerability]),
    ("vuln", &[NodeType::Cve, NodeType::Vulnerability]),
    ("weakness", &[NodeType::Vulnerability]),
    ("report", &[NodeType::Osint]),
    ("article", &[NodeType::Osint]),
    ("news", &[NodeType::Osint]),
];

/// Words without meaning for a search.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "could",
    "did", "do", "does", "for", "from", "give", "had", "has", "have", "how", "i", "in", "into", "is", "it",
    "its", "known", "list", "me", "of", "on", "or", "our", "please", "s", "show", "tell", "that", "the",
    "their", "them", "there", "these", "they", "this", "those", "threat", "to", "us", "use", "used", "uses",
    "using", "was", "we", "were", "what", "when", "where", "which", "whose", "why", "will", "with", "would",
    "you",
];

/// Extracts the filters from a question.
pub fn question_filters(question: &str) -> QuestionFilters {
    let gazetteer = Gazetteer::shared();
    let mut filters = QuestionFilters::default();
    let words = words(question);
    let mut used = vec![false; words.len()];
    let mut entries: Vec<&Entry> = Vec::new();
    for hit in Extractor::shared().extract(&upper_identifiers(question, &words)) {
        let first = words.partition_point(|word| word.end <= hit.span.start);
        let behind = words.partition_point(|word| word.start < hit.span.end);
        if let Some(covered) = used.get_mut(first..behind) {
            covered.fill(true);
        }
        match gazetteer.resolve(&hit.value).filter(|_| hit.kind.is_name()) {
            Some(entry) => entries.push(entry),
            None if hit.kind.is_name() => filters.names.push(hit.value),
            None => filters.identifiers.push(hit.value),
        }
    }
    typed_names(question, &words, &mut used, &mut entries);
    let mut named = BTreeSet::new();
    for entry in entries
        .into_iter()
        .filter(|entry| named.insert(entry.name.as_str()))
    {
        filters.names.extend(entry.names().map(str::to_owned));
    }
    let mut rest = Vec::new();
    for (span, _) in words.into_iter().zip(used).filter(|(_, used)| !used) {
        let word = question.get(span).unwrap_or_default();
        let lower = word.to_lowercase();
        match node_types(&lower) {
            Some(types) => filters.node_types.extend(types),
            None if FUNCTION_WORDS.contains(&lower.as_str()) => {}
            None => rest.push(word),
        }
    }
    filters.text = rest.join(" ");
    once_each(&mut filters);
    filters
}

/// The question with identifiers such as `t0866` and `g0007` in upper case; its byte length is unchanged.
fn upper_identifiers(question: &str, words: &[Range<usize>]) -> String {
    let mut upper = question.to_owned();
    for span in words {
        let word = question.get(span.clone()).unwrap_or_default();
        let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let letters = word.len() - digits.len();
        let identifier =
            matches!(letters, 1 | 2) && digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit());
        if identifier && let Some(word) = upper.get_mut(span.clone()) {
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

fn node_types(word: &str) -> Option<&'static [NodeType]> {
    let plural_y = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let plural_es = word.strip_suffix("es");
    let plural_s = word.strip_suffix('s');
    let forms = [Some(word), plural_s, plural_es, plural_y.as_deref()];
    TYPE_WORDS
        .iter()
        .find(|(name, _)| forms.contains(&Some(name)))
        .map(|(_, types)| *types)
}

fn words(question: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut at = 0;
    for part in question.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_'))) {
        if !part.is_empty() {
            spans.push(at..at + part.len());
        }
        at += part.len();
        at += question
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
    }
    spans
}

/// Names in a case that would not count in running text: "lockbit", "conti".
fn typed_names<'g>(question: &str, words: &[Range<usize>], used: &mut [bool], entries: &mut Vec<&'g Entry>) {
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
            let text = question.get(first.start..last.end).unwrap_or_default();
            if text.len() > 3
                && let Some(entry) = gazetteer.resolve(text).filter(|e| is_distinct(e, text))
            {
                taken.fill(true);
                entries.push(entry);
            }
        }
    }
}

/// Whether this spelling of the entry's name is more than an ordinary word.
fn is_distinct(entry: &Entry, text: &str) -> bool {
    let wanted = canonical_name(text);
    entry
        .names()
        .zip(&entry.modes)
        .any(|(name, mode)| *mode != Mode::Context && canonical_name(name) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

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
