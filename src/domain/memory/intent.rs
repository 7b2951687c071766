//! What kind of answer a question wants, by rules. It decides how much the graph and recency count.

use crate::domain::node::wire_enum;

wire_enum! {
    /// The intent of a question.
    Intent, "factual, temporal, relational, causal, exploratory" {
        Factual = "factual",
        Temporal = "temporal",
        Relational = "relational",
        Causal = "causal",
        Exploratory = "exploratory",
    }
}

/// Phrases that ask for reasons and effects.
const CAUSAL: [&str; 15] = [
    "why",
    "because",
    "cause",
    "caused",
    "causes",
    "reason",
    "reasons",
    "led to",
    "lead to",
    "leads to",
    "result of",
    "resulted in",
    "impact of",
    "consequence",
    "root cause",
];
/// Phrases that ask for an order in time, or for what is new.
const TEMPORAL: [&str; 32] = [
    "when",
    "since",
    "latest",
    "newest",
    "recent",
    "recently",
    "timeline",
    "before",
    "after",
    "until",
    "during",
    "last week",
    "last month",
    "last year",
    "last days",
    "this week",
    "this month",
    "this year",
    "today",
    "yesterday",
    "first seen",
    "last seen",
    "history",
    "chronology",
    "how long",
    "so far",
    "currently",
    "nowadays",
    "new",
    "last 24",
    "past",
    "evolved",
];
/// Phrases that ask how things are connected.
const RELATIONAL: [&str; 35] = [
    "related",
    "relate",
    "relation",
    "relationship",
    "relationships",
    "linked",
    "link",
    "links",
    "connected",
    "connection",
    "connections",
    "between",
    "attributed",
    "attribution",
    "associated",
    "behind",
    "uses",
    "used by",
    "use",
    "using",
    "targets",
    "targeted",
    "targeted by",
    "exploits",
    "exploited by",
    "belongs to",
    "works with",
    "who uses",
    "which tools",
    "what tools",
    "which malware",
    "which actors",
    "overlap",
    "share",
    "communicates",
];
/// Phrases that ask for everything there is.
const EXPLORATORY: [&str; 11] = [
    "overview",
    "tell me about",
    "everything",
    "summarize",
    "summarise",
    "summary",
    "describe",
    "explain",
    "landscape",
    "explore",
    "what do we know",
];
/// Beginnings of questions for one fact.
const FACTUAL: [&str; 14] = [
    "what is", "what was", "what are", "what's", "which", "who is", "who was", "who are", "is", "does",
    "did", "how many", "where", "are",
];

/// The intent of a question. Causal beats temporal beats exploratory beats relational beats factual; whatever fits
/// nothing, and lists of keywords, are exploratory, and a question that is nothing but an identifier is factual.
pub fn intent_of(query: &str) -> Intent {
    let text = padded(query);
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")));
    let starts = |phrases: &[&str]| {
        phrases
            .iter()
            .any(|phrase| text.starts_with(&format!(" {phrase} ")))
    };
    if has(&CAUSAL) {
        Intent::Causal
    } else if has(&TEMPORAL) || has_date(&text) {
        Intent::Temporal
    } else if has(&EXPLORATORY) {
        Intent::Exploratory
    } else if has(&RELATIONAL) {
        Intent::Relational
    } else if starts(&FACTUAL) || is_identifier(query) {
        Intent::Factual
    } else {
        Intent::Exploratory
    }
}

/// Lower-case words, each between single blanks.
fn padded(query: &str) -> String {
    let mut text = String::from(" ");
    for word in query.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '\''))) {
        if !word.is_empty() {
            text.push_str(&word.to_lowercase());
            text.push(' ');
        }
    }
    text
}

const MONTHS: [&str; 11] = [
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A year, an ISO date or a month; `2024` inside of `CVE-2024-3094` is none.
fn has_date(text: &str) -> bool {
    text.split(' ').any(|word| {
        let year = word.get(..4).is_some_and(|year| {
            year.bytes().all(|b| b.is_ascii_digit()) && (year.starts_with("19") || year.starts_with("20"))
        });
        MONTHS.contains(&word) || (year && (word.len() == 4 || word.as_bytes().get(4) == Some(&b'-')))
    })
}

/// One word with digits or dots in it: a CVE, an address, a hash.
fn is_identifier(query: &str) -> bool {
    let mut words = query.split_whitespace();
    let (Some(word), None) = (words.next(), words.next()) else {
        return false;
    };
    word.contains(|c: char| c.is_ascii_digit()) || (word.contains('.') && word.len() > 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analysts_questions_have_the_expected_intent() {
        for (intent, questions) in [
            (
                Intent::Factual,
                &[
                    "What is Industroyer?",
                    "Which CVE is in xz?",
                    "CVE-2024-3094",
                    "203.0.113.77",
                    "evil.example.com",
                    "Who is Sandworm?",
                    "Is 10.0.0.1 malicious?",
                    "how many hosts were hit",
                    "d41d8cd98f00b204e9800998ecf8427e",
                    "Where is the C2 hosted?",
                ][..],
            ),
            (
                Intent::Temporal,
                &[
                    "When was NotPetya first seen?",
                    "latest activity of APT28",
                    "What happened since March?",
                    "timeline of the intrusion",
                    "recent ransomware incidents",
                    "what changed after the patch",
                    "incidents in 2024",
                    "events on 2024-06-01",
                    "anything new about Volt Typhoon",
                    "what did they do last week",
                ],
            ),
            (
                Intent::Relational,
                &[
                    "What tools does APT28 use?",
                    "Which malware is linked to Sandworm?",
                    "who uses Cobalt Strike",
                    "relationship between Turla and Snake",
                    "Is FIN7 connected to Carbanak?",
                    "actors associated with Mimikatz",
                    "who is behind Industroyer",
                    "overlap of APT29 and Nobelium",
                    "malware used by Lazarus",
                    "which sectors are targeted by FIN7",
                ],
            ),
            (
                Intent::Causal,
                &[
                    "Why did the attack succeed?",
                    "What caused the outage?",
                    "what led to the breach",
                    "impact of the Colonial Pipeline incident",
                    "root cause of the compromise",
                    "reason for the attribution",
                ],
            ),
            (
                Intent::Exploratory,
                &[
                    "Tell me about APT28",
                    "overview of ransomware",
                    "phishing ministry",
                    "x",
                    "everything on Turla",
                    "summary of the campaign",
                    "credential dumping lateral movement",
                    "",
                    "what do we know about Snake",
                    "energy sector threat landscape",
                ],
            ),
        ] {
            for question in questions {
                assert_eq!(intent_of(question), intent, "{question}");
            }
        }
    }
}
