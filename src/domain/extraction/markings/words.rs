//! The words of a text with what stands between them.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::layout::is_line_end;
use crate::domain::cursor::Cursor;

/// Longest word that is compared, in bytes.
const LONGEST: usize = 40;

/// A run of letters and digits, and the separators before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Word<'t> {
    pub gap: &'t str,
    pub text: &'t str,
}

impl Word<'_> {
    /// The word without case and accents; empty if it is longer than any that is looked for.
    pub(super) fn key(&self) -> String {
        if self.text.len() > LONGEST {
            return String::new();
        }
        if self.text.is_ascii() {
            return self.text.to_ascii_lowercase();
        }
        let letters = self.text.nfkd().filter(|c| !is_combining_mark(*c));
        letters
            .flat_map(char::to_lowercase)
            .filter(|c| !is_combining_mark(*c))
            .collect()
    }

    /// The key with letters of other alphabets in place of the Latin ones they look like.
    pub(super) fn latin_key(&self) -> String {
        self.key().chars().map(latin).collect()
    }

    pub(super) fn begins_small(&self) -> bool {
        self.text.starts_with(char::is_lowercase)
    }

    pub(super) fn has_small_letters(&self) -> bool {
        self.text.contains(char::is_lowercase)
    }

    pub(super) fn has_case(&self) -> bool {
        self.text.contains(|c: char| c.is_lowercase() || c.is_uppercase())
    }

    /// Whether a line ends before it.
    pub(super) fn crosses_line(&self) -> bool {
        self.gap.contains(is_line_end)
    }

    /// Whether only blanks of one line stand before it.
    pub(super) fn follows_blank(&self) -> bool {
        !self.gap.is_empty() && self.gap.chars().all(is_blank)
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() && !is_line_end(c)
}

fn latin(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ι' => 'i',
        'к' | 'κ' => 'k',
        'м' | 'μ' => 'm',
        'н' => 'h',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'у' => 'y',
        'ӏ' => 'l',
        'ԝ' => 'w',
        'ν' => 'n',
        other => other,
    }
}

/// Reads words one after the other.
#[derive(Debug, Clone)]
pub(super) struct Words<'t> {
    text: &'t str,
    cursor: Cursor<'t>,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            cursor: Cursor::new(text),
        }
    }

    /// The word after this, without moving on.
    pub(super) fn peek(&self) -> Option<Word<'t>> {
        self.clone().next()
    }

    /// What stands before the next word, or before the end of the text.
    pub(super) fn gap(&self) -> &'t str {
        let mut cursor = self.cursor.clone();
        cursor.skip_while(|c| !is_of_word(c));
        self.text.get(self.cursor.at()..cursor.at()).unwrap_or_default()
    }

    /// Whether nothing more of the sentence follows: the text or the line ends, or punctuation stands there.
    pub(super) fn is_at_end(&self) -> bool {
        let mut cursor = self.cursor.clone();
        cursor.skip_while(is_blank);
        cursor.peek().is_none_or(|c| !is_of_word(c))
    }

    /// The next character of the line that is neither blank nor emphasis.
    pub(super) fn on_line(&self) -> Option<char> {
        let mut cursor = self.cursor.clone();
        cursor.skip_while(|c| is_blank(c) || matches!(c, '*' | '_' | '"' | '\'' | '`' | '”' | '»'));
        cursor.peek().filter(|c| !is_line_end(*c))
    }

    /// The next character.
    pub(super) fn following(&self) -> Option<char> {
        self.cursor.peek()
    }
}

impl<'t> Iterator for Words<'t> {
    type Item = Word<'t>;

    fn next(&mut self) -> Option<Word<'t>> {
        let gap = self.gap();
        let mut cursor = self.cursor.clone();
        let first = cursor.at() + gap.len();
        cursor.skip_to(first);
        let script = script(cursor.bump()?);
        if script != Script::Symbol {
            cursor.skip_while(|c| is_of_word(c) && self::script(c) == script);
        }
        self.cursor = cursor;
        Some(Word {
            gap,
            text: self.text.get(first..self.cursor.at())?,
        })
    }
}

pub(super) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || script(c) == Script::Symbol
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Script {
    /// Latin, Greek, Cyrillic; digits.
    Alphabet,
    /// Scripts that are written without blanks, or beside Latin names.
    Other,
    /// Coloured shapes, each a word.
    Symbol,
}

fn script(c: char) -> Script {
    match c {
        '\0'..='\u{58f}' | '\u{1c80}'..='\u{1fff}' | '\u{2c60}'..='\u{2c7f}' | '\u{a720}'..='\u{a7ff}' => {
            Script::Alphabet
        }
        '\u{26aa}' | '\u{2b1c}' | '\u{1f534}' | '\u{1f7e0}'..='\u{1f7e9}' => Script::Symbol,
        _ => Script::Other,
    }
}

/// What stands between `TLP` and its level, as far as it was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link {
    /// Whether a colon or the like stands directly before the level.
    pub colon: bool,
    /// Whether a line ends in between.
    pub line: bool,
    /// Whether a sentence or part of one may end in between.
    pub sentence: bool,
    /// Whether nothing but dots, hyphens and the like stands in between, as in names of hosts and files.
    pub joined: bool,
}

impl Link {
    pub(super) fn of(gap: &str) -> Self {
        let mut link = Self {
            joined: true,
            ..Self::default()
        };
        let mut before = None;
        for c in gap.chars() {
            link.colon |= matches!(
                c,
                ':' | '=' | '\u{2236}' | '\u{a789}' | '\u{5c3}' | '→' | '⇒' | '➔'
            );
            link.line |= is_line_end(c);
            let ends = before.is_some_and(|c| matches!(c, '.' | '!' | '?' | ',' | ';'));
            link.sentence |= ends && c.is_whitespace() || matches!(c, '。' | '、' | '，');
            link.joined &= matches!(c, '.' | '-' | '_');
            before = Some(c);
        }
        link
    }

    /// This link followed by another one.
    pub(super) fn then(self, next: Self) -> Self {
        Self {
            colon: next.colon,
            line: self.line || next.line,
            sentence: self.sentence || next.sentence,
            joined: self.joined && next.joined,
        }
    }
}
