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

/// Maximum number of words read; anything longer is a text, not a question.
const MAX_WORDS: usize = 300;
/// Maximum number of other words in a question that looks up an identifier.
const WORDS_OF_A_LOOKUP: usize = 3;

/// `|`-separated phrases of whole words, matched anywhere in the question.
const CAUSAL: &str = "\
    why|because|cause|causes|caused|causing|root cause|led to|lead to|leads to|leading to|result of|\
    results of|result in|resulted in|results in|resulted from|resulting from|impact of|impact on|\
    impact does|impact did|effect of|effects of|consequence|consequences|due to|reason|reasons|motive|\
    motives|motivation|motivations|motivated|how come|what happens if|what happens when|triggered|\
    what enabled|what allowed|explain how come|contributed to|in response to|in retaliation";
const OVERVIEW: &str = "\
    overview|tell me about|tell us about|tell me more|everything about|everything on|everything we know|\
    all about|all we know|summary|summarize|summarise|brief me|briefing|background on|introduction to|\
    explore|learn about|information on|information about|info on|info about|details on|details about|\
    what do we know|what do you know|what is known|what s known|profile of|describe|landscape|discuss";
const TEMPORAL: &str = "\
    since|latest|newest|recent|recently|timeline|timelines|chronology|chronological|chronologically|before|\
    after|until|during|today|yesterday|currently|nowadays|now|earliest|first seen|last seen|first observed|\
    last observed|first reported|last reported|first appear|first appeared|first detected|first used|\
    first discovered|how long|how old|how often|how recently|how soon|what date|which date|what year|\
    which year|what month|which month|what day|what time|date of|dates of|over time|history of|evolution of|\
    evolved|evolve|evolving|what is new|what s new|whats new|anything new|this week|this month|this year|\
    this quarter|last week|last month|last year|last quarter|last night|last few|last time|past week|\
    past month|past year|past few|weeks ago|days ago|months ago|years ago|hours ago|still active|no longer|\
    sequence of events|as of|up to date|previously|most recent";
const RELATIONAL: &str = "\
    related|relation|relations|relationship|relationships|relate|relates|linked|link between|links between|\
    linkage|links to|link to|between|connected|connection|connections|connect|connects|attributed|\
    attribution|attribute|attributable|associated|association|associations|affiliated|affiliate|affiliates|\
    affiliation|overlap|overlaps|overlapping|shared by|share|shares|in common|common to|tied to|ties to|\
    ties with|behind|used by|exploited by|targeted by|deployed by|operated by|developed by|delivered by|\
    dropped by|abused by|employed by|leveraged by|attacked by|controlled by|hosted by|hosted on|run by|\
    distributed by|who uses|who used|belongs to|belong to|part of|communicates with|communicate with|\
    communicating with|resolves to|resolve to|resolved to|works with|work with|collaborate|collaborates|\
    cooperates|mapped to|map to|maps to|subgroup of|successor of|rebrand of|variant of|variants of|same as|\
    alias of|aliases of|also known as|along with|together with";
/// Verbs that relate two things, in the forms used in questions.
const JOINING_VERBS: &str = "\
    use|uses|used|using|exploit|exploits|exploited|exploiting|target|targets|targeted|targeting|deploy|\
    deploys|deployed|deliver|delivers|delivered|drop|drops|dropped|employ|employs|employed|leverage|\
    leverages|leveraged|abuse|abuses|abused|attack|attacks|attacked|operate|operates|operated|operating|\
    host|hosts|hosted|contact|contacts|contacted|distribute|distributes|distributed|install|installs|\
    installed|download|downloads|downloaded|communicate|communicates|mitigate|mitigates|mitigated|detect|\
    detects|develop|develops|developed|created|creates|runs|sell|sells|sold|indicate|indicates";
const ASKING: &str = "which|what|who|whom|whose";
const HELPING: &str = "is|are|was|were|does|do|did|has|have|had|can|could|should";
const FACTUAL_STARTS: &str = "\
    what is|what s|whats|what are|what was|what were|who is|who s|who are|who was|which|where|how many|\
    how much|how severe|how critical|define|definition|meaning|what does|what do|what did|what type|\
    what kind|what cve|what cvss|what version|what port|what hash|what country|what|who|give me the|\
    is there|are there|look up|lookup";
const FACTUAL: &str = "\
    hash of|hashes of|md5 of|sha256 of|sha1 of|cvss|severity of|severity|ip address of|ip addresses of|\
    cve id|cve number|cve for|cve of|score of|name of|id of|identifier of|definition of|meaning of|\
    number of|stand for|stands for";
const MONTHS: &str = "\
    january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|\
    jun|jul|aug|sep|sept|oct|nov|dec";
/// Words before a month or year that mark it as a time.
const TIME_WORDS: &str = "in|since|until|till|by|from|of|last|this|early|late|mid";
/// Words before a four-digit number that make it a product name or a port.
const PRODUCT_WORDS: &str = "\
    server|windows|exchange|office|sharepoint|studio|sql|outlook|word|excel|project|visio|access|dynamics|\
    autocad|port|ports|error|id|event|build|version|tcp|udp|sp";
const LAST_UNITS: &str = "day|days|week|weeks|month|months|year|years|hours|quarter";

/// Classifies a question by the rules in the module documentation. Deterministic.
pub fn intent_of(query: &str) -> Intent {
    let question = QuestionWords::new(query);
    if question.has_any(CAUSAL) {
        Intent::Causal
    } else if question.asks_for_time() {
        Intent::Temporal
    } else if question.has_any(OVERVIEW) {
        Intent::Exploratory
    } else if question.has_any(RELATIONAL) || question.joins_things() {
        Intent::Relational
    } else if question.is_factual() || is_lookup(query, question.words.len()) {
        Intent::Factual
    } else {
        Intent::Exploratory
    }
}

/// A question split into lower-case words.
struct QuestionWords {
    words: Vec<String>,
    /// The words joined by single spaces, with one at each end, for matching phrases.
    line: String,
}

impl QuestionWords {
    fn new(query: &str) -> Self {
        let words: Vec<String> = query
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '.' | '/' | '_' | ':')))
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
            .filter(|word| !word.is_empty())
            .take(MAX_WORDS)
            .map(str::to_lowercase)
            .collect();
        let line = format!(" {} ", words.join(" "));
        Self { words, line }
    }

    fn has_any(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| self.has(phrase))
    }

    fn has(&self, phrase: &str) -> bool {
        self.line.match_indices(phrase).any(|(at, _)| {
            let before = at.checked_sub(1).and_then(|at| self.line.as_bytes().get(at));
            let after = self.line.as_bytes().get(at + phrase.len());
            before == Some(&b' ') && after == Some(&b' ')
        })
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    fn asks_for_time(&self) -> bool {
        self.has_any(TEMPORAL) || self.asks_when() || (0..self.words.len()).any(|at| self.is_time(at))
    }

    /// Whether `when` at one end of the question asks for a time; elsewhere it introduces a condition.
    fn asks_when(&self) -> bool {
        let early = self.words.iter().take(2).any(|word| word == "when");
        early
            || self.words.last().is_some_and(|word| word == "when")
            || self.has("know when")
            || self.has("me when")
    }

    fn is_time(&self, at: usize) -> bool {
        let (word, next) = (self.word(at), self.word(at + 1));
        let before = at.checked_sub(1).map_or("", |at| self.word(at));
        let numbered = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        if is_date(word) || is_quarter(word) {
            return true;
        }
        if is_year(word) {
            return !lists(PRODUCT_WORDS, before);
        }
        if lists(MONTHS, word) {
            // "may" and "march" are also ordinary words.
            return numbered(next) || numbered(before) || lists(TIME_WORDS, before);
        }
        let counted = numbered(next) && lists(LAST_UNITS, self.word(at + 2));
        matches!(word, "last" | "past") && (counted || lists(LAST_UNITS, next))
    }

    /// Whether the verb relates two things: `Which tools does X use?`, `Does X target banks?`
    fn joins_things(&self) -> bool {
        let asked = self.words.iter().take(2).any(|word| lists(ASKING, word.as_str()));
        let helped = self
            .words
            .first()
            .is_some_and(|word| lists(HELPING, word.as_str()));
        // A verb needs a subject before it: as the first word, "attacks" is a noun.
        let joined = self
            .words
            .iter()
            .skip(1)
            .any(|word| lists(JOINING_VERBS, word.as_str()));
        (asked || helped) && joined
    }

    fn is_factual(&self) -> bool {
        let starts = |phrase: &str| {
            let rest = self
                .line
                .strip_prefix(' ')
                .and_then(|line| line.strip_prefix(phrase));
            rest.is_some_and(|rest| rest.starts_with(' '))
        };
        // A single question word asks nothing.
        let more = self.words.len() > 1;
        let helped = self
            .words
            .first()
            .is_some_and(|word| lists(HELPING, word.as_str()));
        more && (FACTUAL_STARTS.split('|').any(starts) || helped || self.has_any(FACTUAL))
    }
}

/// Whether the list holds the word.
fn lists(list: &str, word: &str) -> bool {
    list.split('|').any(|listed| listed == word)
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

/// Whether the question is an identifier or indicator with hardly any other words.
fn is_lookup(query: &str, words: usize) -> bool {
    if words > 1 + WORDS_OF_A_LOOKUP {
        return false;
    }
    let hits = Extractor::shared().extract(query);
    let [hit] = hits.as_slice() else { return false };
    !hit.kind.is_name()
}

#[cfg(test)]
mod tests {
    use super::*;

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
