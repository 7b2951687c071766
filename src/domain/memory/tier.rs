//! Trust tier of a note, by the kind of its source.
//!
//! The caller states the kind, and it is not verified. The text is not examined.

use crate::domain::node::wire_enum;

wire_enum! {
    /// Trust in a note, best first: a is entered by a person, b is from a report or feed, c is
    /// model-written or unsourced.
    Tier, "a, b, c" {
        A = "a",
        B = "b",
        C = "c",
    }
}

const OF_MODELS: &str = "\
    agent agents ai aigenerated assistant auto automated bot chatgpt claude completion copilot derived \
    gemini generated gpt guess hypothesis inferred inference llama llm ml mistral model rumor rumour \
    summary synthesis synthesized synthetic unknown unsourced unverified";
const OF_REPORTS: &str = "\
    advisory alert api article blog bulletin cert csv cve database doc document documents docx edr feed \
    feeds file html intel isac json link log logs malpedia markdown misp mitre news nvd opencti osint otx \
    paper pdf post publication report reports rss sandbox scan sensor siem sigma site stix stix2 taxii \
    telemetry threatfeed ticket twitter url vendor virustotal web webpage website whitepaper wiki writeup \
    yara";
const OF_PEOPLE: &str = "\
    analyst analysts call chat colleague conversation entry expert human interview investigator manual \
    meeting memo note notes operator person researcher typed user";

/// The tier of a `source_type`, in any case; it may have several words (`analyst_report`).
///
/// The least trusted word decides: `llm_report` is model-written, `analyst_report` is a report. An unknown word
/// counts as no source, so it yields tier c.
pub fn tier_of(source_type: &str) -> Tier {
    let lower = source_type.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let lists = |list: &str, word: &str| list.split(' ').any(|listed| listed == word);
    let any = |list: &str| words.iter().any(|word| lists(list, word));
    // Matches gpt4, llama3, claude35.
    let numbered = |word: &&str| lists(OF_MODELS, word.trim_end_matches(|c: char| c.is_ascii_digit()));
    if any(OF_MODELS) || words.iter().any(numbered) {
        Tier::C
    } else if any(OF_REPORTS) {
        Tier::B
    } else if any(OF_PEOPLE) {
        Tier::A
    } else {
        Tier::C
    }
}

/// Default confidence of a note, 0 to 1. Also the upper bound for an answer based on such notes.
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
    fn source_types_have_tiers() {
        for (tier, source_types) in [
            (
                Tier::A,
                &[
                    "manual",
                    "Manual",
                    " analyst ",
                    "user",
                    "human",
                    "note",
                    "manual_text",
                    "user-note",
                    "chat",
                ][..],
            ),
            (
                Tier::B,
                &[
                    "report",
                    "feed",
                    "RSS",
                    "osint",
                    "misp",
                    "stix",
                    "taxii",
                    "news",
                    "blog",
                    "vendor",
                    "url",
                    "web",
                    "document",
                    "pdf",
                    "analyst_report",
                    "osint_feed",
                    "incident_writeup",
                    "MISP feed",
                    "user report",
                ],
            ),
            (
                Tier::C,
                &[
                    "llm",
                    "model",
                    "synthesis",
                    "generated",
                    "ai",
                    "unknown",
                    "",
                    "   ",
                    "llm_report",
                    "AI-generated report",
                    "gpt-4",
                    "gpt4",
                    "llama3",
                    "mandiantish",
                    "???",
                    "2024",
                    "日本",
                ],
            ),
        ] {
            for source_type in source_types {
                assert_eq!(tier_of(source_type), tier, "{source_type:?}");
            }
        }
    }

    #[test]
    fn lists_are_disjoint_lower_case_words() {
        let lists = [OF_MODELS, OF_REPORTS, OF_PEOPLE];
        let all: Vec<&str> = lists.iter().flat_map(|list| list.split(' ')).collect();
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all.len());
        assert!(
            all.iter()
                .all(|word| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()))
        );
    }

    #[test]
    fn a_better_tier_is_smaller_and_surer() {
        assert!(Tier::A < Tier::B && Tier::B < Tier::C);
        assert!(
            Tier::ALL
                .windows(2)
                .all(|pair| confidence_of(pair[0]) > confidence_of(pair[1]))
        );
        assert_eq!(
            Tier::ALL.iter().map(|tier| tier.as_str()).collect::<String>(),
            "abc"
        );
    }
}
