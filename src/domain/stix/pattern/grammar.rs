//! The grammar of STIX patterns (STIX 2.1 section 9): a recursive-descent recogniser over a small lexer.
//!
//! It builds no tree. Nesting is bounded, so a pattern with a million brackets causes an error rather
//! than a stack overflow.

use super::lexer::{Keyword, Lexeme, Lexer};

/// Ten times deeper than any published pattern.
const MAX_DEPTH: usize = 64;

/// Whether the whole text is one pattern: observation expressions with qualifiers, and nothing after them.
pub fn is_well_formed(pattern: &str) -> bool {
    let Some(tokens) = Lexer::new(pattern).tokens() else {
        return false;
    };
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        depth: 0,
    };
    parser.observations().is_some() && parser.next == tokens.len()
}

struct Parser<'t> {
    tokens: &'t [Lexeme],
    next: usize,
    depth: usize,
}

/// `None` means "does not parse"; errors carry no detail.
type ParseResult = Option<()>;

impl Parser<'_> {
    fn peek(&self) -> Option<&Lexeme> {
        self.tokens.get(self.next)
    }

    fn accept(&mut self, token: &Lexeme) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    fn keyword(&mut self, keyword: Keyword) -> bool {
        self.accept(&Lexeme::Keyword(keyword))
    }

    fn expect(&mut self, token: &Lexeme) -> ParseResult {
        self.accept(token).then_some(())
    }

    fn take(&mut self, wanted: impl Fn(&Lexeme) -> bool) -> ParseResult {
        let found = self.peek().is_some_and(wanted);
        self.next += usize::from(found);
        found.then_some(())
    }

    fn parse_nested(&mut self, inner: impl Fn(&mut Self) -> ParseResult) -> ParseResult {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        inner(self)?;
        self.depth -= 1;
        self.expect(&Lexeme::RightParen)
    }

    /// Section 9.5: observations joined by AND, OR and FOLLOWEDBY. Precedence does not affect well-formedness.
    fn observations(&mut self) -> ParseResult {
        self.observation()?;
        while self.keyword(Keyword::And) || self.keyword(Keyword::Or) || self.keyword(Keyword::FollowedBy) {
            self.observation()?;
        }
        Some(())
    }

    fn observation(&mut self) -> ParseResult {
        if self.accept(&Lexeme::LeftParen) {
            self.parse_nested(Self::observations)?;
        } else {
            self.expect(&Lexeme::LeftBracket)?;
            self.comparisons()?;
            self.expect(&Lexeme::RightBracket)?;
        }
        self.qualifiers()
    }

    /// Section 9.5.1: an observation has each kind of qualifier at most once.
    fn qualifiers(&mut self) -> ParseResult {
        let (mut within, mut repeats, mut start) = (false, false, false);
        loop {
            if self.keyword(Keyword::Within) {
                self.take(|token| {
                    matches!(
                        token,
                        Lexeme::Integer { positive: true } | Lexeme::Float { positive: true }
                    )
                })?;
                self.expect(&Lexeme::Keyword(Keyword::Seconds))?;
                once(&mut within)?;
            } else if self.keyword(Keyword::Repeats) {
                self.take(|token| matches!(token, Lexeme::Integer { positive: true }))?;
                self.expect(&Lexeme::Keyword(Keyword::Times))?;
                once(&mut repeats)?;
            } else if self.keyword(Keyword::Start) {
                self.expect(&Lexeme::Timestamp)?;
                self.expect(&Lexeme::Keyword(Keyword::Stop))?;
                self.expect(&Lexeme::Timestamp)?;
                once(&mut start)?;
            } else {
                return Some(());
            }
        }
    }

    /// Section 9.6: comparisons joined by AND and OR.
    fn comparisons(&mut self) -> ParseResult {
        self.comparison()?;
        while self.keyword(Keyword::And) || self.keyword(Keyword::Or) {
            self.comparison()?;
        }
        Some(())
    }

    fn comparison(&mut self) -> ParseResult {
        if self.accept(&Lexeme::LeftParen) {
            return self.parse_nested(Self::comparisons);
        }
        if self.keyword(Keyword::Exists) {
            return self.object_path();
        }
        self.object_path()?;
        self.keyword(Keyword::Not);
        self.operator_and_operand()
    }

    fn operator_and_operand(&mut self) -> ParseResult {
        if self.accept(&Lexeme::Equality) {
            return self.take(Lexeme::is_literal);
        }
        if self.accept(&Lexeme::Ordering) {
            return self.take(|token| token.is_literal() && *token != Lexeme::Boolean);
        }
        if self.keyword(Keyword::In) {
            return self.set();
        }
        let textual = [
            Keyword::Like,
            Keyword::Matches,
            Keyword::IsSubset,
            Keyword::IsSuperset,
        ];
        if textual.into_iter().any(|keyword| self.keyword(keyword)) {
            return self.take(|token| matches!(token, Lexeme::Text(_)));
        }
        None
    }

    /// Section 9.2: a set has at least one literal.
    fn set(&mut self) -> ParseResult {
        self.expect(&Lexeme::LeftParen)?;
        self.take(Lexeme::is_literal)?;
        while self.accept(&Lexeme::Comma) {
            self.take(Lexeme::is_literal)?;
        }
        self.expect(&Lexeme::RightParen)
    }

    /// Section 9.7: `type:property`, then `.property`, `.'quoted'`, `[0]` or `[*]`.
    fn object_path(&mut self) -> ParseResult {
        self.take(|token| matches!(token, Lexeme::Name(name) if name.object_type))?;
        self.expect(&Lexeme::Colon)?;
        self.take(|token| matches!(token, Lexeme::Name(name) | Lexeme::Text(name) if name.property))?;
        loop {
            if self.accept(&Lexeme::Dot) {
                self.path_name()?;
            } else if self.accept(&Lexeme::LeftBracket) {
                self.take(|token| matches!(token, Lexeme::Integer { .. } | Lexeme::Asterisk))?;
                self.expect(&Lexeme::RightBracket)?;
            } else {
                return Some(());
            }
        }
    }

    /// A property name within a path; a dictionary key may be any quoted text.
    fn path_name(&mut self) -> ParseResult {
        self.take(|token| {
            matches!(token, Lexeme::Name(name) if !name.hyphen) || matches!(token, Lexeme::Text(_))
        })
    }
}

fn once(seen: &mut bool) -> ParseResult {
    (!std::mem::replace(seen, true)).then_some(())
}
