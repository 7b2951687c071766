//! Where the ends of passages were when the passages came, so that a search need not look them up one by one.

use super::super::rows::ROWS_PER_BLOCK;

/// A row that is not known.
const NONE: u32 = u32::MAX;

/// The rows of both ends of each passage, block by block; blocks without passages take no space.
#[derive(Default)]
pub(super) struct EndRows(Vec<Option<Box<[[u32; 2]]>>>);

impl EndRows {
    /// Records the rows of the ends of the passage in a row.
    pub(super) fn put(&mut self, row: usize, ends: [Option<usize>; 2]) {
        let (block, place) = (row / ROWS_PER_BLOCK, row % ROWS_PER_BLOCK);
        if block >= self.0.len() {
            self.0.resize_with(block + 1, || None);
        }
        let Some(block) = self.0.get_mut(block) else {
            return;
        };
        let block = block.get_or_insert_with(|| vec![[NONE; 2]; ROWS_PER_BLOCK].into());
        if let Some(known) = block.get_mut(place) {
            *known = ends.map(|row| row.and_then(|row| u32::try_from(row).ok()).unwrap_or(NONE));
        }
    }

    /// The rows of the ends of the passage in a row. They are those of older versions where an end has changed since.
    #[inline]
    pub(super) fn of(&self, row: usize) -> Option<[u32; 2]> {
        let block = self.0.get(row / ROWS_PER_BLOCK)?.as_ref()?;
        block.get(row % ROWS_PER_BLOCK).copied()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
