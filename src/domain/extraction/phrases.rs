//! English phrases with which reports state a relationship between two names.
//!
//! Every pattern is anchored at both ends: it must match all the words between the names.

use std::sync::LazyLock;

use regex::Regex;

use super::relations::Verb;
use crate::domain::with_ascii_edges;

/// Active forms, and the participles of the passive "… by".
const VERBS: &[(Verb, &str, &str)] = &[
    (
        Verb::Uses,
        "uses|use|used|using|deploys|deployed|deploy|employs|employed|leverages|leveraged|utilizes|utilized|utilises|utilised|wields|wielded",
        "used|deployed|employed|leveraged|utilized|utilised|wielded|operated",
    ),
    (
        Verb::Exploits,
        "exploits|exploited|exploit|exploiting|weaponized|weaponizes",
        "exploited|weaponized",
    ),
    (Verb::Targets, "targets|targeted|targeting", "targeted"),
    (
        Verb::Drops,
        "drops|dropped|drop|dropping|installs|installed",
        "dropped|installed",
    ),
    (
        Verb::Downloads,
        "downloads|downloaded|downloading|fetches|fetched|retrieves|retrieved",
        "downloaded|fetched|retrieved",
    ),
    (
        Verb::CommunicatesWith,
        "communicates with|communicated with|communicating with|connects to|connected to|beacons to|beaconed to|contacts|contacted|calls back to",
        "contacted",
    ),
    (Verb::Mitigates, "mitigates|mitigate", "mitigated"),
];

/// Nouns that may follow the subject's name or precede the object's.
const LABEL: &str = r"(?:threat |ransomware |hacking |hacker |espionage )?(?:group|gang|actors?|operators?|affiliates?|hackers|ransomware|malware|backdoor|trojan|loader|implant|campaign|collective|team|vulnerability|flaw|tool|framework|botnet|wiper|dropper)";
const AUX: &str = r"(?:(?:has|have|had|is|are|was|were|been|also|often|frequently|commonly|recently|then|subsequently|primarily|actively|typically|previously|repeatedly|observed|seen|known|to) )*";
const FILLER: &str = r"(?:(?:the|a|an|its|their|both|custom|new|known|popular|modular|malicious|public|publicly available|open-source|commercial|legitimate|critical|zero-day|command-and-control|c2|malware|tools?|backdoors?|ransomware|trojan|loader|implant|wiper|server|servers|at|domain|address|ip|host|vulnerability|flaw|technique|techniques|framework|payload|file|called|named|dubbed|known as|such as|including|like|tracked as|group|actor|threat|credential|dumping|dumper|variant|of|post-exploitation|remote access|infostealer|stealer) )*";
/// Nouns such that "<noun> of <name>" acts on behalf of the name.
pub(super) const MEMBERS: &[&str] = &[
    "operators",
    "members",
    "affiliates",
    "actors",
    "hackers",
    "operator",
];

pub(super) struct RelationPattern {
    pub verb: Verb,
    pub regex: Regex,
    pub passive: bool,
}

pub(super) static PATTERNS: LazyLock<Vec<RelationPattern>> = LazyLock::new(|| {
    let mut patterns = Vec::new();
    for (verb, active, passive) in VERBS {
        let active = format!(
            r#"(?i)^["')]?,?(?:[ -]{LABEL})?,?(?: (?:which|that|who))? {AUX}(?:{active}) {FILLER}["'(]?$"#
        );
        let passive = format!(
            r#"(?i)^["')]?(?:[ -]{LABEL})?,?(?: (?:which|that))? {AUX}(?:{passive}) by (?:the )?{FILLER}["'(]?$"#
        );
        for (text, is_passive) in [(active, false), (passive, true)] {
            patterns.extend(Regex::new(&text).map(|regex| RelationPattern {
                verb: *verb,
                regex,
                passive: is_passive,
            }));
        }
    }
    let attributed =
        format!(r#"(?i)^["')]?(?:[ -]{LABEL})?,?(?: (?:which|that))? {AUX}attributed to {FILLER}["'(]?$"#);
    patterns.extend(Regex::new(&attributed).map(|regex| RelationPattern {
        verb: Verb::AttributedTo,
        regex,
        passive: false,
    }));
    patterns
});
pub(super) static LISTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)^["')]?(?:,|,? and|,? or|, as well as)(?: also)? (?:the )?["'(]?$"#).ok()
});
/// Text after a name that starts a new clause.
pub(super) static CLAUSE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let clause =
        format!(r#"(?i)^["')\]]?(?:[ -]{LABEL})? (?:was|were|is|are|has|have|had|will|then|also|later)\b"#);
    Regex::new(&with_ascii_edges(&clause)).ok()
});
pub(super) static ALIAS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)^["']?,? ?\(?(?:aka |a\.k\.a\. |also known as |also tracked as |tracked as |or |formerly )?["']?$"#).ok()
});
