//! The rules extractor: indicators, identifiers and names in a text, without a model.
//!
//! It is the default extractor of both services and the fallback of the language-model extractor. Pure: no clock and
//! no I/O; the same text gives the same hits, ordered by span.
//!
//! Invariants: spans are byte ranges of the original text, on char boundaries, and do not overlap; values are
//! refanged and canonical; time is linear in the text, whatever it contains. A URL is one hit: its host and file name
//! are not reported separately.
//!
//! Hits are not judged: a private address or a well-known host is reported with its confidence. Entities in one
//! sentence are related only if the sentence states it ([`stated_relations`]).

mod context;
mod doubt;
mod dual_use;
mod entities;
mod gazetteer;
mod introductions;
mod known;
mod markings;
mod mention;
mod names;
mod overlap;
mod phrases;
mod refang;
mod relations;
mod rules;
mod scan;
mod script;
mod source;
mod token;
mod unite;
mod word_lists;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

pub use dual_use::mark_dual_use;
pub use entities::{entities_of, entities_with, entity_of_name, indicator_properties, stix_pattern};
pub use gazetteer::{Entry, Gazetteer, canonical_name};
pub use known::{KnownNames, KnownThing, each_phrase_of};
pub use markings::{sensitivity, tlp_hint};
pub use mention::Mention;
pub use refang::{defang, refang};
pub use relations::{StatedRelation, Verb, stated_relations};
pub use rules::cve::cve_id;
pub(super) use unite::{EntityOfHits, round_confidence, unite};

use names::NameFinder;
use refang::RefangedText;
use source::Source;

pub use super::kinds::EntityKind;

/// The compiled rules; build once, use from any thread.
#[derive(Debug)]
pub struct Extractor {
    gazetteer: &'static Gazetteer,
    names: NameFinder,
}

static SHARED: LazyLock<Extractor> = LazyLock::new(|| {
    let gazetteer = Gazetteer::shared();
    Extractor {
        gazetteer,
        names: NameFinder::new(gazetteer),
    }
});

impl Extractor {
    /// The extractor with the built-in gazetteer, compiled on first use.
    pub fn shared() -> &'static Extractor {
        &SHARED
    }

    /// All hits in the text, ordered by span, without overlaps.
    pub fn extract(&self, text: &str) -> Vec<Mention> {
        self.extract_with(text, &KnownNames::default())
    }

    /// As [`Extractor::extract`], with the names that the memory knows.
    pub fn extract_with(&self, text: &str, known: &KnownNames) -> Vec<Mention> {
        let refanged = RefangedText::new(text);
        let mut source = Source::new(&refanged);
        scan::scan(&mut source);
        self.names.find(&mut source, self.gazetteer, known);
        let mut hits = overlap::resolve(source.hits);
        for hit in &mut hits {
            hit.span = refanged.original(&hit.span);
        }
        hits
    }
}
