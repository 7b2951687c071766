//! Text analysis in tantivy: `text::split`, accent folding, stop words, English stemming.

use std::cell::RefCell;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, RawTokenizer, Stemmer, StopWordFilter, TextAnalyzer, Token, TokenStream,
    Tokenizer,
};

use crate::search::text;

/// Name under which the analyser is registered in the schema.
pub(in crate::search) const ANALYZER: &str = "cti";

/// Splits text into identifiers and words, see [`text::split`].
#[derive(Clone, Default)]
pub(super) struct CtiTokenizer {
    /// All tokens of the text, concatenated.
    buffer: String,
    ends: Vec<usize>,
}

/// The tokens of one text.
pub(super) struct CtiTokens<'a> {
    source: &'a CtiTokenizer,
    next: usize,
    token: Token,
}

impl Tokenizer for CtiTokenizer {
    type TokenStream<'a> = CtiTokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> CtiTokens<'a> {
        self.buffer.clear();
        self.ends.clear();
        let (buffer, ends) = (&mut self.buffer, &mut self.ends);
        text::split(text, &mut |token| {
            buffer.push_str(token);
            ends.push(buffer.len());
        });
        CtiTokens {
            source: self,
            next: 0,
            token: Token::default(),
        }
    }
}

impl TokenStream for CtiTokens<'_> {
    fn advance(&mut self) -> bool {
        let Some(&end) = self.source.ends.get(self.next) else {
            return false;
        };
        let start = self
            .next
            .checked_sub(1)
            .and_then(|at| self.source.ends.get(at))
            .copied()
            .unwrap_or(0);
        self.token.text.clear();
        self.token
            .text
            .push_str(self.source.buffer.get(start..end).unwrap_or(""));
        self.token.position = self.next;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// The complete analysis chain.
pub(in crate::search) fn analyzer() -> TextAnalyzer {
    let cut = TextAnalyzer::builder(CtiTokenizer::default());
    let stemmer = Stemmer::new(Language::English);
    match StopWordFilter::new(Language::English) {
        Some(stop) => cut.filter(stop).filter(stemmer).build(),
        None => cut.filter(stemmer).build(),
    }
}

thread_local! {
    static ANALYZE: RefCell<TextAnalyzer> = RefCell::new(analyzer());
    static FOLD: RefCell<TextAnalyzer> =
        RefCell::new(TextAnalyzer::builder(RawTokenizer::default()).filter(AsciiFoldingFilter).build());
}

/// The tokens of a text as indexed, in order and with repetitions.
pub fn tokenize(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    ANALYZE.with_borrow_mut(|chain| {
        let mut stream = chain.token_stream(text);
        while stream.advance() {
            out.push(stream.token().text.clone());
        }
    });
    out
}

/// Removes accents from Latin letters; other letters are unchanged.
pub(in crate::search) fn fold_accents(text: &str) -> String {
    FOLD.with_borrow_mut(|chain| {
        let mut stream = chain.token_stream(text);
        if stream.advance() {
            stream.token().text.clone()
        } else {
            text.to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stemmed_and_stop_words_dropped() {
        assert_eq!(
            tokenize("The attackers are scanning networks"),
            ["attack", "scan", "network"]
        );
    }

    #[test]
    fn accents_are_folded() {
        assert_eq!(tokenize("Éléonore"), tokenize("Eleonore"));
        assert_eq!(tokenize("Müller"), tokenize("Mu\u{308}ller"));
    }
}
