//! A hit of the rules.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::known::KnownThing;

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
    /// What the memory knows of it: one thing, or one of each type if the text does not tell which is meant.
    #[serde(skip)]
    pub known: Vec<Arc<KnownThing>>,
}

impl Mention {
    /// The hit's words in the searched text.
    pub fn text<'t>(&self, source: &'t str) -> &'t str {
        source.get(self.span.clone()).unwrap_or_default()
    }
}
