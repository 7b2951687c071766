//! A hit of the rules.

use std::ops::Range;

use serde::Serialize;

use crate::domain::kinds::EntityKind;

/// A hit: one thing found in a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mention {
    pub kind: EntityKind,
    /// Canonical and refanged; for a name, the gazetteer's canonical name.
    pub value: String,
    /// Byte range of the original text, on char boundaries.
    pub span: Range<usize>,
    /// The rule that found it.
    pub rule: &'static str,
    /// 0 to 1.
    pub confidence: f32,
}

impl Mention {
    /// The hit's words in the searched text.
    pub fn text<'t>(&self, source: &'t str) -> &'t str {
        source.get(self.span.clone()).unwrap_or_default()
    }
}
