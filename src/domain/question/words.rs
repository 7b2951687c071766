//! The words of a question, and what they mean in one.

use std::ops::Range;

use super::kind::Kind;
use super::lexicon::{
    ACTORS, ASKED_PLURALS, ASKING, ATTACHED, FUNCTION_WORDS, MASS, NOUNS, OPENINGS, OPERATED, PERSONS,
    PLURALS, PREPOSITIONS, TECHNIQUES,
};
use super::links::{LISTING, QUALIFIERS};

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
}

impl Word {
    fn new(at: usize, word: &str, mark: Option<char>) -> Self {
        Word {
            span: at..at + word.len(),
            text: word.to_lowercase(),
            mark,
            attached: false,
        }
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
            .filter(|(stem, tail)| !stem.is_empty() && ATTACHED.contains(&tail.to_lowercase().as_str()));
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
    let before = at
        .checked_sub(1)
        .and_then(|before| words.get(before))
        .map_or("", |word| word.text.as_str());
    let mention = |length: usize, kinds, many, asks| KindMention {
        at: at..at + length,
        kinds,
        many,
        asks,
        owners: &[],
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
    let after = words.get(at + 1).map_or("", |word| word.text.as_str());
    let is_asked = || at == 0 || ASKING.contains(&before);
    // "the controls that …", "operations carried out by …", "malware behaviour"
    let is_described = || {
        let of_noun = || {
            at.checked_sub(1)
                .is_some_and(|before| mention_at(words, before).is_some())
        };
        (before == "the" && matches!(after, "that" | "which"))
            || (word == "operations" && OPERATED.contains(&after))
            || (listed(ASKED_PLURALS) == Some(TECHNIQUES) && of_noun())
    };
    if let Some(kinds) = listed(ASKED_PLURALS).filter(|_| is_asked() || is_described()) {
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
pub(super) const MAX_PLAIN: usize = 10;
const MAX_PHRASE: usize = 20;
/// Longest question, in words.
const MAX_QUESTION: usize = 48;

/// Whether the words ask rather than tell.
pub(super) fn asks(text: &str, words: &[Word]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let opens =
        OPENINGS.contains(&word(0)) || (PREPOSITIONS.contains(&word(0)) && OPENINGS.contains(&word(1)));
    let ends_with = |mark| text.trim_end().ends_with(mark);
    let ends = ends_with('.');
    let first = usize::from(!ends && matches!(word(0), "all" | "any" | "known" | "other"));
    let begins = |at: usize| mention_at(words, at).is_some_and(|mention| mention.many);
    // "The 2015 attack on …: malware of the group behind it"
    let after_mark = |at: usize| word_ends_in_arrow(words, at) && begins(at + 1);
    let is_phrase =
        || words.len() <= MAX_PHRASE && (begins(first) || (!ends && (0..words.len()).any(after_mark)));
    let has_topic = matches!(word(0), "for" | "given" | "of");
    let asks_later = || {
        let mut mentions = mentions(words, |_| false).into_iter();
        mentions.any(|mention| {
            (!ends && asks_at(words, &mention)) || ((has_topic || !ends) && lists_at(words, &mention))
        })
    };
    words.len() <= MAX_QUESTION
        && (opens || words.len() <= MAX_PLAIN || ends_with('?') || is_phrase() || asks_later())
}

fn word_ends_in_arrow(words: &[Word], at: usize) -> bool {
    words
        .get(at)
        .and_then(|word| word.mark)
        .is_some_and(super::is_arrow)
}

/// Whether the words before a mention ask for a list, after a mark: "For the malware of …, list the techniques".
fn lists_at(words: &[Word], mention: &KindMention) -> bool {
    let before = words.get(..mention.at.start).unwrap_or_default();
    let qualifies = |word: &&Word| QUALIFIERS.contains(&word.text.as_str());
    let mut before = before.iter().rev().skip_while(qualifies);
    let lists = before
        .next()
        .is_some_and(|word| LISTING.contains(&word.text.as_str()));
    lists && before.next().is_some_and(Word::ends_part)
}

/// Whether the word before a mention within a text asks for it: "In the campaigns of …, which techniques …", "… is used by
/// what groups". In "KillDisk, which malware researchers …" and "did not say what malware …" it only begins a clause.
fn asks_at(words: &[Word], mention: &KindMention) -> bool {
    let Some((before, asking)) = words
        .get(..mention.at.start)
        .and_then(|before| before.split_last())
        .map(|(asking, before)| (before, asking.text.as_str()))
    else {
        return false;
    };
    let last = before.last();
    let follows = |words: &[&str]| last.is_some_and(|last| words.contains(&last.text.as_str()));
    match asking {
        "what" => {
            let is_last = mention.at.end == words.len();
            is_last || follows(PREPOSITIONS) || follows(&["and"]) || last.is_some_and(Word::ends_part)
        }
        "which" => {
            let opens = before
                .first()
                .is_some_and(|word| PREPOSITIONS.contains(&word.text.as_str()));
            let only_part = before.iter().filter(|word| word.ends_part()).count() == 1;
            let mark = last.and_then(|word| word.mark);
            mark == Some(':') || (mark.is_some() && opens && only_part)
        }
        _ => false,
    }
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
    let by_whom = PREPOSITIONS.contains(&word(who.saturating_sub(1)));
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
pub(super) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.contains(&word)
}
