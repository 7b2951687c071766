//! The fields of the text index, and the conversion of a node into a document.

use tantivy::TantivyDocument;
use tantivy::schema::{
    BytesOptions, FAST, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use uuid::Uuid;

use super::analyzer::ANALYZER;
use super::document::{IndexDoc, KeyKind, class_of};
use super::text::canonical_key;
use crate::domain::node::NodeStatus;

/// Increment when the fields or the text analysis change; older indexes are then rebuilt.
pub(super) const SCHEMA_VERSION: u32 = 1;

pub(super) const HIGH: &str = "high";
pub(super) const LOW: &str = "low";
pub(super) const REV: &str = "rev";
pub(super) const CLASS: &str = "class";
pub(super) const VECTOR: &str = "vector";

/// The field handles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// The node id as a term, used to replace a document.
    pub(super) node: Field,
    high: Field,
    low: Field,
    rev: Field,
    class: Field,
    vector: Field,
    /// Name and aliases. The field is short, so each word weighs much without a boost.
    pub(super) title: Field,
    /// Description, and the parts of the identifiers.
    pub(super) body: Field,
    /// Canonical keys: each once alone and once prefixed with the byte of its kind.
    pub(super) key: Field,
}

/// The schema and its handles.
pub(super) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let words = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqs),
    );
    let number = || NumericOptions::default().set_fast();
    let fields = Fields {
        node: builder.add_bytes_field("node", BytesOptions::default().set_indexed()),
        high: builder.add_u64_field(HIGH, number()),
        low: builder.add_u64_field(LOW, number()),
        rev: builder.add_u64_field(REV, number()),
        class: builder.add_u64_field(CLASS, number()),
        vector: builder.add_bytes_field(VECTOR, FAST),
        title: builder.add_text_field("title", words.clone()),
        body: builder.add_text_field("body", words),
        key: builder.add_bytes_field("key", BytesOptions::default().set_indexed()),
    };
    (builder.build(), fields)
}

impl KeyKind {
    /// Every kind, strongest first.
    pub(super) const ALL: [KeyKind; 3] = [KeyKind::Identifier, KeyKind::Name, KeyKind::Alias];

    fn byte(self) -> u8 {
        match self {
            KeyKind::Alias => b'a',
            KeyKind::Name => b'n',
            KeyKind::Identifier => b'i',
        }
    }

    /// The term under which a key of this kind is indexed.
    pub(super) fn term(self, key: &str) -> Vec<u8> {
        let mut term = Vec::with_capacity(key.len() + 1);
        term.push(self.byte());
        term.extend_from_slice(key.as_bytes());
        term
    }
}

/// The term under which a key of any kind is indexed, so that one look-up tells whether it is known.
pub(super) fn any_kind(key: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(key.len() + 1);
    term.push(b'k');
    term.extend_from_slice(key.as_bytes());
    term
}

/// The document of a node. A merged node keeps only its id and rev, so it does not affect any score.
pub(super) fn document(fields: &Fields, doc: &IndexDoc) -> TantivyDocument {
    let mut out = TantivyDocument::new();
    let (high, low) = doc.node_id.as_u64_pair();
    out.add_bytes(fields.node, doc.node_id.as_bytes());
    out.add_u64(fields.high, high);
    out.add_u64(fields.low, low);
    out.add_u64(fields.rev, doc.rev);
    out.add_u64(
        fields.class,
        u64::from(class_of(doc.node_type, doc.status, doc.tlp)),
    );
    if doc.status == NodeStatus::Merged {
        return out;
    }
    if let Some(vector) = &doc.vector {
        let bytes: Vec<u8> = vector.iter().map(|&x| x.cast_unsigned()).collect();
        out.add_bytes(fields.vector, &bytes);
    }
    out.add_text(fields.title, &doc.name);
    for alias in &doc.aliases {
        out.add_text(fields.title, alias);
    }
    out.add_text(fields.body, &doc.body);
    for identifier in &doc.identifiers {
        out.add_text(fields.body, identifier);
    }
    for (key, kind) in keys_of(doc) {
        out.add_bytes(fields.key, &any_kind(&key));
        out.add_bytes(fields.key, &kind.term(&key));
    }
    out
}

/// The canonical keys of a node, each with its kind.
pub(super) fn keys_of(doc: &IndexDoc) -> Vec<(String, KeyKind)> {
    let name = std::iter::once((KeyKind::Name, &doc.name));
    let aliases = doc.aliases.iter().map(|alias| (KeyKind::Alias, alias));
    let identifiers = doc.identifiers.iter().map(|id| (KeyKind::Identifier, id));
    name.chain(aliases)
        .chain(identifiers)
        .map(|(kind, text)| (canonical_key(text), kind))
        .filter(|(key, _)| !key.is_empty())
        .collect()
}

/// The node id made of these halves.
pub(super) fn node_of(high: u64, low: u64) -> Uuid {
    Uuid::from_u64_pair(high, low)
}
