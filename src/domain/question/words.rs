//! The words of a question, and what they mean in one.

use std::ops::Range;

use super::kind::Kind;
pub use super::lexicon::kind_words;
use super::lexicon::{ACTORS, List, Lists, MAX_NOUN, asked_kinds, kind_noun, plural_kinds};

/// A word without the punctuation around it.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) span: Range<usize>,
    /// In lower case.
    pub(super) text: String,
    /// The comma, dash or the like that follows.
    pub(super) mark: Option<char>,
    /// Whether a hyphen attaches it to the word before, as in "GRU-linked".
    pub(super) attached: bool,
    lists: Lists,
}

impl Word {
    fn new(at: usize, word: &str, mark: Option<char>) -> Self {
        let text = word.to_lowercase();
        Word {
            span: at..at + word.len(),
            lists: Lists::of(&text),
            text,
            mark,
            attached: false,
        }
    }

    /// Whether it stands in a list.
    pub(super) fn is(&self, list: List) -> bool {
        self.lists.has(list)
    }

    /// Whether a mark separates the word from what follows.
    pub(super) fn ends_part(&self) -> bool {
        self.mark.is_some()
    }
}

/// Marks between the parts of a sentence.
const MARKS: [char; 9] = [',', ';', ':', '.', '-', '–', '—', '?', '!'];

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
            if let Some(Word { mark, .. }) = words.last_mut() {
                *mark = part.chars().next().or(*mark);
            }
            continue;
        }
        let at = start + part.len() - front.len();
        let mark = tail.chars().find(|mark| MARKS.contains(mark));
        let attached = word
            .rsplit_once('-')
            .filter(|(stem, tail)| !stem.is_empty() && List::Attached.has(&tail.to_lowercase()));
        let Some((stem, tail)) = attached else {
            words.push(Word::new(at, word, mark));
            continue;
        };
        words.push(Word::new(at, stem, None));
        words.push(Word {
            attached: true,
            ..Word::new(at + stem.len() + 1, tail, mark)
        });
    }
    words
}

/// A kind that is mentioned, at these words.
#[derive(Debug, Clone)]
pub(super) struct KindMention {
    pub(super) at: Range<usize>,
    pub(super) kinds: &'static [Kind],
    /// Whether the word can stand for many: a plural, or a noun without one.
    pub(super) many: bool,
    /// Whether the word asks, as "who" does, and names no kind of its own.
    pub(super) asks: bool,
    /// What the nouns before the last one say it belongs to, as in "malware techniques".
    pub(super) owners: &'static [Kind],
}

/// The kinds that the words mention, in order. Neighbouring nouns are one mention, as in "threat actor groups".
pub(super) fn mentions(words: &[Word], is_name: impl Fn(usize) -> bool) -> Vec<KindMention> {
    let mut found: Vec<KindMention> = Vec::new();
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
        let ends = words.get(last.at.end - 1).is_some_and(Word::ends_part);
        match (mention.asks, ends) {
            // "… malware - who has it?", but "the group who …"
            (true, _) if asks_by_whom(words, mention.at.start) => found.push(mention),
            (true, _) => {}
            // "malware, tools"
            (false, true) => found.push(mention),
            (false, false) => {
                *last = KindMention {
                    at: last.at.start..mention.at.end,
                    owners: if belongs(mention.kinds, last.kinds) {
                        last.kinds
                    } else {
                        last.owners
                    },
                    ..mention
                };
            }
        }
    }
    found
}

/// Whether a noun of one kind before a noun of another says whose the latter is: "campaign malware", but not "malware
/// campaigns" or "ransomware groups".
fn belongs(head: &[Kind], modifier: &[Kind]) -> bool {
    let order = [
        Kind::Group,
        Kind::Campaign,
        Kind::Software,
        Kind::Technique,
        Kind::Mitigation,
    ];
    let place = |kinds: &[Kind]| {
        let first = kinds.first();
        order.iter().position(|kind| Some(kind) == first)
    };
    matches!((place(modifier), place(head)), (Some(owner), Some(owned)) if owner < owned && owned > 1)
}

pub(super) fn mention_at(words: &[Word], at: usize) -> Option<KindMention> {
    let word = words.get(at)?.text.as_str();
    let mention = |length: usize, kinds, many, asks| KindMention {
        at: at..at + length,
        kinds,
        many,
        asks,
        owners: &[],
    };
    if List::Persons.has(word) {
        return Some(mention(1, ACTORS, true, true));
    }
    if let Some(kinds) = plural_kinds(word) {
        return Some(mention(1, kinds, true, false));
    }
    if let Some(kinds) = asked_kinds(word).filter(|kinds| means_kind(words, at, kinds)) {
        return Some(mention(1, kinds, true, false));
    }
    let lengths = (1..=MAX_NOUN).rev();
    let mut nouns = lengths.filter_map(|length| {
        let phrase: Vec<&str> = words
            .get(at..at + length)?
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        Some((length, kind_noun(&phrase.join(" "))?))
    });
    let (length, noun) = nouns.next()?;
    Some(mention(length, &noun.kinds, noun.many, false))
}

/// Whether a word that means these kinds only beside others does so here: "which operations", "the controls that …",
/// "operations carried out by …", "malware behaviour".
fn means_kind(words: &[Word], at: usize, kinds: &[Kind]) -> bool {
    let word = |at: Option<usize>| {
        at.and_then(|at| words.get(at))
            .map_or("", |word| word.text.as_str())
    };
    let before = at.checked_sub(1);
    let is_asked = at == 0 || List::Selecting.has(word(before));
    let after = word(Some(at + 1));
    let is_operation = word(Some(at)) == "operations" && List::Operated.has(after);
    is_asked
        || (word(before) == "the" && matches!(after, "that" | "which"))
        || is_operation
        || (kinds == [Kind::Technique] && before.is_some_and(|before| mention_at(words, before).is_some()))
}

/// The word before a mention.
pub(super) fn before<'w>(words: &'w [Word], mention: &KindMention) -> &'w str {
    let before = mention.at.start.checked_sub(1).and_then(|at| words.get(at));
    before.map_or("", |word| word.text.as_str())
}

/// Whether "who" begins a question of its own after a mark: "…: who has it?", "…, who has it?", but not "the malware of …,
/// who attacked …".
pub(super) fn asks_by_whom(words: &[Word], who: usize) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let by_whom = List::Prepositions.has(word(who.saturating_sub(1)));
    let last = who
        .checked_sub(1 + usize::from(by_whom))
        .and_then(|at| words.get(at));
    let refers = || {
        let mut rest = words.get(who..).unwrap_or_default().iter();
        rest.any(|word| matches!(word.text.as_str(), "it" | "them" | "this" | "these" | "those"))
    };
    last.and_then(|word| word.mark)
        .is_some_and(|mark| mark != ',' || refers())
}

/// Whether "which" or "what" stands before a mention.
fn is_asking(words: &[Word], mention: &KindMention) -> bool {
    matches!(before(words, mention), "which" | "what")
}

/// The kinds of the owners that are asked for by what belongs to them: "which groups' malware".
pub(super) fn owners(text: &str, words: &[Word], mention: &KindMention) -> Option<&'static [Kind]> {
    let before_other = mention.at.start.checked_sub(2).and_then(|at| words.get(at));
    let asks_for_others = before(words, mention) == "other"
        && before_other.is_some_and(|word| matches!(word.text.as_str(), "which" | "what"));
    if !is_asking(words, mention) && !asks_for_others {
        return None;
    }
    let is_possessive = |end: &usize| {
        let owner = end.checked_sub(1).and_then(|last| words.get(last));
        let rest = owner.and_then(|word| text.get(word.span.end..));
        rest.is_some_and(|rest| rest.starts_with(['\'', '’']))
    };
    let end = (mention.at.start + 1..mention.at.end).find(is_possessive)?;
    let nouns = mentions(words.get(..end)?, |at| at < mention.at.start);
    nouns.last().map(|owner| owner.kinds)
}

/// Whether a word says nothing of its own, or only how a question is put.
pub fn is_function_word(word: &str) -> bool {
    List::FunctionWords.has(word)
}
