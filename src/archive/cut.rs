//! Cuts the rows of a table into chunks at places that depend on the keys alone, so that a row that comes or goes changes
//! its own chunk and no other (content-defined chunking, as of LBFS, SOSP 2001).

use sha2::{Digest, Sha256};

/// Rows of a chunk, on average.
const ROWS: u64 = 64;
/// Size beyond which a chunk ends, whatever the keys are, in bytes.
const LARGEST: usize = 4 << 20;

/// Rows of a chunk, a line each.
#[derive(Debug, Default)]
pub struct Cutter {
    text: Vec<u8>,
    rows: u64,
}

/// A chunk.
#[derive(Debug, PartialEq, Eq)]
pub struct CutChunk {
    pub text: Vec<u8>,
    pub rows: u64,
}

impl Cutter {
    /// Adds a row; returns the chunk that ends with it. The row must hold no line break.
    pub fn add(&mut self, key: &[u8], row: &[u8]) -> Option<CutChunk> {
        self.text.extend_from_slice(row);
        self.text.push(b'\n');
        self.rows += 1;
        match is_end(key) || self.text.len() >= LARGEST {
            true => self.end(),
            false => None,
        }
    }

    /// Ends the table; returns what has not ended before.
    pub fn end(&mut self) -> Option<CutChunk> {
        let chunk = CutChunk {
            text: std::mem::take(&mut self.text),
            rows: std::mem::take(&mut self.rows),
        };
        (chunk.rows > 0).then_some(chunk)
    }
}

/// Whether a chunk ends with this key.
fn is_end(key: &[u8]) -> bool {
    let hash = Sha256::digest(key);
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first).is_multiple_of(ROWS)
}
