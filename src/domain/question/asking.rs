//! Whether a text asks rather than tells.

use super::lexicon::{List, verb_form};
use super::sentence::Sentence;
use super::statement::states;
use super::words::{KindMention, Word, asks_by_whom, is_function_word, mention_at, mentions};

/// Longest question without a word or mark that asks, and longest one that only begins with what it asks for, in words.
pub(super) const MAX_PLAIN: usize = 10;
pub(super) const MAX_PHRASE: usize = 20;
/// Longest question, in words.
pub(super) const MAX_QUESTION: usize = 48;

/// Whether the words ask rather than tell.
pub(super) fn asks(text: &str, words: &[Word]) -> bool {
    let is_plain = || words.len() <= MAX_PLAIN;
    let is_phrase = || words.len() <= MAX_PHRASE && Sentence::of(text, words).begins_with_kind();
    let is_question = text.trim_end().ends_with('?') || has_question(text, words);
    words.len() <= MAX_QUESTION && (is_question || (!states(text, words) && (is_plain() || is_phrase())))
}

/// Whether words of a text put a question, at its beginning or later.
pub(super) fn has_question(text: &str, words: &[Word]) -> bool {
    let sentence = Sentence::of(text, words);
    let ends = sentence.is_ended;
    let has_topic = matches!(word(words, 0), "for" | "given" | "of");
    let asks_later = || {
        let mut mentions = mentions(words, |_| false).into_iter();
        mentions.any(|mention| {
            (!ends && asks_at(words, &mention)) || ((has_topic || !ends) && lists_at(words, &mention))
        })
    };
    let asks_inside = || (1..words.len()).any(|at| asks_inside_at(words, at));
    opens(words) || asks_later() || (!ends && (ends_in_phrase(text, words) || asks_inside()))
}

fn word(words: &[Word], at: usize) -> &str {
    words.get(at).map_or("", |word| word.text.as_str())
}

/// Whether a text begins as questions and requests do.
fn opens(words: &[Word]) -> bool {
    let has_comma = || words.iter().any(|word| word.mark == Some(','));
    match word(words, 0) {
        "i" | "we" => !tells(words),
        // "When the operators arrived, …" tells a time.
        "when" | "where" => List::Openings.has(word(words, 1)) || !has_comma(),
        first => {
            List::Openings.has(first)
                || first == "why"
                || requests(words)
                || (List::Prepositions.has(first) && List::Asking.has(word(words, 1)))
        }
    }
}

/// Whether a text begins with a request for things of a kind: "Looking for groups that …", but not "Provide operators with …".
fn requests(words: &[Word]) -> bool {
    let mut mentions = mentions(words, |_| false).into_iter();
    let noun = mentions.next().filter(|noun| noun.many).map(|noun| noun.at.start);
    let between = noun.and_then(|noun| words.get(1..noun)).unwrap_or_default();
    let is_vague = |word: &Word| is_function_word(&word.text) || word.is(List::Qualifiers);
    let is_direct = word(words, 0) == "identify" && noun == Some(1);
    List::Requests.has(word(words, 0)) && (is_direct || !between.is_empty()) && between.iter().all(is_vague)
}

/// Whether the first person states what was seen: "We found …", "I have also observed …".
fn tells(words: &[Word]) -> bool {
    let is_before_verb = |word: &&Word| {
        matches!(
            word.text.as_str(),
            "have" | "had" | "also" | "then" | "first" | "recently"
        )
    };
    let mut verbs = words.iter().skip(1).skip_while(is_before_verb);
    verbs.next().is_some_and(|verb| {
        let verb = verb.text.as_str();
        List::Observing.has(verb) || (verb.ends_with("ed") && !List::AskingPast.has(verb))
    })
}

/// Whether a phrase behind a mark is what is asked for: "The 2015 attack on …: malware of the group behind it".
fn ends_in_phrase(text: &str, words: &[Word]) -> bool {
    let is_arrow = |at: usize| {
        words
            .get(at)
            .and_then(|word| word.mark)
            .is_some_and(super::is_arrow)
    };
    let begins = |at: usize| mention_at(words, at).is_some_and(|mention| mention.many);
    let mut phrases = (0..words.len()).filter(|at| is_arrow(*at) && begins(at + 1));
    let is_heading = |at: usize| {
        let first = mentions(words, |_| false).into_iter().next();
        first.is_some_and(|first| first.at == (0..at + 1))
    };
    words.len() <= MAX_PHRASE
        && phrases.any(|at| {
            let rest = words.get(at + 1..).unwrap_or_default();
            is_heading(at) || !Sentence::of(text, rest).has_main_verb()
        })
}

/// Whether a word within a text that no full stop ends asks: "Sandworm used which malware …", "…: who has it".
fn asks_inside_at(words: &[Word], at: usize) -> bool {
    let asking = word(words, at);
    if !List::Asking.has(asking) {
        return false;
    }
    let before = |places: usize| at.checked_sub(places).map_or("", |at| word(words, at));
    let follows = before(1);
    let is_indirect = List::Indirect.has(follows);
    match (words.get(at - 1).and_then(|word| word.mark), asking) {
        (Some(','), "who" | "whom") => asks_by_whom(words, at),
        // Other clauses behind a comma are left to `asks_at`.
        (Some(','), _) => false,
        (Some(_), _) => true,
        (None, "how" | "why" | "when" | "where") => at + 1 == words.len() && !is_indirect,
        (None, "what") => !is_indirect,
        (None, _) => {
            let by = List::Prepositions.has(follows);
            // Behind a noun it begins a clause about it.
            let head = if by { before(2) } else { follows };
            let is_last =
                || (at + 1..words.len()).all(|at| mention_at(words, at).is_some()) && at + 1 < words.len();
            matches!(follows, "and" | "or")
                || (verb_form(head).is_some() && !List::Indirect.has(head))
                || (by && is_last())
        }
    }
}

/// Whether the words before a mention ask for a list, after a mark: "For the malware of …, list the techniques".
fn lists_at(words: &[Word], mention: &KindMention) -> bool {
    let before = words.get(..mention.at.start).unwrap_or_default();
    let qualifies = |word: &&Word| word.is(List::Qualifiers);
    let mut before = before.iter().rev().skip_while(qualifies);
    let lists = before.next().is_some_and(|word| word.is(List::Listing));
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
    let follows = |list: List| last.is_some_and(|last| last.is(list));
    match asking {
        "what" => {
            let is_last = mention.at.end == words.len();
            is_last
                || follows(List::Prepositions)
                || last.is_some_and(|last| last.text == "and")
                || last.is_some_and(Word::ends_part)
        }
        "which" => {
            let opens = before.first().is_some_and(|word| word.is(List::Prepositions));
            let only_part = before.iter().filter(|word| word.ends_part()).count() == 1;
            let mark = last.and_then(|word| word.mark);
            mark == Some(':') || (mark.is_some() && opens && only_part)
        }
        _ => false,
    }
}
