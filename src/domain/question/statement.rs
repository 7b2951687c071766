//! Tells statements from questions: a sentence that states something is no question about the names in it.

use super::lexicon::{OPENINGS, PREPOSITIONS};
use super::words::{self, MAX_PLAIN, Word};

/// Words of the shortest statement: less is hardly more than a name.
const SHORTEST: usize = 5;
const ASKING: &[&str] = &[
    "which", "what", "who", "whom", "whose", "how", "why", "when", "where",
];
/// Verbs by which reports state what somebody does. Those that are nouns too, such as "attacks", are left out.
const STATES: &[&str] = &[
    "has",
    "have",
    "had",
    "can",
    "could",
    "may",
    "will",
    "is",
    "was",
    "were",
    "are",
    "used",
    "uses",
    "utilized",
    "utilizes",
    "utilised",
    "utilises",
    "employed",
    "employs",
    "leveraged",
    "leverages",
    "exploited",
    "abused",
    "abuses",
    "targeted",
    "deployed",
    "deploys",
    "delivered",
    "delivers",
    "dropped",
    "installed",
    "installs",
    "executed",
    "executes",
    "downloaded",
    "communicated",
    "communicates",
    "connected",
    "connects",
    "collected",
    "collects",
    "gathered",
    "gathers",
    "stole",
    "steals",
    "sent",
    "sends",
    "gained",
    "gains",
    "modified",
    "modifies",
    "created",
    "creates",
    "encrypted",
    "encrypts",
    "wiped",
    "wipes",
    "compromised",
    "compromises",
];

/// Whether a text states something rather than asks for it or merely lists words. What such a text says then weighs more
/// than the names in it.
pub fn is_statement(text: &str) -> bool {
    let words = words::words(text);
    if words.len() < SHORTEST || text.trim_end().ends_with('?') {
        return false;
    }
    if words.len() > MAX_PLAIN {
        return !words::asks(text, &words);
    }
    !asks_shortly(&words) && (text.trim_end().ends_with('.') || has_stating_verb(&words))
}

/// Whether a short text has a word that asks, or begins with the kind of things that it asks for.
fn asks_shortly(words: &[Word]) -> bool {
    let is_one_of = |at: usize, list: &[&str]| {
        let word = words.get(at);
        word.is_some_and(|word| list.contains(&word.text.as_str()))
    };
    let opens = is_one_of(0, OPENINGS) || (is_one_of(0, PREPOSITIONS) && is_one_of(1, OPENINGS));
    let begins = |at: usize| words::mention_at(words, at).is_some_and(|mention| mention.many);
    let is_filtered = is_one_of(0, &["all", "any", "known", "other"]);
    opens || begins(usize::from(is_filtered)) || (0..words.len()).any(|at| is_one_of(at, ASKING))
}

/// Whether a verb stands between a subject and what is said of it; "used by" only describes the word before.
fn has_stating_verb(words: &[Word]) -> bool {
    let pairs = words.get(1..).unwrap_or_default().windows(2);
    let mut pairs = pairs.filter_map(|pair| match pair {
        [verb, next] => Some((verb.text.as_str(), next.text.as_str())),
        _ => None,
    });
    pairs.any(|(verb, next)| STATES.contains(&verb) && next != "by")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_told_from_questions_and_names() {
        for text in [
            "OilRig communicated with its command and control using HTTP requests.",
            "TEMP.Veles targeted several ICS vendors and manufacturers",
            "Flame has built-in modules to gather information from compromised computers.",
            "During the 2015 attack on the power grid, the Sandworm Team opened breakers through the operators' own \
             workstations and then wiped them.",
        ] {
            assert!(is_statement(text), "{text}");
        }
        for text in [
            "Sandworm Team",
            "Hijack Execution Flow: Services File Permissions Weakness",
            "Sandworm power grid attack in Ukraine",
            "malware used by the Sandworm Team in Ukraine",
            "techniques that Sandworm uses against power grids",
            "Which malware has Sandworm used against power grids",
            "Sandworm has used which malware against power grids",
            "Tell me everything about the attacks of the Sandworm Team on the power grid in Ukraine",
            "We saw a host talk to 203.0.113.7 over port 102 all night long. Which group is known for that?",
        ] {
            assert!(!is_statement(text), "{text}");
        }
    }
}
