//! Lexer for STIX patterns (STIX 2.1 section 9.2 for literals, 9.1 for white space and comments).

use chrono::DateTime;

/// A token, with as much of its meaning as the grammar needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexeme {
    LeftBracket,
    RightBracket,
    LeftParen,
    RightParen,
    Colon,
    Dot,
    Comma,
    Asterisk,
    /// `=` `==` `!=` `<>`
    Equality,
    /// `<` `<=` `>` `>=`
    Ordering,
    Keyword(Keyword),
    /// An identifier; one with a hyphen can only be an object type.
    Name(Name),
    Text(Name),
    Binary,
    Hex,
    Timestamp,
    Boolean,
    /// Positive means greater than zero.
    Integer {
        positive: bool,
    },
    Float {
        positive: bool,
    },
}

impl Lexeme {
    pub(super) fn is_literal(&self) -> bool {
        matches!(
            self,
            Lexeme::Text(_)
                | Lexeme::Binary
                | Lexeme::Hex
                | Lexeme::Timestamp
                | Lexeme::Boolean
                | Lexeme::Integer { .. }
                | Lexeme::Float { .. }
        )
    }
}

/// What an identifier may name (section 3.1): the grammar alone would allow one-letter types that no object can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    /// 3 to 250 lower-case letters, digits and hyphens.
    pub(super) object_type: bool,
    /// 3 to 250 lower-case letters, digits and underscores, or `id`.
    pub(super) property: bool,
    pub(super) hyphen: bool,
}

impl Name {
    fn of(word: &str) -> Name {
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (3..=250).contains(&word.len());
        Name {
            object_type: fits
                && word
                    .split('-')
                    .all(|part| !part.is_empty() && part.bytes().all(lower)),
            property: word == "id" || (fits && word.bytes().all(|byte| lower(byte) || byte == b'_')),
            hyphen: word.contains('-'),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    FollowedBy,
    Like,
    Matches,
    IsSuperset,
    IsSubset,
    Exists,
    In,
    Start,
    Stop,
    Seconds,
    Within,
    Repeats,
    Times,
}

const KEYWORDS: [(&str, Keyword); 16] = [
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("NOT", Keyword::Not),
    ("FOLLOWEDBY", Keyword::FollowedBy),
    ("LIKE", Keyword::Like),
    ("MATCHES", Keyword::Matches),
    ("ISSUPERSET", Keyword::IsSuperset),
    ("ISSUBSET", Keyword::IsSubset),
    ("EXISTS", Keyword::Exists),
    ("IN", Keyword::In),
    ("START", Keyword::Start),
    ("STOP", Keyword::Stop),
    ("SECONDS", Keyword::Seconds),
    ("WITHIN", Keyword::Within),
    ("REPEATS", Keyword::Repeats),
    ("TIMES", Keyword::Times),
];

/// Splits a pattern into tokens.
pub(super) struct Lexer<'p> {
    rest: &'p str,
}

impl<'p> Lexer<'p> {
    pub(super) fn new(pattern: &'p str) -> Self {
        Lexer { rest: pattern }
    }

    /// All tokens; `None` if part of the text is not a token.
    pub(super) fn tokens(self) -> Option<Vec<Lexeme>> {
        let tokens = self.spelled_tokens()?;
        Some(tokens.into_iter().map(|(token, _)| token).collect())
    }

    /// All tokens with their texts; `None` if part of the text is not a token.
    pub(super) fn spelled_tokens(mut self) -> Option<Vec<(Lexeme, &'p str)>> {
        let mut tokens = Vec::new();
        loop {
            self.skip_blank()?;
            if self.rest.is_empty() {
                return Some(tokens);
            }
            let before = self.rest;
            let token = self.token()?;
            let length = before.len() - self.rest.len();
            tokens.push((token, before.get(..length)?));
        }
    }

    fn token(&mut self) -> Option<Lexeme> {
        let mut characters = self.rest.chars();
        let first = characters.next()?;
        let second = characters.next();
        match first {
            '\'' => self.quoted_text().map(|text| Lexeme::Text(Name::of(text))),
            't' | 'b' | 'h' if second == Some('\'') => self.prefixed_literal(first),
            'a'..='z' | 'A'..='Z' | '_' => Some(self.word()),
            '0'..='9' | '+' | '-' => self.number(),
            '.' if second.is_some_and(|next| next.is_ascii_digit()) => self.number(),
            _ => self.symbol(),
        }
    }

    fn symbol(&mut self) -> Option<Lexeme> {
        const SYMBOLS: [(&str, Lexeme); 16] = [
            ("==", Lexeme::Equality),
            ("!=", Lexeme::Equality),
            ("<>", Lexeme::Equality),
            ("<=", Lexeme::Ordering),
            (">=", Lexeme::Ordering),
            ("=", Lexeme::Equality),
            ("<", Lexeme::Ordering),
            (">", Lexeme::Ordering),
            ("[", Lexeme::LeftBracket),
            ("]", Lexeme::RightBracket),
            ("(", Lexeme::LeftParen),
            (")", Lexeme::RightParen),
            (":", Lexeme::Colon),
            (".", Lexeme::Dot),
            (",", Lexeme::Comma),
            ("*", Lexeme::Asterisk),
        ];
        let (text, token) = SYMBOLS.iter().find(|(text, _)| self.rest.starts_with(text))?;
        self.advance(text.len());
        Some(*token)
    }

    fn word(&mut self) -> Lexeme {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
            .unwrap_or(self.rest.len());
        let word = self.advance(end);
        if matches!(word, "true" | "false") {
            return Lexeme::Boolean;
        }
        match KEYWORDS.iter().find(|(text, _)| *text == word) {
            Some((_, keyword)) => Lexeme::Keyword(*keyword),
            None => Lexeme::Name(Name::of(word)),
        }
    }

    fn number(&mut self) -> Option<Lexeme> {
        let signed = self.rest.starts_with(['+', '-']);
        let body = self.rest.get(usize::from(signed)..)?;
        let whole = body.bytes().take_while(u8::is_ascii_digit).count();
        let after = &body[whole..];
        let fraction = match after.strip_prefix('.') {
            Some(decimals) => decimals.bytes().take_while(u8::is_ascii_digit).count(),
            None => 0,
        };
        let length = usize::from(signed) + whole + if fraction > 0 { fraction + 1 } else { 0 };
        let text = self.advance(length);
        let positive = !text.starts_with('-') && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        // A number must not run into a word, and 007 is not an integer.
        if self
            .rest
            .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        {
            return None;
        }
        match (whole, fraction) {
            (_, 1..) => Some(Lexeme::Float { positive }),
            (1, 0) => Some(Lexeme::Integer { positive }),
            (2.., 0) if !text.trim_start_matches(['+', '-']).starts_with('0') => {
                Some(Lexeme::Integer { positive })
            }
            _ => None,
        }
    }

    /// A literal with a prefix letter: `t'…'` is a timestamp, `b'…'` base64, `h'…'` hexadecimal.
    fn prefixed_literal(&mut self, kind: char) -> Option<Lexeme> {
        self.advance(1);
        let content = self.quoted_text()?;
        let (token, valid) = match kind {
            't' => (
                Lexeme::Timestamp,
                content.ends_with('Z')
                    && content.contains('T')
                    && DateTime::parse_from_rfc3339(content).is_ok(),
            ),
            'b' => (Lexeme::Binary, is_base64(content)),
            _ => (
                Lexeme::Hex,
                content.len().is_multiple_of(2) && content.bytes().all(|byte| byte.is_ascii_hexdigit()),
            ),
        };
        valid.then_some(token)
    }

    /// A quoted text; a backslash may only precede `'` or `\`.
    fn quoted_text(&mut self) -> Option<&'p str> {
        let body = self.rest.strip_prefix('\'')?;
        let mut characters = body.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\'' => {
                    self.advance(at + 2);
                    return Some(&body[..at]);
                }
                '\\' if !matches!(characters.next(), Some((_, '\'' | '\\'))) => return None,
                _ => {}
            }
        }
        None
    }

    /// Skips white space, `// …` and `/* … */`.
    fn skip_blank(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = &comment[comment.find("*/")? + 2..];
            } else if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = &comment[comment.find(['\n', '\r']).unwrap_or(comment.len())..];
            } else {
                return Some(());
            }
        }
    }

    fn advance(&mut self, bytes: usize) -> &'p str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}
