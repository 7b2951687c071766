//! Compressed JSON objects: the form in which originals wait for the store and are kept in it.

use serde_json::{Map, Value};

/// Compresses an object (LZ4, prefixed with its length).
pub fn pack(object: &Map<String, Value>) -> Vec<u8> {
    pack_text(&serde_json::to_vec(object).unwrap_or_default())
}

/// [`pack`] for an object that is already JSON text.
pub fn pack_text(json: &[u8]) -> Vec<u8> {
    let mut packed = lz4_flex::compress_prepend_size(json);
    // The buffer was allocated for incompressible input.
    packed.shrink_to_fit();
    packed
}

/// Reads back what [`pack`] wrote.
///
/// # Errors
/// What is wrong with the bytes, as text for the log.
pub fn unpack(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    serde_json::from_slice(&unpack_text(bytes)?).map_err(|error| error.to_string())
}

/// Reads back what [`pack_text`] wrote.
///
/// # Errors
/// What is wrong with the bytes, as text for the log.
pub fn unpack_text(bytes: &[u8]) -> Result<Vec<u8>, String> {
    lz4_flex::decompress_size_prepended(bytes).map_err(|error| error.to_string())
}

/// Size of a packed object's JSON text in bytes.
pub fn unpacked_size(packed: &[u8]) -> usize {
    // The length that `compress_prepend_size` writes first.
    let length = packed.first_chunk::<4>();
    length.map_or(0, |length| {
        usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX)
    })
}
