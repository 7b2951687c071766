//! The verb by which a sentence states something.
//!
//! A verb counts if it has a subject and belongs to no clause about a noun, as in "malware that Sandworm used" or "malware
//! Sandworm used", and if it is no participle, as in "malware used by Sandworm". Much of English looks alike in both: what
//! could be either is no verb unless a full stop ends the text.

use std::ops::Range;

use super::lexicon::{Form, List, verb_form};
use super::words::{Word, mention_at, mentions};

/// A text with its words.
#[derive(Clone, Copy)]
pub(super) struct Sentence<'t> {
    text: &'t str,
    words: &'t [Word],
    /// Whether a full stop ends it.
    pub(super) is_ended: bool,
}

impl<'t> Sentence<'t> {
    pub(super) fn of(text: &'t str, words: &'t [Word]) -> Self {
        let end =
            text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '”' | '’'));
        Sentence {
            text,
            words,
            is_ended: end.ends_with(['.', '!']),
        }
    }

    /// Whether the sentence states something by a verb of its own.
    pub(super) fn has_main_verb(&self) -> bool {
        let last = self.words.last().map_or("", |word| word.text.as_str());
        // "ransomware hospitals were hit by"
        if !self.is_ended && List::Prepositions.has(last) {
            return false;
        }
        // Clauses about a noun whose verb is still to come.
        let mut clauses = 0_usize;
        // "Used PsExec to move laterally.", "Restrict access to the network.": the subject is left out.
        let mut at = usize::from(!self.is_ended);
        while at < self.words.len() {
            if List::Relative.has(self.word(at)) || List::Conjunctions.has(self.word(at)) {
                clauses += 1;
            } else if self.is_finite(at, clauses > 0) {
                match clauses.checked_sub(1) {
                    Some(left) => clauses = left,
                    None if self.describes_noun(at) => {}
                    None => return true,
                }
                at = self.end_of_verb(at);
                continue;
            }
            at += 1;
        }
        false
    }

    fn word(&self, at: usize) -> &'t str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    fn ends_part(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(Word::ends_part)
    }

    /// Whether the word is a verb with a subject, and no participle.
    fn is_finite(&self, at: usize, in_clause: bool) -> bool {
        let Some(form) = verb_form(self.word(at)) else {
            return false;
        };
        let before = self.before(at);
        let said = before.map_or("", |before| self.word(before));
        if at == 0 {
            let may_begin = matches!(form, Form::Past | Form::PastOrParticiple | Form::Plain);
            return may_begin && self.has_object(at) && !self.begins_with_kind();
        }
        if form == Form::Helping && self.word(at - 1) == "there" {
            return true;
        }
        let is_part = said == "to" || said == "be" || verb_form(said) == Some(Form::Helping);
        if said.is_empty() || is_part || self.words.get(at).is_some_and(|word| word.attached) {
            return false;
        }
        let ends_part = at.checked_sub(1).and_then(|last| self.words.get(last)?.mark);
        if matches!(ends_part, Some(':' | ';' | '.')) && form != Form::Helping {
            return false;
        }
        let follows_noun = List::Relative.has(said) || !(is_link(said) || List::Determiners.has(said));
        match form {
            // In "attacks in May 2022" it is a month.
            Form::Helping if self.word(at) == "may" => follows_noun && !self.is_number(at + 1),
            Form::Helping => !matches!(said, "a" | "an" | "the"),
            Form::Past => follows_noun,
            Form::Present => follows_noun && !matches!(self.word(at + 1), "of" | "for"),
            Form::PresentOrNoun => follows_noun && (in_clause || self.is_ended) && self.has_object(at),
            Form::Plain => {
                let is_plural = said.ends_with('s') || matches!(said, "they" | "we" | "people");
                // "Samples of the malware contact …"
                let is_subject = (is_plural && self.is_attacker(before))
                    || (self.is_ended && (is_plural || self.begins_with_kind()));
                follows_noun
                    && (in_clause || (is_subject && (self.has_object(at) || self.needs_no_object(at))))
            }
            Form::PastOrParticiple => follows_noun && (in_clause || self.is_past(at, before)),
        }
    }

    /// Whether a verb whose past and participle are alike is no participle: "used PsExec", but not "used by Sandworm".
    fn is_past(&self, at: usize, before: Option<usize>) -> bool {
        let follows_kind = before.is_some_and(|noun| mention_at(self.words, noun).is_some());
        if follows_kind && List::Describing.has(self.word(at)) {
            return false;
        }
        if follows_kind && List::Perceived.has(self.word(at)) {
            return self.has_object(at) && !self.next(at).ends_with("ing");
        }
        if self.is_attacker(before) {
            return self.has_object(at) || (self.is_ended && self.next(at) != "by");
        }
        // "malware used Ukraine": a list of words as likely as a sentence.
        let may_be_list = !self.is_ended && self.begins_with_kind();
        !may_be_list && (self.has_object(at) || self.needs_no_object(at))
    }

    /// Whether a verb in a full sentence states something without an object: "worms spread through the network".
    fn needs_no_object(&self, at: usize) -> bool {
        self.is_ended && List::PlainWithoutObject.has(self.word(at)) && self.next(at) != "by"
    }

    /// Whether those who act stand here, in the plural.
    fn is_attacker(&self, at: Option<usize>) -> bool {
        at.is_some_and(|at| List::Attackers.has(self.word(at)))
    }

    /// Whether what follows a verb can be its object.
    fn has_object(&self, at: usize) -> bool {
        let next = self.next_at(at);
        let word = self.word(next);
        let is_time =
            || matches!(word, "this" | "next" | "every" | "each") && List::Times.has(self.word(next + 1));
        let is_separate = (at..next).any(|at| self.ends_part(at));
        !word.is_empty() && !is_separate && !is_link(word) && !self.is_number(next) && !is_time()
    }

    fn next(&self, at: usize) -> &'t str {
        self.word(self.next_at(at))
    }

    /// The next word that is no adverb.
    fn next_at(&self, at: usize) -> usize {
        let is_adverb = |at: &usize| is_adverb(self.word(*at));
        (at + 1..self.words.len())
            .find(|at| !is_adverb(at))
            .unwrap_or(self.words.len())
    }

    /// The last word before this one that is no adverb.
    fn before(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|at| !is_adverb(self.word(*at)))
    }

    fn is_number(&self, at: usize) -> bool {
        self.word(at).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether the text begins with the kind of things that it may ask for.
    pub(super) fn begins_with_kind(&self) -> bool {
        let is_filtered = matches!(self.word(0), "all" | "any" | "known" | "other");
        let first = mentions(self.words, |_| false).into_iter().next();
        first.is_some_and(|mention| mention.many && mention.at.start == usize::from(is_filtered))
    }

    /// Where the words of a verb end: "has not been used".
    fn end_of_verb(&self, at: usize) -> usize {
        let mut end = at + 1;
        if verb_form(self.word(at)) != Some(Form::Helping) {
            return end;
        }
        while is_adverb(self.word(end)) || matches!(self.word(end), "been" | "be" | "being" | "have") {
            end += 1;
        }
        end + usize::from(verb_form(self.word(end)).is_some() && !is_link(self.word(end)))
    }

    /// Whether a verb only belongs to a clause without a pronoun: "malware Sandworm uses", "tools the group used".
    fn describes_noun(&self, verb: usize) -> bool {
        let Some(last) = self.before(verb) else {
            return false;
        };
        let phrase = self.phrase_to(last, |_| false);
        // "techniques the malware of Sandworm uses"
        let longer = self.phrase_to(last, |word| word == "of");
        self.has_clause(phrase, |_| true) || self.has_clause(longer, |subject| List::Determiners.has(subject))
    }

    /// The run of nouns that ends here, across these other words.
    fn phrase_to(&self, last: usize, may_cross: impl Fn(&str) -> bool) -> Range<usize> {
        let is_in_phrase = |at: &usize| {
            let word = self.word(*at);
            let ends = *at < last && self.ends_part(*at);
            !ends && (may_cross(word) || !(is_link(word) || List::Openings.has(word)))
        };
        let words = (0..=last).rev().take_while(is_in_phrase);
        words.last().unwrap_or(last)..last + 1
    }

    /// Whether a run of nouns is one with a clause about it whose subject is the rest, which begins with such a word.
    fn has_clause(&self, phrase: Range<usize>, may_begin: impl Fn(&str) -> bool) -> bool {
        let determiner = List::Determiners.has(self.word(phrase.start));
        let is_vague = determiner && matches!(self.word(phrase.start), "all" | "any" | "other" | "some");
        // "The malware Industroyer has …" states something.
        if determiner && !is_vague && self.is_ended {
            return false;
        }
        let start = phrase.start + usize::from(determiner);
        if List::Anything.has(self.word(start)) && start + 1 < phrase.end {
            return true;
        }
        let Some(noun) = mention_at(self.words, start).filter(|noun| noun.many && noun.at.end < phrase.end)
        else {
            return false;
        };
        let subject = noun.at.end..phrase.end;
        if !may_begin(self.word(subject.start)) {
            return false;
        }
        // "attackers abusing RDP"
        if self.word(subject.start).ends_with("ing")
            || verb_form(self.word(subject.start)) == Some(Form::PastOrParticiple)
        {
            return false;
        }
        let is_plural = self.word(noun.at.end - 1).ends_with('s');
        is_plural || List::Determiners.has(self.word(subject.start)) || !self.is_described(&subject)
    }

    /// Whether words only say what a noun for software describes: "ransomware affiliates".
    fn is_described(&self, subject: &Range<usize>) -> bool {
        let last = subject.end - 1;
        let word = self.word(last);
        let singular = word.strip_suffix('s').unwrap_or(word);
        let span = self.words.get(last).map(|word| word.span.clone());
        let shown = span.and_then(|span| self.text.get(span)).unwrap_or_default();
        let is_name = shown.starts_with(char::is_uppercase);
        !is_name
            && (word.ends_with('s')
                || List::Described.has(singular)
                || mention_at(self.words, last).is_some())
    }
}

/// Whether a word stands before a noun or a clause and is part of neither.
fn is_link(word: &str) -> bool {
    List::Prepositions.has(word) || List::Links.has(word) || List::Relative.has(word)
}

fn is_adverb(word: &str) -> bool {
    List::Adverbs.has(word) || (word.len() > 4 && word.ends_with("ly"))
}
