//! Questions that are identifiers and nothing else: an address, a hash, a CVE, the id of a technique or of a STIX object.
//!
//! Whoever asks so wants to know whether the memory has that value. What merely resembles it is no answer.

use std::net::IpAddr;

use uuid::Uuid;

use crate::domain::extraction::{EntityKind, Extractor, Mention, refang};
use crate::domain::naming::indicator_of;

use super::lexicon::{List, node_types};
use super::words::Word;

/// Most identifiers that a question is read for; a text with more of them is a list.
const MAX_IDENTIFIERS: usize = 100;
/// Digits of the shortest part of a hash.
const MIN_HASH_PART: usize = 8;

/// An identifier that a question consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedIdentifier {
    /// As the question has it.
    pub text: String,
    /// `None` for ids and parts of hashes.
    pub kind: Option<EntityKind>,
    /// Its normal form.
    pub value: String,
}

impl AskedIdentifier {
    fn of_hit(hit: Mention, text: &str) -> Self {
        AskedIdentifier {
            text: hit.text(text).to_owned(),
            kind: Some(hit.kind),
            value: hit.value,
        }
    }

    /// The ways in which it may be stored: as it was asked, in its normal form, and as an address of the web with either
    /// scheme if it has none.
    pub fn spellings(&self) -> Vec<String> {
        let mut spellings = vec![self.value.clone(), self.text.clone()];
        if self.kind == Some(EntityKind::Url) && !self.value.contains("://") {
            spellings.extend(["http://", "https://"].map(|scheme| format!("{scheme}{}", self.value)));
        }
        spellings.dedup();
        spellings
    }
}

/// The identifiers that a question consists of, besides words that ask for nothing else; none if it says more.
pub(super) fn identifiers_of(text: &str, words: &[Word]) -> Vec<AskedIdentifier> {
    let mut found = Vec::new();
    let mut covered = vec![false; words.len()];
    for hit in Extractor::shared().extract(text) {
        if hit.kind.is_name() {
            return Vec::new();
        }
        for (word, covered) in words.iter().zip(&mut covered) {
            *covered |= word.span.start < hit.span.end && hit.span.start < word.span.end;
        }
        found.push(AskedIdentifier::of_hit(hit, text));
    }
    for (word, _) in words.iter().zip(covered).filter(|(_, covered)| !covered) {
        let written = text.get(word.span.clone()).unwrap_or_default();
        match identifier_by_form(written) {
            Some(identifier) => found.push(identifier),
            None if says_more(word) => return Vec::new(),
            None => {}
        }
    }
    found.truncate(MAX_IDENTIFIERS);
    found
}

/// Whether a word beside an identifier asks for more than what is known of it.
fn says_more(word: &Word) -> bool {
    let asks = word.is(List::Filler) || word.is(List::LookingUp);
    !asks && node_types(&word.text).is_none()
}

/// An identifier that the rules don't look for in a text, because there it could be something else.
fn identifier_by_form(word: &str) -> Option<AskedIdentifier> {
    let plain = refang(word);
    let is_stix_id = plain.split_once("--").is_some_and(|(kind, uuid)| {
        !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') && is_uuid(uuid)
    });
    if is_stix_id || is_uuid(&plain) || is_hash_part(&plain) {
        return Some(AskedIdentifier {
            text: word.to_owned(),
            kind: None,
            value: plain.to_lowercase(),
        });
    }
    // The ids of ATT&CK are typed in lower case, too.
    let upper = plain.to_uppercase();
    if let [hit] = Extractor::shared().extract(&upper).as_slice()
        && hit.span == (0..upper.len())
        && hit.kind.is_identifier()
    {
        return Some(AskedIdentifier {
            text: word.to_owned(),
            kind: Some(hit.kind),
            value: hit.value.clone(),
        });
    }
    if is_attack_id(&upper) {
        return Some(AskedIdentifier {
            text: word.to_owned(),
            kind: None,
            value: upper,
        });
    }
    let indicator = indicator_of(word);
    let is_value = plain.parse::<IpAddr>().is_ok() || indicator.kind.is_some();
    is_value.then(|| AskedIdentifier {
        text: word.to_owned(),
        kind: indicator.kind,
        value: indicator.value,
    })
}

/// Whether a word has the form of an ATT&CK id, also of one that was never assigned: `T9999.001`, `G0007`, `TA0001`.
fn is_attack_id(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.get(..word.len() - digits.len()).unwrap_or_default();
    let (number, part) = match digits.split_once('.') {
        Some((number, part)) if letters == "T" => (number, Some(part)),
        Some(_) => return false,
        None => (digits, None),
    };
    let is_number = |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    ["T", "TA", "G", "S", "M", "C", "DS", "DET", "AN"].contains(&letters)
        && is_number(number, 4)
        && part.is_none_or(|part| is_number(part, 3))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Whether a word is a part of a hash: hexadecimal digits, some of them letters and some not.
fn is_hash_part(word: &str) -> bool {
    word.len() >= MIN_HASH_PART
        && word.bytes().all(|b| b.is_ascii_hexdigit())
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use crate::domain::question::Question;

    fn values(question: &str) -> Vec<String> {
        let question = Question::read(question, DateTime::<Utc>::UNIX_EPOCH);
        question
            .identifiers()
            .iter()
            .map(|identifier| identifier.value.clone())
            .collect()
    }

    const HASH: &str = "ed01ebfbc9eb5bbea545af4d01bf5f1071661840480439c6e5babe8e080e41aa";

    #[test]
    fn an_identifier_of_any_kind_is_one_however_it_is_spelled() {
        for (question, value) in [
            ("203.0.113.250", "203.0.113.250"),
            (" 203[.]0[.]113[.]250 ", "203.0.113.250"),
            ("10.0.0.1", "10.0.0.1"),
            ("\"203.0.113.250\"", "203.0.113.250"),
            ("2001:DB8::77", "2001:db8::77"),
            ("198.51.100.0/24", "198.51.100.0/24"),
            ("unknown.other-case.com", "unknown.other-case.com"),
            (
                "hxxp://unknown[.]other-case[.]com/x",
                "http://unknown.other-case.com/x",
            ),
            ("Nobody@Other-Case.com", "nobody@other-case.com"),
            (HASH, HASH),
            ("ED01EBFBC9EB5BBEA545", "ed01ebfbc9eb5bbea545"),
            ("CVE-2031-77777", "CVE-2031-77777"),
            ("cve 2031 77777", "CVE-2031-77777"),
            ("t9998.001", "T9998.001"),
            ("T1059", "T1059"),
            ("g0007", "G0007"),
            ("AS64500", "AS64500"),
            (
                "indicator--33FE3B22-0201-47CF-85D0-97C02164528D",
                "indicator--33fe3b22-0201-47cf-85d0-97c02164528d",
            ),
            (
                "33fe3b22-0201-47cf-85d0-97c02164528d",
                "33fe3b22-0201-47cf-85d0-97c02164528d",
            ),
            ("what do we know about 203.0.113.250?", "203.0.113.250"),
            ("Is evil.other-case.com malicious?", "evil.other-case.com"),
            ("IP address 203.0.113.250", "203.0.113.250"),
        ] {
            assert_eq!(values(question), [value], "{question}");
        }
        assert_eq!(values("203.0.113.7, CVE-2031-77777").len(), 2);
        assert_eq!(values("dropper.exe").len(), 1);
        assert_eq!(values(r"C:\\Windows\\Temp\\dropper.exe").len(), 1);
        assert_eq!(values(r"HKLM\\Software\\Brindle").len(), 1);
    }

    #[test]
    fn a_question_that_says_more_is_no_identifier() {
        for question in [
            "",
            "203.0.113.250 served the loader of Marrowgate",
            "malware that beacons to 203.0.113.250 over DNS",
            "APT28",
            "qzxv wvutk",
            "phishing with T1566 against banks",
            "deadbeef",
            "20240315",
            "defaced",
            "?",
        ] {
            assert_eq!(values(question), Vec::<String>::new(), "{question}");
        }
    }

    #[test]
    fn an_address_without_its_scheme_is_looked_for_with_either() {
        let question = Question::read("evil.other-case.com/a.php", DateTime::<Utc>::UNIX_EPOCH);
        let spellings = question.identifiers()[0].spellings();
        assert!(
            spellings
                .iter()
                .any(|one| one == "http://evil.other-case.com/a.php")
        );
    }
}
