//! The stemmer, with a memory for the words that were stemmed last: texts repeat their words.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use tantivy::tokenizer::{
    Language, RawTokenizer, Stemmer, TextAnalyzer, Token, TokenFilter, TokenStream, Tokenizer,
};

/// Words remembered, a power of two. Some thousand words make up nine tenths of most texts.
const PLACES: usize = 4096;
/// Longest word remembered, in bytes: longer ones are mostly values, which are rarely met again.
const LONGEST: usize = 24;

/// English stemming; gives the same stems as [`Stemmer`].
#[derive(Clone)]
pub(super) struct RememberingStemmer;

/// A tokenizer whose tokens are stemmed.
pub(super) struct Stemmed<T> {
    inner: T,
    stems: Stems,
}

pub(super) struct StemmedStream<'a, S> {
    tail: S,
    stems: &'a mut Stems,
}

/// Each word has one place, which the last word that fell on it takes.
struct Stems {
    stemmer: TextAnalyzer,
    hasher: DefaultHashBuilder,
    known: Vec<(String, String)>,
}

impl TokenFilter for RememberingStemmer {
    type Tokenizer<T: Tokenizer> = Stemmed<T>;

    fn transform<T: Tokenizer>(self, inner: T) -> Stemmed<T> {
        Stemmed {
            inner,
            stems: Stems::new(),
        }
    }
}

impl<T: Clone> Clone for Stemmed<T> {
    fn clone(&self) -> Self {
        Stemmed {
            inner: self.inner.clone(),
            stems: Stems::new(),
        }
    }
}

impl<T: Tokenizer> Tokenizer for Stemmed<T> {
    type TokenStream<'a> = StemmedStream<'a, T::TokenStream<'a>>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        StemmedStream {
            tail: self.inner.token_stream(text),
            stems: &mut self.stems,
        }
    }
}

impl<S: TokenStream> TokenStream for StemmedStream<'_, S> {
    fn advance(&mut self) -> bool {
        if !self.tail.advance() {
            return false;
        }
        self.stems.stem(&mut self.tail.token_mut().text);
        true
    }

    fn token(&self) -> &Token {
        self.tail.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.tail.token_mut()
    }
}

impl Stems {
    fn new() -> Self {
        Stems {
            stemmer: TextAnalyzer::builder(RawTokenizer::default())
                .filter(Stemmer::new(Language::English))
                .build(),
            hasher: DefaultHashBuilder::default(),
            known: Vec::new(),
        }
    }

    fn stem(&mut self, word: &mut String) {
        if word.len() > LONGEST {
            return self.compute(word);
        }
        if self.known.is_empty() {
            self.known.resize_with(PLACES, Default::default);
        }
        // Only the low bits count, so nothing is lost where numbers are shorter.
        let place = self.hasher.hash_one(word.as_str()) as usize % PLACES;
        if let Some((known, stem)) = self.known.get(place)
            && known == word
        {
            word.clone_from(stem);
            return;
        }
        let asked = word.clone();
        self.compute(word);
        if let Some(place) = self.known.get_mut(place) {
            *place = (asked, word.clone());
        }
    }

    fn compute(&mut self, word: &mut String) {
        let mut stream = self.stemmer.token_stream(word);
        let stem = stream
            .advance()
            .then(|| std::mem::take(&mut stream.token_mut().text));
        drop(stream);
        if let Some(stem) = stem {
            *word = stem;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tantivy::tokenizer::WhitespaceTokenizer;

    use super::*;

    fn stems(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut stream = analyzer.token_stream(text);
        while stream.advance() {
            found.push(stream.token().text.clone());
        }
        found
    }

    fn both() -> [TextAnalyzer; 2] {
        let words = || TextAnalyzer::builder(WhitespaceTokenizer::default());
        [
            words().filter(Stemmer::new(Language::English)).build(),
            words().filter(RememberingStemmer).build(),
        ]
    }

    #[test]
    fn the_stems_of_real_texts_are_those_of_the_stemmer() {
        let [mut plain, mut remembering] = both();
        let text = include_str!("../../assets/demo/bundle.json").to_lowercase();
        for _ in 0..2 {
            assert_eq!(stems(&mut remembering, &text), stems(&mut plain, &text));
        }
        let mut other = remembering.clone();
        assert_eq!(stems(&mut other, &text), stems(&mut plain, &text));
    }

    proptest! {
        #[test]
        fn any_word_has_the_same_stem_whether_remembered_or_not(words in "([a-zé'.0-9]{0,30} ){0,40}") {
            let [mut plain, mut remembering] = both();
            let expected = stems(&mut plain, &words);
            for _ in 0..2 {
                prop_assert_eq!(stems(&mut remembering, &words), expected.clone());
            }
        }
    }
}
