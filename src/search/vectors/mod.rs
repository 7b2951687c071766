//! Vectors of nodes and passages: mapped rows, the binary codes of their signs, exact scores, and the embedding model.

mod binary_code;
pub(super) mod dot;
pub(super) mod embed;
pub(super) mod rows;
pub(super) mod table;
