//! Errors of the index. There are few kinds because callers can only retry or rebuild.

use std::sync::Arc;

/// A failure of the index. Cheap to clone, because all callers that share a commit get its error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SearchError {
    /// The text index failed; the write was rolled back.
    #[error("search index: {0}")]
    Index(Arc<str>),
    /// A file or directory of the index could not be used.
    #[error("search index storage: {0}")]
    Storage(Arc<str>),
    /// A vector has the wrong number of dimensions.
    #[error("vector has {found} dimensions, the index has {expected}")]
    Dimension { expected: usize, found: usize },
    /// A vector search has no query vector.
    #[error("a vector search needs a query vector")]
    NoQueryVector,
    /// Text could not be turned into vectors.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The index is being closed.
    #[error("search index is closed")]
    Closed,
}

/// A failure of the embedding model.
#[derive(Debug, Clone, thiserror::Error)]
#[error("embedding: {0}")]
pub struct EmbedError(pub Arc<str>);

impl From<tantivy::TantivyError> for SearchError {
    fn from(err: tantivy::TantivyError) -> Self {
        SearchError::Index(err.to_string().into())
    }
}

impl From<std::io::Error> for SearchError {
    fn from(err: std::io::Error) -> Self {
        SearchError::Storage(err.to_string().into())
    }
}
