//! The words of a question, and what they mean in one.

use std::ops::Range;

use super::kind::Kind;
use super::lexicon::{
    ACTORS, ASKED_PLURALS, ASKING, FUNCTION_WORDS, MASS, NOUNS, OPENINGS, PERSONS, PLURALS, PREPOSITIONS,
    PROTECT,
};

/// A word without the punctuation around it.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) span: Range<usize>,
    /// In lower case.
    pub(super) text: String,
    /// Whether a comma, dash or the like follows.
    pub(super) ends_part: bool,
}

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut from = 0;
    for part in text.split(char::is_whitespace) {
        let start = from;
        from += part.len();
        from += text
            .get(from..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        let front = part.trim_start_matches(|c: char| !c.is_alphanumeric());
        let word = front.trim_end_matches(|c: char| !c.is_alphanumeric());
        let tail = front.get(word.len()..).unwrap_or_default();
        let word = ["'s", "’s"]
            .iter()
            .find_map(|s| word.strip_suffix(s))
            .unwrap_or(word);
        if word.is_empty() {
            if let Some(Word { ends_part, .. }) = words.last_mut() {
                *ends_part = !part.is_empty() || *ends_part;
            }
            continue;
        }
        let at = start + part.len() - front.len();
        words.push(Word {
            span: at..at + word.len(),
            text: word.to_lowercase(),
            ends_part: tail.contains([',', ';', ':', '.', '-', '–', '—', '?', '!']),
        });
    }
    words
}

/// A kind that is mentioned, at these words.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    pub(super) at: Range<usize>,
    pub(super) kinds: &'static [Kind],
    /// Whether the word can stand for many: a plural, or a noun without one.
    pub(super) many: bool,
    /// Whether the word asks, as "who" does, and names no kind of its own.
    pub(super) asks: bool,
}

/// The kinds that the words mention, in order. Neighbouring nouns are one mention, as in "threat actor groups".
pub(super) fn mentions(words: &[Word], is_name: impl Fn(usize) -> bool) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let Some(mention) = Some(at)
            .filter(|at| !is_name(*at))
            .and_then(|at| mention_at(words, at))
        else {
            at += 1;
            continue;
        };
        at = mention.at.end;
        let Some(last) = found.last_mut().filter(|last| last.at.end == mention.at.start) else {
            found.push(mention);
            continue;
        };
        let ends = words.get(last.at.end - 1).is_some_and(|word| word.ends_part);
        match (mention.asks, ends) {
            // "the group who …"
            (true, _) => {}
            // "malware, tools"
            (false, true) => found.push(mention),
            (false, false) => {
                let start = last.at.start;
                *last = Mention {
                    at: start..mention.at.end,
                    ..mention
                };
            }
        }
    }
    found
}

fn mention_at(words: &[Word], at: usize) -> Option<Mention> {
    let word = words.get(at)?.text.as_str();
    let before = at
        .checked_sub(1)
        .and_then(|before| words.get(before))
        .map_or("", |word| word.text.as_str());
    let mention = |length: usize, kinds, many, asks| Mention {
        at: at..at + length,
        kinds,
        many,
        asks,
    };
    if PERSONS.contains(&word) {
        return Some(mention(1, ACTORS, true, true));
    }
    let listed = |list: &[(&str, &'static [Kind])]| {
        list.iter()
            .find(|(plural, _)| *plural == word)
            .map(|(_, kinds)| *kinds)
    };
    if let Some(kinds) = listed(PLURALS) {
        return Some(mention(1, kinds, true, false));
    }
    if let Some(kinds) = listed(ASKED_PLURALS).filter(|_| at == 0 || ASKING.contains(&before)) {
        return Some(mention(1, kinds, true, false));
    }
    for (noun, kinds) in NOUNS {
        let length = noun.split(' ').count();
        let Some(phrase) = words.get(at..at + length) else {
            continue;
        };
        let mut parts = noun.split(' ').zip(phrase).enumerate();
        // The head of "courses of action" comes first, that of other phrases last.
        let head = if noun.contains(" of ") { 0 } else { length - 1 };
        let mut many = MASS.contains(noun);
        let fits = parts.all(|(place, (part, word))| {
            if place != head || word.text == part {
                return word.text == part;
            }
            many = true;
            is_plural(&word.text, part)
        });
        if fits {
            return Some(mention(length, kinds, many, false));
        }
    }
    None
}

fn is_plural(word: &str, singular: &str) -> bool {
    let stem = |ending: &str| word.strip_suffix(ending);
    stem("s") == Some(singular)
        || stem("es") == Some(singular)
        || stem("ies").is_some_and(|stem| singular.strip_suffix('y') == Some(stem))
}

/// Longest question without a word or mark that asks, and longest one that only begins with what it asks for, in words.
const SHORT: usize = 10;
const PHRASE: usize = 20;
/// Longest question, in words.
const LONGEST: usize = 48;

/// Whether the words ask rather than tell.
pub(super) fn asks(text: &str, words: &[Word]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let opens =
        OPENINGS.contains(&word(0)) || (PREPOSITIONS.contains(&word(0)) && OPENINGS.contains(&word(1)));
    let is_phrase = || mention_at(words, 0).is_some_and(|mention| mention.many) && words.len() <= PHRASE;
    words.len() <= LONGEST && (opens || words.len() <= SHORT || text.trim_end().ends_with('?') || is_phrase())
}

/// Whether the words ask how something is mitigated, or what a mitigation protects from.
pub(super) fn is_about_protection(words: &[Word], is_name: impl Fn(usize) -> bool) -> bool {
    let words = words.iter().enumerate().filter(|(at, _)| !is_name(*at));
    let mut reduces = false;
    words.into_iter().any(|(_, word)| {
        let risk = reduces && word.text.starts_with("risk");
        reduces |= word.text.starts_with("reduc") || word.text.starts_with("lower");
        risk || is_protecting(&word.text)
    })
}

/// Whether a word is a verb of protection.
pub(super) fn is_protecting(word: &str) -> bool {
    PROTECT.iter().any(|verb| word.starts_with(verb))
}

/// Whether the words ask what something uses or does.
pub(super) fn is_about_use(words: &[Word]) -> bool {
    const USES: &[&str] = &[
        "use", "uses", "used", "operate", "operates", "work", "works", "employ", "deploy", "behave",
    ];
    let asks = words
        .first()
        .is_some_and(|word| matches!(word.text.as_str(), "what" | "how"));
    asks && words.iter().any(|word| USES.contains(&word.text.as_str()))
}

/// Whether the words ask what something is able to do: they end with the verb, or with "capable of".
pub(super) fn is_about_ability(words: &[Word]) -> bool {
    const DOES: &[&str] = &[
        "do", "does", "doing", "work", "works", "operate", "operates", "behave", "behaves", "function",
    ];
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match texts.as_slice() {
        ["what" | "how", .., last] if DOES.contains(last) => true,
        ["what", .., "capable", "of"] => true,
        // "What does the malware of … use?", but not "What malware does … use?"
        ["what", "do" | "does" | "did" | "can", .., "use" | "employ"] => true,
        _ => false,
    }
}

/// The word before a mention.
pub(super) fn before<'w>(words: &'w [Word], mention: &Mention) -> &'w str {
    let before = mention.at.start.checked_sub(1).and_then(|at| words.get(at));
    before.map_or("", |word| word.text.as_str())
}

/// Whether the words ask for the second of two mentions, to which the first belongs: "the malware of which groups", "Through
/// their malware, which groups …". In "campaigns in which malware …" and "tools which groups …" the word "which" only begins
/// a clause.
pub(super) fn asks_of_owners(words: &[Word], first: &Mention, second: &Mention) -> bool {
    let before_second = |back: usize| second.at.start.checked_sub(back).and_then(|at| words.get(at));
    let is_asked = matches!(before(words, second), "which" | "what");
    let of = before_second(2).is_some_and(|word| word.text == "of" || word.ends_part);
    is_asked && of && !first.asks && !matches!(before(words, first), "which" | "what")
}

/// The kinds of the owners of what a mention is about: "groups' malware".
pub(super) fn owners(text: &str, words: &[Word], mention: &Mention) -> Option<&'static [Kind]> {
    let owner = mention_at(words, mention.at.start).filter(|owner| owner.at.end < mention.at.end)?;
    let end = words.get(owner.at.end - 1)?.span.end;
    let is_possessive = text.get(end..)?.starts_with(['\'', '’']);
    is_possessive.then_some(owner.kinds)
}

/// Whether the words ask for ways rather than for things of a kind: "how can we …", "what should be done …".
pub(super) fn asks_for_ways(words: &[Word]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    word(0) == "how"
        || (word(0) == "what" && matches!(word(1), "can" | "could" | "should" | "to" | "must" | "helps"))
}

/// Whether a word says nothing of its own, or only how a question is put.
pub(super) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.contains(&word)
}
