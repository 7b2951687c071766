//! Finds the nodes that hold an exact rare word of a query, such as a code word, a service or the name of a file: they
//! lead, however alike in meaning others are.
//!
//! A word is rare if few nodes that the caller may see hold it whole, and it is a code word: an identifier by its form,
//! or nothing that the vocabulary knows. In a query of one word any word is. Ordinary words are rare by accident, and so are
//! unknown ones in a text that asks nothing, or in a language that the vocabulary doesn't know: they are left to the ranking.

use std::collections::HashMap;

use uuid::Uuid;

use super::phrases::TEXT_WORDS;
use crate::domain::question::is_statement;
use crate::search::document::CompiledFilter;
use crate::search::error::SearchError;
use crate::search::keyword::{Keywords, TextScope};
use crate::search::text;
use crate::search::text::analyzer::tokenize;
use crate::search::text::vocabulary::{is_foreign, is_ordinary};

/// Most nodes that hold a rare word.
const FEW: usize = 3;
/// Most words of a text that asks in which an unknown word is looked up.
const LONG_TEXT: f32 = 24.0;
/// Letters of the shortest word, and unknown words, that tell the language of a query.
const TELLING: usize = 4;
const MIN_UNKNOWN: usize = 3;
/// Length of the shortest identifier of digits alone, such as an address or date.
const MIN_DIGITS: usize = 7;

/// What a word of a query may be, by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordForm {
    Identifier,
    /// A word or hyphenated words that no vocabulary knows.
    Unknown,
    Ordinary,
}

/// A query whose rare words are looked up.
pub(super) struct RareQuery<'q> {
    pub(in crate::search) text: &'q str,
    /// The words that are no names, a bounded number.
    pub(in crate::search) words: Vec<&'q str>,
    /// How many words the query has without stop words.
    pub(in crate::search) total: f32,
}

/// The nodes that hold rare words of a query, and how many.
pub(super) fn holders_of_rare(
    query: &RareQuery<'_>,
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
) -> Result<HashMap<Uuid, usize>, SearchError> {
    let words: Vec<(&str, WordForm)> = query.words.iter().map(|word| (*word, form(word))).collect();
    let is_text = query.total >= TEXT_WORDS as f32;
    let may_be_unknown =
        is_known_language(&words) && (!is_text || (query.total <= LONG_TEXT && !is_statement(query.text)));
    let mut found: HashMap<Uuid, usize> = HashMap::new();
    let mut by_unknown = Vec::new();
    for (word, form) in words {
        let may_be_rare = match form {
            WordForm::Identifier => true,
            WordForm::Unknown => may_be_unknown,
            WordForm::Ordinary => query.total <= 1.0,
        };
        if !may_be_rare {
            continue;
        }
        let Some(holders) = rare_holders(word, allowed, keywords)? else {
            continue;
        };
        if is_text && form == WordForm::Unknown {
            by_unknown.push(holders);
        } else {
            count(&mut found, &holders);
        }
    }
    // If a text has several of them, they are likely words of its language.
    if let [holders] = by_unknown.as_slice() {
        count(&mut found, holders);
    }
    Ok(found)
}

fn count(found: &mut HashMap<Uuid, usize>, holders: &[Uuid]) {
    for node in holders {
        *found.entry(*node).or_default() += 1;
    }
}

/// The nodes that hold a word; `None` if it is not rare. A word is as rare as it is, whatever the caller asks of results.
fn rare_holders(
    word: &str,
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
) -> Result<Option<Vec<Uuid>>, SearchError> {
    // The first token is the whole word, those after it are its parts.
    let Some(token) = tokenize(word).into_iter().next() else {
        return Ok(None);
    };
    let Some(widest) = allowed.widest() else {
        let holders = keywords.holders(TextScope::Nodes, &token, allowed, FEW)?;
        return Ok(holders.filter(|holders| !holders.is_empty()));
    };
    match keywords.holders(TextScope::Nodes, &token, widest, FEW)? {
        Some(all) if !all.is_empty() => keywords.holders(TextScope::Nodes, &token, allowed, FEW),
        Some(_) | None => Ok(None),
    }
}

/// Whether the vocabulary knows the language of these words. A few unknown ones, such as a name and a code word, don't tell it.
fn is_known_language(words: &[(&str, WordForm)]) -> bool {
    let is_telling = |word: &str| word.chars().count() >= TELLING && !tokenize(word).is_empty();
    let told = words
        .iter()
        .filter(|(word, form)| *form != WordForm::Identifier && is_telling(word));
    let forms: Vec<WordForm> = told.map(|(_, form)| *form).collect();
    let unknown = forms.iter().filter(|form| **form == WordForm::Unknown).count();
    let foreign = words.iter().filter(|(word, _)| is_foreign(word)).count();
    let is_foreign = foreign > 1 || (foreign == 1 && unknown > 1);
    !is_foreign && (unknown < MIN_UNKNOWN || unknown * 2 <= forms.len())
}

/// Whether a word is an identifier by its form, or nothing that the vocabulary knows.
pub fn is_code_word(word: &str) -> bool {
    text::words(word).any(|word| form(word) != WordForm::Ordinary)
}

fn form(word: &str) -> WordForm {
    let has_digits = word.chars().any(|c| c.is_ascii_digit());
    let has_letters = word.chars().any(char::is_alphabetic);
    let is_joined = word.contains(['_', '.', '\\', ':', '@', '#', '$']);
    // "U.S." and "e.g." are joined letters.
    let has_piece = || {
        let mut pieces = word.split(|c: char| !c.is_alphanumeric());
        pieces.any(|piece| piece.chars().count() > 1)
    };
    match (has_letters, has_digits) {
        (true, true) => return WordForm::Identifier,
        (true, false) if is_joined && has_piece() => return WordForm::Identifier,
        (false, true) if word.len() >= MIN_DIGITS && !word.bytes().all(|b| b.is_ascii_digit()) => {
            return WordForm::Identifier;
        }
        (true | false, _) => {}
    }
    let is_known =
        |piece: &str| !text::lexicon::knows(piece) && tokenize(piece).iter().all(|token| is_ordinary(token));
    let pieces = word.split(|c: char| !c.is_alphanumeric());
    // Numbers alone are no code words.
    let mut words = pieces.filter(|piece| piece.chars().any(char::is_alphabetic));
    if words.any(|piece| !is_known(piece)) {
        WordForm::Unknown
    } else {
        WordForm::Ordinary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_words_are_told_by_their_form() {
        for (word, want) in [
            ("svcqx17", WordForm::Identifier),
            ("updmngr_k9", WordForm::Identifier),
            ("Global\\Vx-lock", WordForm::Identifier),
            ("msdtcx.dll", WordForm::Identifier),
            ("proj:zx", WordForm::Identifier),
            ("203.0.113.7", WordForm::Identifier),
            ("CVE-2024-3094", WordForm::Identifier),
            ("zusuzuze", WordForm::Unknown),
            ("windows-poqe", WordForm::Unknown),
            ("HenyvagiServer", WordForm::Unknown),
            ("/agent/hetu", WordForm::Unknown),
            ("malware", WordForm::Ordinary),
            ("leaves", WordForm::Ordinary),
            ("read/write", WordForm::Ordinary),
            ("U.S", WordForm::Ordinary),
            ("2024", WordForm::Ordinary),
            ("4444444", WordForm::Ordinary),
        ] {
            assert_eq!(form(word), want, "{word}");
        }
    }

    #[test]
    fn languages_are_told_by_their_words() {
        let is_known = |query: &str| {
            let words: Vec<(&str, WordForm)> = text::words(query).map(|word| (word, form(word))).collect();
            is_known_language(&words)
        };
        for query in [
            "zusuzuze",
            "Sandworm zusuzuze",
            "network zusuzuze",
            "which malware leaves zusuzuze on the servers",
            "malware of the Sandworm Team that leaves zusuzuze",
            "svcqx17 updmngr_k9 msdtcx.dll",
            "",
        ] {
            assert!(is_known(query), "{query}");
        }
        for query in [
            "Die Angreifer nutzten das Werkzeug gegen den Hafen",
            "wer steckt hinter dem Angriff auf die Stadtverwaltung",
            "Angriff auf Krankenhaus mit Erpressungssoftware",
            "El grupo utilizó un programa malicioso contra el puerto",
            "¿Qué malware se usó contra los hospitales de España?",
            "Les attaquants ont utilisé un logiciel malveillant contre le port",
            "Gli aggressori hanno usato un programma contro il porto",
            "De aanvallers gebruikten schadelijke software tegen de haven",
            "Atakujący użyli złośliwego oprogramowania przeciwko szpitalom",
            "Злоумышленники использовали вредоносную программу против порта",
        ] {
            assert!(!is_known(query), "{query}");
        }
    }
}
