//! A JSON object, compressed: how originals wait for the store and are kept in it.

use serde_json::{Map, Value};

/// Compresses an object (LZ4, with its length before it).
pub fn pack(object: &Map<String, Value>) -> Vec<u8> {
    pack_text(&serde_json::to_vec(object).unwrap_or_default())
}

/// [`pack`] for an object that is JSON text already.
pub fn pack_text(json: &[u8]) -> Vec<u8> {
    let mut packed = lz4_flex::compress_prepend_size(json);
    // It was made for what can't be compressed.
    packed.shrink_to_fit();
    packed
}

/// Reads back what [`pack`] wrote.
///
/// # Errors
/// What is wrong with the bytes, in words for the log.
pub fn unpack(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = lz4_flex::decompress_size_prepended(bytes).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
