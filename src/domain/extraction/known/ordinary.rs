//! Which names are ordinary words.

use std::sync::LazyLock;

use hashbrown::HashSet;

use crate::domain::extraction::introductions::is_ordinary;
use crate::domain::extraction::script::{is_latin, is_unspaced};
use crate::domain::extraction::word_lists::COMMON_WORDS;

/// Letters and digits from which a name may be more than an abbreviation.
const MIN_LATIN: usize = 4;
const MIN_OTHER: usize = 3;

static COMMON: LazyLock<HashSet<&'static str>> = LazyLock::new(|| COMMON_WORDS.iter().copied().collect());

/// Whether this is an ordinary English word, in any case, or its plural. A word of two letters always is.
pub(super) fn is_common(word: &str) -> bool {
    if word.len() < 3 {
        return word.is_ascii();
    }
    if !word.is_ascii() {
        return false;
    }
    let lower;
    let word = if word.bytes().any(|b| b.is_ascii_uppercase()) {
        lower = word.to_ascii_lowercase();
        lower.as_str()
    } else {
        word
    };
    COMMON.contains(word) || word.strip_suffix('s').is_some_and(|one| COMMON.contains(one))
}

/// Whether a name is more than ordinary words, so that it needs no particular case.
pub(super) fn is_distinct(name: &str) -> bool {
    let words = || {
        name.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
    };
    let letters: usize = words().map(|word| word.chars().count()).sum();
    let has_digit = name.contains(|c: char| c.is_ascii_digit());
    let least = if name.chars().any(is_latin) && !has_digit {
        MIN_LATIN
    } else {
        MIN_OTHER
    };
    let is_rare = |word: &str| {
        let chars = word.chars().count();
        let number = word.chars().all(char::is_numeric);
        !number && chars > 1 && (!is_common(word) || word.contains(|c: char| c.is_ascii_digit()))
    };
    letters >= least && words().any(is_rare)
}

/// Whether the words of a name say what something is, and not how it is called: "Main Module".
pub(super) fn is_description(name: &str) -> bool {
    let words: Vec<&str> = name
        .split([' ', '-', '_'])
        .filter(|word| !word.is_empty())
        .collect();
    is_ordinary(&words)
}

/// Whether a name is written in a script without spaces.
pub(super) fn is_of_unspaced(name: &str) -> bool {
    name.chars().next().is_some_and(is_unspaced)
}
