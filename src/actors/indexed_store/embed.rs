//! Vectors of documents.

use crate::domain::node::NodeStatus;
use crate::search::{IndexDoc, SearchIndex, embedding_text};

/// Texts embedded per call; a remote model splits them further.
const EMBEDDED_AT_A_TIME: usize = 256;

/// Embeds every document that has no vector; false when the model can't be reached. Such documents are found by words
/// only until their vectors have been filled in.
pub(in crate::actors) fn embed(index: &SearchIndex, docs: &mut [IndexDoc]) -> bool {
    let mut docs: Vec<&mut IndexDoc> = docs
        .iter_mut()
        .filter(|doc| doc.vector.is_none() && doc.status != NodeStatus::Merged)
        .collect();
    if docs.is_empty() {
        return true;
    }
    // In small batches: a text and its float vector are needed only until the stored vector is made.
    let nodes = docs.len();
    for docs in docs.chunks_mut(EMBEDDED_AT_A_TIME) {
        let texts: Vec<String> = docs
            .iter()
            .map(|doc| match doc.ends {
                Some(_) => doc.body.clone(),
                None => embedding_text(&doc.name, &doc.aliases, &doc.body),
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match index.embed_texts(&texts) {
            Ok(vectors) => {
                for (doc, vector) in docs.iter_mut().zip(vectors) {
                    doc.vector = Some(vector);
                }
            }
            Err(error) => {
                tracing::warn!(%error, nodes, "embedding failed; found by words only for now");
                return false;
            }
        }
    }
    true
}
