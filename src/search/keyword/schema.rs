//! The fields of the text index, and the conversion of a node into a document.

use std::collections::BTreeMap;

use tantivy::TantivyDocument;
use tantivy::schema::{Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions};
use uuid::Uuid;

use crate::search::document::{IndexDoc, KeyKind};
use crate::search::text::analyzer::ANALYZER;
use crate::search::text::canonical_key;

/// Increment when the fields, the text analysis or the rows change; older indexes are then rebuilt.
pub(in crate::search) const SCHEMA_VERSION: u32 = 10;

pub(super) const HIGH: &str = "high";
pub(super) const LOW: &str = "low";
pub(in crate::search) const CLASS: &str = "class";

/// The field handles.
#[derive(Debug, Clone, Copy)]
pub(in crate::search) struct Fields {
    high: Field,
    low: Field,
    class: Field,
    /// Name and aliases. The field is short, so each word weighs much without a boost.
    pub(super) title: Field,
    /// Description, and the parts of the identifiers.
    pub(in crate::search) body: Field,
    /// The text of a passage. In a field of its own, it does not change how rare a word is among the nodes.
    pub(in crate::search) passage: Field,
    /// Canonical keys. How often a key stands in the field tells its kind.
    pub(in crate::search) key: Field,
}

/// The schema and its handles.
pub(in crate::search) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let words = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqs),
    );
    let keys = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::WithFreqs),
    );
    let number = || NumericOptions::default().set_fast();
    let fields = Fields {
        high: builder.add_u64_field(HIGH, number()),
        low: builder.add_u64_field(LOW, number()),
        class: builder.add_u64_field(CLASS, number()),
        title: builder.add_text_field("title", words.clone()),
        body: builder.add_text_field("body", words.clone()),
        passage: builder.add_text_field("passage", words),
        key: builder.add_text_field("key", keys),
    };
    (builder.build(), fields)
}

impl KeyKind {
    /// How often a key of this kind stands in the key field.
    fn times(self) -> usize {
        match self {
            KeyKind::Alias => 1,
            KeyKind::Name => 2,
            KeyKind::Identifier => 3,
        }
    }

    /// The kind of a key that stands in the key field so often.
    pub(super) fn of_times(times: u32) -> Self {
        match times {
            0 | 1 => KeyKind::Alias,
            2 => KeyKind::Name,
            _ => KeyKind::Identifier,
        }
    }
}

/// The document of a node or passage. A merged node keeps only its id, so it does not affect any score.
pub(in crate::search) fn document(fields: &Fields, doc: &IndexDoc) -> TantivyDocument {
    let mut out = TantivyDocument::new();
    let (high, low) = doc.node_id.as_u64_pair();
    out.add_u64(fields.high, high);
    out.add_u64(fields.low, low);
    out.add_u64(fields.class, u64::from(doc.class()));
    if doc.is_removal() {
        return out;
    }
    if doc.ends.is_some() {
        out.add_text(fields.passage, &doc.body);
        return out;
    }
    title_of(doc).for_each(|text| out.add_text(fields.title, text));
    body_of(doc).for_each(|text| out.add_text(fields.body, text));
    for (key, kind) in keys_of(doc) {
        (0..kind.times()).for_each(|_| out.add_text(fields.key, &key));
    }
    out
}

/// The texts of the title field.
pub(super) fn title_of(doc: &IndexDoc) -> impl Iterator<Item = &String> {
    std::iter::once(&doc.name).chain(&doc.aliases)
}

/// The texts of the body field. Nobody asks for the parts of a STIX id or of a UUID, so these are keys only.
pub(super) fn body_of(doc: &IndexDoc) -> impl Iterator<Item = &String> {
    let is_word = |id: &&String| !is_stix_id(id) && Uuid::parse_str(id).is_err();
    let identifiers = doc.identifiers.iter().filter(is_word);
    std::iter::once(&doc.body).chain(identifiers)
}

pub(super) fn is_stix_id(text: &str) -> bool {
    text.split_once("--")
        .is_some_and(|(_, uuid)| Uuid::parse_str(uuid).is_ok())
}

/// The canonical keys of a node, each with its strongest kind.
pub(super) fn keys_of(doc: &IndexDoc) -> BTreeMap<String, KeyKind> {
    let name = std::iter::once((KeyKind::Name, &doc.name));
    let aliases = doc.aliases.iter().map(|alias| (KeyKind::Alias, alias));
    let identifiers = doc.identifiers.iter().map(|id| (KeyKind::Identifier, id));
    let mut keys: BTreeMap<String, KeyKind> = BTreeMap::new();
    for (kind, text) in name.chain(aliases).chain(identifiers) {
        let key = canonical_key(text);
        if !key.is_empty() {
            let known = keys.entry(key).or_insert(kind);
            *known = kind.max(*known);
        }
    }
    keys
}

/// The node id made of these halves.
pub(super) fn node_of(high: u64, low: u64) -> Uuid {
    Uuid::from_u64_pair(high, low)
}
