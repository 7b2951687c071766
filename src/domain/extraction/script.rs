//! Where one script ends and another begins.
//!
//! Chinese, Japanese and Thai put no space between words, Korean and others attach particles, and a text in any script may
//! attach a word to a value. Values and the names of the field are Latin, so there a word ends where its script does.

/// Whether a character is a Latin letter or an ASCII digit.
pub(super) fn is_latin(c: char) -> bool {
    match c {
        '\0'..='\u{7f}' => c.is_ascii_alphanumeric(),
        '\u{80}'..='\u{24f}'
        | '\u{250}'..='\u{2af}'
        | '\u{1d00}'..='\u{1d7f}'
        | '\u{1e00}'..='\u{1eff}'
        | '\u{2c60}'..='\u{2c7f}'
        | '\u{a720}'..='\u{a7ff}'
        | '\u{ff10}'..='\u{ff5a}'
        | '\u{1d400}'..='\u{1d7ff}' => c.is_alphanumeric(),
        _ => false,
    }
}

/// Whether two letters or digits that stand side by side belong to two words: one is Latin and the other is not.
pub(super) fn is_edge(left: char, right: char) -> bool {
    is_of_word(left) && is_of_word(right) && is_latin(left) != is_latin(right)
}

/// Where the script of the first word of a text ends, if another one follows directly.
pub(super) fn edge(text: &str) -> Option<usize> {
    let mut previous = None;
    // An accent is of the script of its letter.
    let mut chars = text
        .char_indices()
        .filter(|(_, c)| !matches!(c, '\u{300}'..='\u{36f}'));
    let found = chars.find(|(_, c)| {
        let left = previous.replace(*c);
        left.is_some_and(|left| is_edge(left, *c))
    });
    found.map(|(at, _)| at)
}

/// Whether a character is a letter, a digit or a mark on a letter.
pub(super) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Whether a letter is of a script that puts no space between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{fff}' // Thai, Lao, Tibetan
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // Japanese
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' // Chinese
        | '\u{ff66}'..='\u{ff9f}')
}

/// Whether a character is a mark on a letter, such as the tone of a Thai or the vowel of an Arabic one.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94d}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}' | '\u{3099}'..='\u{309a}')
}
