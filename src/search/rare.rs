//! Finds the nodes that hold an exact rare word of a query, such as a code word, a service or the name of a file: they
//! lead, however alike in meaning others are.
//!
//! A word is rare if few nodes that the caller may see hold it whole, and it is a code word: an identifier by its form,
//! or nothing that the vocabulary knows. In a query of one word any word is. Ordinary words are rare by accident, and in
//! a text even unknown ones are, so both are left to the ranking.

use std::collections::HashMap;

use uuid::Uuid;

use super::analyzer::tokenize;
use super::document::CompiledFilter;
use super::error::SearchError;
use super::keyword::Keywords;
use super::phrases::TEXT_WORDS;
use super::text;
use super::vocabulary::is_ordinary;

/// Most nodes that hold a rare word.
const FEW: usize = 3;
/// Most words of a text whose identifiers are looked up.
const LONG_TEXT: f32 = 24.0;
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

/// The nodes that hold rare words of a query, and how many. `total` is the number of its words without stop words.
pub(super) fn holders_of_rare<'w>(
    words: impl Iterator<Item = &'w str>,
    total: f32,
    allowed: &CompiledFilter,
    keywords: &Keywords<'_>,
) -> Result<HashMap<Uuid, usize>, SearchError> {
    let mut found: HashMap<Uuid, usize> = HashMap::new();
    if total > LONG_TEXT {
        return Ok(found);
    }
    for word in words {
        // The first token is the whole word, those after it are its parts.
        let Some(token) = tokenize(word).into_iter().next() else {
            continue;
        };
        let may_be_rare = match form(word) {
            WordForm::Identifier => true,
            WordForm::Unknown => total < TEXT_WORDS as f32,
            WordForm::Ordinary => total <= 1.0,
        };
        if !may_be_rare {
            continue;
        }
        // A word is as rare as it is, whatever the caller asks of results.
        let everywhere = allowed.widest().unwrap_or(allowed);
        if keywords.holders(&token, everywhere, FEW)?.is_none() {
            continue;
        }
        for node in keywords.holders(&token, allowed, FEW)?.unwrap_or_default() {
            *found.entry(node).or_default() += 1;
        }
    }
    Ok(found)
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
    let is_known = |piece: &str| tokenize(piece).iter().all(|token| is_ordinary(token));
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
}
