//! Parts of a text without delimiters, and the classes of their bytes.

use super::script::is_mark;

pub(super) const HEX: u16 = 1;
pub(super) const ALPHA: u16 = 1 << 1;
pub(super) const DIGIT: u16 = 1 << 2;
pub(super) const DOT: u16 = 1 << 3;
pub(super) const DASH: u16 = 1 << 4;
pub(super) const UNDER: u16 = 1 << 5;
pub(super) const SLASH: u16 = 1 << 6;
pub(super) const BACKSLASH: u16 = 1 << 7;
pub(super) const COLON: u16 = 1 << 8;
pub(super) const AT: u16 = 1 << 9;
pub(super) const OTHER: u16 = 1 << 10;
pub(super) const HIGH: u16 = 1 << 11;

const CLASS: [u16; 256] = classes();

const fn classes() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'f' | b'A'..=b'F' => HEX,
            b'g'..=b'z' | b'G'..=b'Z' => ALPHA,
            b'0'..=b'9' => DIGIT,
            b'.' => DOT,
            b'-' => DASH,
            b'_' => UNDER,
            b'/' => SLASH,
            b'\\' => BACKSLASH,
            b':' => COLON,
            b'@' => AT,
            b'%' | b'+' | b'~' | b'$' => OTHER,
            128.. => HIGH,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// A part of the text without delimiters, with the classes of its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub text: &'t str,
    pub start: usize,
    pub classes: u16,
}

impl<'t> Token<'t> {
    pub fn new(text: &'t str, start: usize) -> Self {
        let classes = text.bytes().fold(0, |all, byte| all | CLASS[usize::from(byte)]);
        Token { text, start, classes }
    }

    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn span(&self) -> std::ops::Range<usize> {
        self.start..self.end()
    }

    pub fn has(&self, class: u16) -> bool {
        self.classes & class != 0
    }

    /// Whether all bytes are of these classes.
    pub fn is_only(&self, classes: u16) -> bool {
        self.classes & !classes == 0
    }

    /// Without punctuation that ends a sentence or starts an extension.
    pub(super) fn trim_punctuation(&self) -> Token<'t> {
        let from_left = self.text.trim_start_matches(['.', '-', ':', '+', '@', '_', '~']);
        let start = self.start + self.text.len() - from_left.len();
        let text = from_left.trim_end_matches(['.', '-', ':', '+', '@', '_', '/', '\\', '~', '%', '$']);
        Token::new(text, start)
    }
}

/// Letters and digits of other scripts belong to tokens; their punctuation does not.
pub(super) fn class(c: char) -> u16 {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => CLASS[usize::from(byte)],
        Ok(_) | Err(_) if c.is_alphanumeric() || is_mark(c) => HIGH,
        Ok(_) | Err(_) => 0,
    }
}
