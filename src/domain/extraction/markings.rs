//! Markings stated in a text: TLP, and phrases with the same effect.
//!
//! A TLP marking counts anywhere, since a false warning costs a look and a missed one a leak. Phrases count only in
//! the forms in which documents are marked or readers are addressed: "stole confidential documents" and "the clusters
//! do not share code" say nothing about the text itself.

mod anchor;
mod choices;
mod layout;
mod legend;
mod levels;
mod marks;
mod stated;
mod table;
mod words;

use std::sync::LazyLock;

use regex::Regex;

pub use self::stated::tlp_hint;
use crate::domain::staging::SENSITIVITY;
use crate::domain::tlp::Tlp;
use crate::domain::with_ascii_edges;

/// Maximum number of phrases to warn about per text; more add nothing.
const MAX_PHRASES: usize = 5;
/// Maximum characters of a phrase quoted in a warning.
const QUOTED: usize = 80;

/// Nouns for a document and its contents.
macro_rules! document {
    () => {
        r"(?:report|document|information|info|e-?mail|message|advisory|briefing|bulletin|note|alert|indicators?|iocs?|intel(?:ligence)?|data|content|material|file|write-?up|analysis|product)"
    };
}
macro_rules! spread {
    () => {
        r"(?:re-?)?(?:share|distribute|forward|disseminate|circulate|publish|disclose|release|post|copy)"
    };
}
macro_rules! spread_passive {
    () => {
        r"(?:re-?)?(?:shared|distributed|forwarded|disseminated|circulated|published|disclosed|released|posted|copied)"
    };
}
macro_rules! beyond {
    () => {
        r"(?:outside|beyond|further|externally|publicly|widely|without|onward|with (?:anyone|third|others|other|the (?:public|media|press))|to (?:anyone|third|others|the (?:public|media|press)))"
    };
}

/// Phrases that require at least TLP:AMBER: no unrestricted sharing.
const LIMITED: &[&str] = &[
    // Addressed to the reader: at the start of a sentence, or naming what must not be shared or with whom.
    concat!(
        r#"(?:^|[.!?:;|>()\[\]*"“–—/-][ \t]*|\bplease[ \t,]+)(?:do not|don['’]t|never)\s+"#,
        spread!(),
        r"\b"
    ),
    concat!(
        r"\b(?:do not|don['’]t|never)\s+",
        spread!(),
        r"\s+(?:(?:this|these|the following|our|attached)\s+",
        document!(),
        r"\b|(?:it\s+|this\s+)?",
        beyond!(),
        r"\b)"
    ),
    concat!(
        r"\b",
        document!(),
        r"\b[^.\n]{0,40}\b(?:must|may|should|shall|can|is|are)\s+not\s+(?:to\s+)?(?:be\s+)?",
        spread_passive!(),
        r"\b"
    ),
    concat!(
        r"\b(?:must|may|should|shall)\s+not\s+be\s+",
        spread_passive!(),
        r"\s+",
        beyond!(),
        r"\b"
    ),
    r"\bnot\s+(?:intended\s+)?for\s+(?:\w+\s+){0,2}(?:re-?)?(?:distribution|release|dissemination|publication|sharing|circulation|disclosure)\b",
    r"\bno\s+(?:further|onward|public|external)\s+(?:distribution|dissemination|sharing|disclosure)\b",
    // Confidential as a marking: on its own line, in capitals with a separator, or about the document.
    r"^\W*(?:(?:strictly|highly|company|private (?:and|&))\s+)?confidential\W*$",
    r"^[^\w\n]*(?-i:(?:STRICTLY |COMPANY )?CONFIDENTIAL)\s*[-–—:/|]",
    r"\b(?:strictly|company)[ -]confidential\b",
    r"\b(?:privileged|proprietary)\s+(?:and|&)\s+confidential\b",
    r"\bconfidential\s+(?:and|&)\s+(?:privileged|proprietary)\b",
    r"\bcommercial[- ]in[- ]confidence\b",
    r"\bclassification[ \t]*:[ \t]*(?:confidential|restricted|internal|secret)\b",
    concat!(
        r"\b(?:this|the following|attached|our)\s+(?:\w+\s+){0,2}",
        document!(),
        r"\s+(?:\w+\s+){0,4}confidential\b"
    ),
    r"\b(?:keep|treat|handle)\s+(?:this|it|these|all of this)\s+(?:\w+\s+){0,3}confidential(?:ly)?\b",
    // Internal use only.
    r"\b(?:for\s+)?internal\s+use(?:\s+only)?\b[ \t]*(?:$|[-–—.:;,|)\]!*])",
    r"\bfor\s+internal\s+(?:use|distribution|circulation|eyes)\b",
    r"(?:^|[\[(:|*–—-])[ \t]*internal[ -]only[ \t]*(?:$|[\])|:.,;!*–—-])",
    r"\bneed[- ]to[- ]know\s+(?:basis|only)\b",
    r"\bstrict(?:ly)?\s+need[- ]to[- ]know\b",
    // Government and intelligence-service markings.
    r"^[^\w\n]*(?-i:(?:EU |NATO |UK |OFFICIAL[-: ]+)?RESTRICTED)\b[ \t]*(?:$|[-–—:/|])",
    r"\b(?-i:NATO RESTRICTED|OFFICIAL[-:/ ]+SENSITIVE|NOFORN|LIMDIS|FOUO)\b",
    r"\brestricted\s+(?:distribution|dissemination|circulation)\b",
    r"\b(?:distribution|dissemination|circulation)\s+(?:is\s+|of this \w+ is\s+)?(?:strictly\s+)?(?:restricted|limited)\b",
    r"\blimited\s+(?:distribution|dissemination)\b",
    r"\blaw[- ]enforcement[- ](?:sensitive|only|use only)\b",
    r"\bfor\s+official\s+use\s+only\b",
    r"\bcontrolled unclassified information\b",
    r"\bsensitive but unclassified\b",
    r"\bembargoed\s+(?:until|till)\b",
    r"\b(?:shared|provided|disclosed)\s+under\s+(?:an?\s+)?(?:nda|non-disclosure)\b",
];

/// Phrases that require TLP:RED: named recipients only.
const NAMED_READERS: &[&str] = &[
    r"\b(?:your|our|my|recipients?|addressees?|executives?|management|analysts?|board|five|two|us|uk)(?:['’]s?)?[ -]eyes[ -]only\b",
    r"(?-i:\bEYES[ -]ONLY\b)",
    r"\bfor\s+(?:the\s+)?(?:named|intended|listed)\s+(?:recipients?|addressees?)\s+only\b",
    r"\bpersonal\s+(?:and|&)\s+confidential\b",
];

static PHRASES: LazyLock<[(Tlp, Option<Regex>); 2]> = LazyLock::new(|| {
    [(Tlp::Red, NAMED_READERS), (Tlp::Amber, LIMITED)]
        .map(|(tlp, list)| (tlp, format!("(?im){}", list.join("|"))))
        .map(|(tlp, pattern)| (tlp, Regex::new(&with_ascii_edges(&pattern)).ok()))
});

/// Reasons against marking the text's content `proposed`, one warning each.
pub fn sensitivity(text: &str, proposed: Tlp) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(stated) = tlp_hint(text).filter(|stated| *stated > proposed) {
        warnings.push(format!(
            "{SENSITIVITY}the text states {stated}, above the proposed {proposed}"
        ));
    }
    let mut seen: Vec<String> = Vec::new();
    let plain = layout::strip(&layout::decode(text));
    let mut forms = vec![text];
    forms.extend(Some(plain.as_str()).filter(|plain| *plain != text));
    for (asked, regex) in PHRASES.iter().filter(|(asked, _)| *asked > proposed) {
        let find = |regex: &'static Regex| forms.iter().flat_map(move |form| regex.find_iter(form));
        for found in regex.iter().flat_map(find) {
            let phrase = phrase(found.as_str());
            let lower = phrase.to_lowercase();
            if warnings.len() > MAX_PHRASES || seen.contains(&lower) {
                continue;
            }
            warnings.push(format!(
                "{SENSITIVITY}the text says {phrase:?}, which asks for {asked}, above the proposed {proposed}"
            ));
            seen.push(lower);
        }
    }
    warnings
}

/// The words of a match, without surrounding punctuation.
fn phrase(matched: &str) -> String {
    let words: Vec<&str> = matched.split_whitespace().collect();
    let joined = words.join(" ");
    joined
        .trim_matches(|c: char| !c.is_alphanumeric())
        .chars()
        .take(QUOTED)
        .collect()
}

#[cfg(test)]
mod tests;
