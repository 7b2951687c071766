//! Tells statements from questions: a sentence that states something is no question about the names in it.

use super::asking::{MAX_PHRASE, MAX_PLAIN, MAX_QUESTION, has_question};
use super::sentence::Sentence;
use super::words::{Word, words};

/// Words of the shortest statement, and of the shortest one in which no verb was found: less is hardly more than a name.
const SHORTEST: usize = 4;
const SHORTEST_WITHOUT_VERB: usize = 5;

/// Whether a text states something rather than asks for it or merely lists words. What such a text says then weighs more
/// than the names in it.
pub fn is_statement(text: &str) -> bool {
    is_statement_of(text, &words(text))
}

/// See [`is_statement`].
pub(super) fn is_statement_of(text: &str, words: &[Word]) -> bool {
    if states(text, words) {
        return true;
    }
    if text.trim_end().ends_with('?') || has_question(text, words) {
        return false;
    }
    // The verb may be one that nobody listed.
    let sentence = Sentence::of(text, words);
    let is_phrase = words.len() <= MAX_PHRASE && sentence.begins_with_kind();
    let is_sentence = sentence.is_ended && words.len() >= SHORTEST_WITHOUT_VERB;
    !is_phrase && (is_sentence || words.len() > MAX_PLAIN)
}

/// Whether a text states something by a verb, or is longer than any question.
pub(super) fn states(text: &str, words: &[Word]) -> bool {
    let is_long = words.len() > MAX_QUESTION;
    let has_verb = || !has_question(text, words) && Sentence::of(text, words).has_main_verb();
    !text.trim_end().ends_with('?') && words.len() >= SHORTEST && (is_long || has_verb())
}

#[cfg(test)]
mod tests;
