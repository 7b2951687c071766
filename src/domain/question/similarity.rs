//! How well the names of things fit words of a question that name none of them in full.

use super::words;

/// Least share of the words that stand for a thing which must be part of its name.
const SIMILAR: f32 = 0.5;
/// Weight of the share of a name that the words make up. It decides only among equal ones.
const OF_NAME: f32 = 0.01;

/// How well a node's names fit the words that a question has for a thing: the share of the words that are part of them,
/// and among equal ones the share of the name that the words make up; 0 if that is not enough to take the node for the
/// thing. An identifier among the words, such as `updmngr_k9`, must be part of the name: nothing else is meant by it.
pub fn name_similarity<'n>(subject: &[&str], names: impl Iterator<Item = &'n str>) -> f32 {
    let fitting = names
        .map(|name| shares(subject, name))
        .filter(|(of_words, _)| *of_words >= SIMILAR);
    let rated = fitting.map(|(of_words, of_name)| of_words + of_name * OF_NAME);
    rated.fold(0.0, f32::max)
}

/// Whether a word is an identifier by its form: letters with digits, or joined by `_` or `\\`.
fn is_identifier(word: &str) -> bool {
    let has_letters = word.chars().any(char::is_alphabetic);
    has_letters && (word.chars().any(|c| c.is_ascii_digit()) || word.contains(['_', '\\']))
}

/// The share of the words that are part of a name, and the share of the name that they make up.
fn shares(subject: &[&str], name: &str) -> (f32, f32) {
    let name = name.to_lowercase();
    if subject
        .iter()
        .any(|word| is_identifier(word) && !name.contains(word))
    {
        return (0.0, 0.0);
    }
    let parts: Vec<&str> = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| part.len() > 2)
        .collect();
    let alike = |word: &str, part: &str| {
        let shorter = word.len().min(part.len());
        let beginning = shorter.min(5.max(shorter * 2 / 3));
        word == part
            || (shorter > 3
                && word.get(..beginning).is_some()
                && word.get(..beginning) == part.get(..beginning))
            || (word.len() > 4 && part.ends_with(word))
    };
    let pieces: Vec<&str> = subject
        .iter()
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric()))
        .filter(|piece| piece.len() > 2 && !words::is_function_word(piece))
        .collect();
    let found = pieces
        .iter()
        .filter(|piece| parts.iter().any(|part| alike(piece, part)));
    let made_up = parts
        .iter()
        .filter(|part| pieces.iter().any(|piece| alike(piece, part)));
    (
        found.count() as f32 / pieces.len().max(1) as f32,
        made_up.count() as f32 / parts.len().max(1) as f32,
    )
}
