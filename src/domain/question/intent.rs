//! Classifies a question by its words into the kind of answer it wants.
//!
//! The rules apply in this order; the first match decides:
//! 1. causal: why, because, cause, led to, result of, impact of, …
//! 2. overview words (overview, tell me about, everything about, summarise, …): exploratory, unless a time is asked for.
//! 3. temporal: when, since, latest, recent, timeline, before, after, a date or a year (not of a product).
//! 4. relational: related, linked, between, attributed, used by, …, or a question whose verb relates two things.
//! 5. factual: what is, who is, which CVE, how many, a yes-or-no question, the look-up of an identifier.
//! 6. exploratory: everything else, such as a short list of keywords.
//!
//! English only. A question in another language is exploratory, unless it is an identifier or contains a date.

use super::lexicon::{List, wordings};
use super::words::Word;
use crate::domain::extraction::Extractor;
use crate::domain::node::wire_enum;

wire_enum! {
    /// The kind of answer that a question wants.
    Intent, "factual, temporal, relational, causal, exploratory" {
        Factual = "factual",
        Temporal = "temporal",
        Relational = "relational",
        Causal = "causal",
        Exploratory = "exploratory",
    }
}

/// What a phrase tells of the answer that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    Causal,
    Overview,
    Temporal,
    Relational,
    Factual,
    /// Factual at the beginning of a question.
    FactualStart,
}

impl Wording {
    /// The one of the phrases in this list.
    pub(super) fn named(list: &str) -> Option<Self> {
        Some(match list {
            "causal" => Self::Causal,
            "overview" => Self::Overview,
            "temporal" => Self::Temporal,
            "relational" => Self::Relational,
            "factual" => Self::Factual,
            "factual starts" => Self::FactualStart,
            _ => return None,
        })
    }
}

/// Maximum number of words read; anything longer is a text, not a question.
const MAX_WORDS: usize = 300;
/// Maximum number of other words in a question that looks up an identifier.
const WORDS_OF_A_LOOKUP: usize = 3;

/// Classifies a question by the rules in the module documentation. Deterministic.
pub(super) fn intent_of(query: &str, words: &[Word]) -> Intent {
    let question = QuestionWords::of(query, words.get(..MAX_WORDS).unwrap_or(words));
    let told = question.wordings();
    if told.contains(&Wording::Causal) {
        Intent::Causal
    } else if told.contains(&Wording::Temporal) || question.asks_for_time() {
        Intent::Temporal
    } else if told.contains(&Wording::Overview) {
        Intent::Exploratory
    } else if told.contains(&Wording::Relational) || question.joins_things() {
        Intent::Relational
    } else if question.is_factual(&told) || question.is_lookup(query) {
        Intent::Factual
    } else {
        Intent::Exploratory
    }
}

/// The words of a question as phrases have them: "what's", "doesn't".
struct QuestionWords<'w> {
    words: &'w [Word],
    texts: Vec<String>,
}

impl<'w> QuestionWords<'w> {
    fn of(query: &str, words: &'w [Word]) -> Self {
        let is_short = |word: &Word| {
            let rest = query.get(word.span.end..).unwrap_or_default();
            rest.starts_with("'s") || rest.starts_with("’s")
        };
        let text = |word: &Word| {
            let end = if is_short(word) { "'s" } else { "" };
            format!("{}{end}", word.text)
        };
        Self {
            words,
            texts: words.iter().map(text).collect(),
        }
    }

    /// What all phrases tell, those at the beginning first.
    fn wordings(&self) -> Vec<Wording> {
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        let at = |at: usize| {
            let told = wordings(texts.get(at..).unwrap_or_default());
            told.filter(move |told| at == 0 || *told != Wording::FactualStart)
        };
        (0..texts.len()).flat_map(at).collect()
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    fn asks_for_time(&self) -> bool {
        self.asks_when() || (0..self.words.len()).any(|at| self.is_time(at))
    }

    /// Whether `when` at one end of the question asks for a time; elsewhere it introduces a condition.
    fn asks_when(&self) -> bool {
        let early = self.words.iter().take(2).any(|word| word.text == "when");
        early || self.words.last().is_some_and(|word| word.text == "when")
    }

    fn is_time(&self, at: usize) -> bool {
        let (word, next) = (self.word(at), self.word(at + 1));
        let before = at.checked_sub(1).map_or("", |at| self.word(at));
        let numbered = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        if is_date(word) || is_quarter(word) {
            return true;
        }
        if is_year(word) {
            return !List::Products.has(before);
        }
        if List::Months.has(word) {
            // "may" and "march" are also ordinary words.
            return numbered(next) || numbered(before) || List::BeforeMonth.has(before);
        }
        let counted = numbered(next) && List::Units.has(self.word(at + 2));
        matches!(word, "last" | "past") && (counted || List::Units.has(next))
    }

    /// Whether the verb relates two things: `Which tools does X use?`, `Does X target banks?`
    fn joins_things(&self) -> bool {
        let asked = self.words.iter().take(2).any(|word| word.is(List::AskingThings));
        // A verb needs a subject before it: as the first word, "attacks" is a noun.
        let joined = || self.words.iter().skip(1).any(|word| word.is(List::Relating));
        (asked || self.is_yes_or_no()) && joined()
    }

    fn is_yes_or_no(&self) -> bool {
        self.words.first().is_some_and(|word| word.is(List::YesOrNoVerbs))
    }

    fn is_factual(&self, told: &[Wording]) -> bool {
        // A single question word asks nothing.
        let tells = |told: &Wording| matches!(told, Wording::Factual | Wording::FactualStart);
        self.words.len() > 1 && (self.is_yes_or_no() || told.iter().any(tells))
    }

    /// Whether the question is an identifier or indicator with hardly any other words.
    fn is_lookup(&self, query: &str) -> bool {
        if self.words.len() > 1 + WORDS_OF_A_LOOKUP {
            return false;
        }
        let hits = Extractor::shared().extract(query);
        let [hit] = hits.as_slice() else { return false };
        !hit.kind.is_name()
    }
}

fn is_year(word: &str) -> bool {
    let year = word.strip_suffix('s').unwrap_or(word);
    year.len() == 4 && year.parse().is_ok_and(|year: u16| (1980..2100).contains(&year))
}

/// Whether the word is a date, such as `2024-03-01`, `2024/03`, `1.3.2024`, `2024-03-01T10:00`: a year and one or
/// two smaller numbers.
fn is_date(word: &str) -> bool {
    let day = word.split('t').next().unwrap_or(word);
    let Some(mark) = day.chars().find(|c| matches!(c, '-' | '/' | '.')) else {
        return false;
    };
    let parts: Vec<&str> = day.split(mark).collect();
    let small = |part: &&&str| part.len() <= 2 && part.parse().is_ok_and(|n: u8| (1..=31).contains(&n));
    let years = parts
        .iter()
        .filter(|part| is_year(part) && !part.ends_with('s'))
        .count();
    let smalls = parts.iter().filter(small).count();
    // "2019.1" is a version, so dates with dots need three parts.
    years == 1 && smalls + 1 == parts.len() && (parts.len() == 3 || (parts.len() == 2 && mark != '.'))
}

fn is_quarter(word: &str) -> bool {
    matches!(word, "q1" | "q2" | "q3" | "q4" | "h1" | "h2")
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn intent_of(query: &str) -> Intent {
        super::intent_of(query, &words(query))
    }

    fn check(want: Intent, questions: &[&str]) {
        for question in questions {
            assert_eq!(intent_of(question), want, "{question}");
        }
    }

    #[test]
    fn causal_questions() {
        check(
            Intent::Causal,
            &[
                "Why did APT28 target the Bundestag?",
                "why is Log4Shell so dangerous",
                "What caused the Colonial Pipeline shutdown?",
                "What led to the takedown of Emotet?",
                "What was the result of Operation Endgame?",
                "What is the impact of CVE-2024-3094?",
                "impact of the MOVEit breach on banks",
                "Did the leak happen because of a phishing mail?",
                "root cause of the Okta breach",
                "What is the motivation of Lazarus Group?",
                "consequences of the NotPetya attack",
                "What happens when a user opens the attachment?",
            ],
        );
    }

    #[test]
    fn temporal_questions() {
        check(
            Intent::Temporal,
            &[
                "When was CVE-2024-3094 disclosed?",
                "When did LockBit first appear?",
                "Since when is Volt Typhoon active?",
                "What is the latest on LockBit?",
                "recent activity of Sandworm",
                "Show me the timeline of the SolarWinds compromise",
                "What did APT29 do after the 2020 election?",
                "Which CVEs were exploited before March 2024?",
                "campaigns in 2023",
                "attacks on 2024-03-01",
                "What happened last week?",
                "ransomware incidents in the past 30 days",
                "phishing in Q3",
                "Has Emotet been seen recently?",
                "How long was the attacker in the network?",
                "What's new with Scattered Spider?",
                "Lazarus activity in May",
                "How has QakBot evolved?",
                "LockBit takedown, when?",
                "tell me about recent LockBit attacks",
            ],
        );
    }

    #[test]
    fn relational_questions() {
        check(
            Intent::Relational,
            &[
                "Which tools does APT28 use?",
                "What tools does APT28 use?",
                "What does APT28 use?",
                "malware used by Sandworm",
                "Who uses Mimikatz?",
                "How is Conti related to Black Basta?",
                "What is the relationship between Evil Corp and Dridex?",
                "Is DarkSide linked to BlackMatter?",
                "Who is behind Olympic Destroyer?",
                "To whom is NotPetya attributed?",
                "Which groups exploit CVE-2023-23397?",
                "Which CVEs does APT28 exploit?",
                "Does FIN7 target restaurants?",
                "domains connected to 8.8.4.4",
                "infrastructure shared by APT41 and Winnti",
                "Which sectors are targeted by Lazarus?",
                "Which domains does QakBot communicate with?",
                "What do TrickBot and Ryuk have in common?",
                "Which ransomware is associated with Wizard Spider?",
            ],
        );
    }

    #[test]
    fn factual_questions() {
        check(
            Intent::Factual,
            &[
                "What is CVE-2024-3094?",
                "what's T1059.001",
                "Who is Fancy Bear?",
                "Which CVE is Log4Shell?",
                "which cve affects Confluence",
                "CVE-2021-44228",
                "t1566 CVE-2021-44228 cvss",
                "What is the SHA256 of the WannaCry sample?",
                "hash of the Sunburst DLL",
                "How many victims did Cl0p list?",
                "Is CVE-2024-3400 patched?",
                "44d88612fea8aa8f36de82e1278abb02",
                "evil[.]com",
                "8.8.4.4",
                "Where is the Lazarus Group based?",
                "What port does Cobalt Strike listen on?",
                "severity of CVE-2023-4966",
                "What does TTP stand for?",
                "Is Windows Server 2019 vulnerable to PrintNightmare?",
                "What is Exchange 2016?",
            ],
        );
    }

    #[test]
    fn exploratory_questions() {
        check(
            Intent::Exploratory,
            &[
                "Tell me about APT28",
                "Give me an overview of Volt Typhoon",
                "overview of the tools linked to APT28",
                "Everything about ransomware in hospitals",
                "What do we know about Sandworm?",
                "What is known about XZ Utils?",
                "phishing infrastructure",
                "APT28",
                "lateral movement PsExec",
                "Summarise the Conti leaks",
                "How does LockBit encrypt files?",
                "supply chain attacks healthcare",
                "profile of Kimsuky",
                "Malware may march through networks",
                "",
                "   ",
                "???",
                "what",
                "日本の銀行を狙う攻撃",
            ],
        );
    }

    #[test]
    fn names_are_lower_case_and_any_text_is_taken() {
        for intent in Intent::ALL {
            assert_eq!(intent.as_str(), intent.as_str().to_lowercase());
        }
        assert_eq!(intent_of(&"why ".repeat(20_000)), Intent::Causal);
        assert_eq!(intent_of(&"x".repeat(100_000)), Intent::Exploratory);
    }

    #[test]
    fn dates_are_told_from_versions_and_ids() {
        for date in [
            "2024-03-01",
            "2024/03",
            "1.3.2024",
            "01/03/2024",
            "2024-03",
            "2024-03-01t10:00",
        ] {
            assert!(is_date(date), "{date}");
        }
        for other in [
            "cve-2024-3094",
            "2019.1",
            "10.0.19041",
            "1.2.3.4",
            "24-03-01",
            "2024",
            "-",
            "t1059.001",
        ] {
            assert!(!is_date(other), "{other}");
        }
    }
}
