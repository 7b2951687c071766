//! A forward-only position in a text, used by the loops of all scanners.
//!
//! A loop that calls [`Cursor::bump`] on every iteration terminates, whatever its look-ahead finds: a look-ahead
//! may move the cursor forward, never back.

/// A position in a text, always on a character boundary.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Cursor { text, at: 0 }
    }

    /// Byte offset of the cursor.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text after the cursor.
    pub(crate) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character, without consuming it.
    pub(crate) fn peek(&self) -> Option<char> {
        // Most texts are ASCII, which needs no decoding.
        match self.text.as_bytes().get(self.at).copied() {
            Some(byte) if byte.is_ascii() => Some(char::from(byte)),
            Some(_) => self.rest().chars().next(),
            None => None,
        }
    }

    /// Consumes the next character; `None` at the end.
    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Consumes characters while the predicate holds.
    pub(crate) fn skip_while(&mut self, mut fits: impl FnMut(char) -> bool) {
        while let Some(c) = self.peek().filter(|c| fits(*c)) {
            self.at += c.len_utf8();
        }
    }

    /// Moves forward to byte offset `at`. An offset behind the cursor or inside a character is a bug in the
    /// caller: it panics with debug assertions; otherwise the cursor stays put or moves to the next character.
    pub(crate) fn skip_to(&mut self, at: usize) {
        debug_assert!(at >= self.at, "a scanner went back from {} to {at}", self.at);
        debug_assert!(self.text.is_char_boundary(at), "{at} is inside a character");
        let mut at = at.clamp(self.at, self.text.len());
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        self.at = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_taken_one_by_one_to_the_end() {
        let mut cursor = Cursor::new("aé漢");
        assert_eq!((cursor.peek(), cursor.rest()), (Some('a'), "aé漢"));
        assert_eq!(
            [cursor.bump(), cursor.bump(), cursor.bump(), cursor.bump()],
            [Some('a'), Some('é'), Some('漢'), None]
        );
        assert_eq!((cursor.at(), cursor.rest(), cursor.peek()), (6, "", None));
    }

    #[test]
    fn it_moves_on_and_stays_where_nothing_fits() {
        let mut cursor = Cursor::new("  ab é");
        cursor.skip_while(|c| c == ' ');
        cursor.skip_while(|c| c == 'x');
        assert_eq!(cursor.at(), 2);
        cursor.skip_to(5);
        assert_eq!(cursor.rest(), "é");
        cursor.skip_to(5);
        cursor.skip_to(7);
        assert_eq!(cursor.bump(), None);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "went back from 2 to 1")]
    fn going_back_is_a_fault_of_the_caller() {
        let mut cursor = Cursor::new("abc");
        cursor.skip_to(2);
        cursor.skip_to(1);
    }
}
