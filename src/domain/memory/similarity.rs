//! Whether two notes say the same: nearly the same words, and exactly the same facts.
//!
//! Two notes that differ in one address, number or "not" are two facts, however alike the rest is; so the numbers,
//! the indicators and the negations of both must agree before the words are compared.

use std::collections::BTreeSet;

use crate::domain::extraction::Extractor;

/// Words that turn a statement round.
const NEGATIONS: [&str; 16] = [
    "not",
    "no",
    "never",
    "none",
    "without",
    "neither",
    "nor",
    "cannot",
    "denied",
    "denies",
    "false",
    "unlikely",
    "refuted",
    "retracted",
    "unconfirmed",
    "stopped",
];

/// Whether the newer note may take the place of the older one: their words overlap by at least `min_overlap`
/// (0 to 1), and nothing that carries a fact differs.
pub fn near_duplicate(a: &str, b: &str, min_overlap: f64) -> bool {
    overlap(a, b) >= min_overlap && facts(a) == facts(b)
}

/// The share of distinct words that both texts have, of those that either has (Jaccard index).
pub fn overlap(a: &str, b: &str) -> f64 {
    let (a, b) = (words(a), words(b));
    let either = a.union(&b).count();
    if either == 0 {
        return 1.0;
    }
    a.intersection(&b).count() as f64 / either as f64
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// What must agree to the letter: indicators, names, numbers and negations, in lower case.
pub fn facts(text: &str) -> BTreeSet<String> {
    let hits = Extractor::shared().extract(text);
    let mut facts: BTreeSet<String> = hits.into_iter().map(|hit| hit.value.to_lowercase()).collect();
    for word in text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '\'' | '\u{2019}'))) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let negation =
            NEGATIONS.contains(&word.as_str()) || word.ends_with("n't") || word.ends_with("n\u{2019}t");
        if negation || word.contains(|c: char| c.is_ascii_digit()) {
            facts.insert(word);
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "APT28 sent phishing mails to ministries in March 2024 and used Mimikatz on 10.0.0.1.";

    #[test]
    fn another_wording_of_the_same_facts_is_a_near_duplicate() {
        assert!(near_duplicate(BASE, &BASE.replace("sent", "has sent"), 0.85));
        assert!(near_duplicate(BASE, &BASE.to_uppercase(), 0.85));
        assert!(near_duplicate(BASE, &BASE.replace("APT28", "Fancy Bear"), 0.5) || overlap(BASE, "x") < 0.5);
    }

    #[test]
    fn one_different_fact_makes_two_notes() {
        for other in [
            BASE.replace("10.0.0.1", "10.0.0.2"),
            BASE.replace("2024", "2025"),
            BASE.replace("used", "never used"),
            BASE.replace("APT28", "APT29"),
            BASE.replace("Mimikatz", "PsExec"),
        ] {
            assert!(!near_duplicate(BASE, &other, 0.5), "{other}");
        }
        assert!(!near_duplicate(
            "The host is vulnerable.",
            "The host isn't vulnerable.",
            0.5
        ));
    }

    #[test]
    fn shared_names_alone_are_nothing() {
        assert!(!near_duplicate(
            BASE,
            "APT28 has used Mimikatz for years on 10.0.0.1 in 2024.",
            0.85
        ));
        assert_eq!(overlap("", ""), 1.0);
        assert_eq!(overlap("a b", "c d"), 0.0);
    }
}
