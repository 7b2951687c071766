//! The sketches among the rows.

use super::{Block, ROWS_PER_BLOCK, Rows};

impl Rows {
    /// The sketch of a row.
    pub(in crate::search) fn binary_code(&self, row: usize) -> &[u8] {
        self.binary_code_in(self.binary_codes(row / ROWS_PER_BLOCK), row % ROWS_PER_BLOCK)
            .unwrap_or_default()
    }

    /// One of successive sketches.
    pub(in crate::search) fn binary_code_in<'a>(&self, sketches: &'a [u8], place: usize) -> Option<&'a [u8]> {
        let bytes = self.code_bytes();
        sketches.get(place * bytes..(place + 1) * bytes)
    }

    /// The sketches of one block's rows.
    pub(in crate::search) fn binary_codes(&self, block: usize) -> &[u8] {
        let rows = self
            .len
            .saturating_sub(block * ROWS_PER_BLOCK)
            .min(ROWS_PER_BLOCK);
        let (from, bytes) = (self.codes_offset(), rows * self.code_bytes());
        let block = self.blocks.get(block).map(Block::bytes);
        block
            .and_then(|block| block.get(from..from + bytes))
            .unwrap_or_default()
    }
}
