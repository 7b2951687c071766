//! Arbitrary text for the rules extractor, the detection of personal data, the markings and the other hand-written
//! scanners.
//!
//! The target looks for panics (including the cursor's debug assertion), texts that exceed libFuzzer's `-timeout`, and
//! spans that are out of order, empty or split a character.
#![no_main]
// Only part of the program's module tree is fuzzed.
#![allow(dead_code)]

#[path = "../../src/domain/mod.rs"]
mod domain;

use std::ops::Range;

use chrono::DateTime;

use domain::extraction::{
    Extractor, defang, entities_of, refang, sensitivity, stated_relations, tlp_hint,
};
use domain::memory::injection::prompt_injection;
use domain::pii;
use domain::question::Question;
use domain::memory::similarity::is_near_duplicate;
use domain::stix::pattern::is_well_formed;
use domain::tlp::Tlp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check(&String::from_utf8_lossy(data)));

fn check(text: &str) {
    let hits = Extractor::shared().extract(text);
    in_order(text, hits.iter().map(|hit| &hit.span));
    for hit in &hits {
        assert!(
            !hit.value.is_empty() && (0.0..=1.0).contains(&hit.confidence),
            "{hit:?}"
        );
    }
    for relation in stated_relations(text, &hits) {
        assert!(relation.subject < hits.len() && relation.object < hits.len());
        assert!(text.get(relation.sentence).is_some());
    }
    let found = entities_of(text);
    assert!(hits.is_empty() == found.entities.is_empty());
    Question::read(text, DateTime::UNIX_EPOCH).filters();

    let (redacted, personal) = pii::redact(text);
    in_order(text, personal.iter().map(|hit| &hit.span));
    assert!(personal.is_empty() == (redacted == text));
    pii::strict::kinds(text);

    let stated = tlp_hint(text);
    let warned = !sensitivity(text, Tlp::White).is_empty();
    assert!(warned || stated.is_none_or(|stated| stated == Tlp::White));

    prompt_injection(text);
    is_well_formed(text);
    assert!(is_near_duplicate(text, &refang(text), 0.8) || refang(text) != text);
    defang(text);
}

/// Asserts that spans do not overlap, are in order and fall on character boundaries.
fn in_order<'s>(text: &str, spans: impl Iterator<Item = &'s Range<usize>>) {
    let mut end = 0;
    for span in spans {
        assert!(span.start >= end && span.start < span.end, "{span:?}");
        assert!(text.get(span.clone()).is_some(), "{span:?}");
        end = span.end;
    }
}
