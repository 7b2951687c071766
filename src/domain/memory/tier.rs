//! How far a note can be relied on, by where it comes from.

use crate::domain::node::wire_enum;

wire_enum! {
    /// The tier of a note, the best first.
    Tier, "a, b, c" {
        A = "a",
        B = "b",
        C = "c",
    }
}

/// Words of a source type that say a person entered the note.
const PEOPLE: [&str; 10] = [
    "manual",
    "analyst",
    "user",
    "human",
    "note",
    "person",
    "operator",
    "investigation",
    "incident",
    "interview",
];
/// Words that say it was taken from a report or a feed.
const PUBLISHED: [&str; 24] = [
    "report", "feed", "rss", "osint", "misp", "stix", "taxii", "news", "blog", "vendor", "url", "web",
    "document", "pdf", "article", "advisory", "bulletin", "cert", "email", "file", "paper", "api", "import",
    "crawler",
];

/// The tier of a source type; what says neither is unsourced.
pub fn tier_of(source_type: &str) -> Tier {
    let lower = source_type.to_lowercase();
    let has = |known: &[&str]| {
        lower
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| known.contains(&word) || known.contains(&word.trim_end_matches('s')))
    };
    if has(&PEOPLE) {
        Tier::A
    } else if has(&PUBLISHED) {
        Tier::B
    } else {
        Tier::C
    }
}

/// The confidence of a note that states none, from 0 to 1.
pub fn confidence_of(tier: Tier) -> f64 {
    match tier {
        Tier::A => 1.0,
        Tier::B => 0.8,
        Tier::C => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_decides() {
        for (source, tier) in [
            ("manual", Tier::A),
            ("Analyst-Notes", Tier::A),
            ("threat_report", Tier::B),
            ("RSS feed", Tier::B),
            ("misp", Tier::B),
            ("llm", Tier::C),
            ("synthesis", Tier::C),
            ("", Tier::C),
            ("unknown", Tier::C),
        ] {
            assert_eq!(tier_of(source), tier, "{source}");
        }
        assert!(
            confidence_of(Tier::A) > confidence_of(Tier::B)
                && confidence_of(Tier::B) > confidence_of(Tier::C)
        );
    }
}
