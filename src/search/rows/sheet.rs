//! The sketches of full blocks, side by side in large pages of memory.
//!
//! In its file, a block's sketches take a few small pages among others, and a scan of many blocks waits longer for the
//! addresses of these pages than for the sketches. Where the system has no large pages, a sheet has small ones.

use std::sync::OnceLock;

use memmap2::MmapMut;

use super::{Block, ROWS_PER_BLOCK, Rows};

/// Blocks whose sketches are copied together: 2 MiB at 256 dimensions.
const BLOCKS: usize = 64;
const ROWS_PER_SHEET: usize = BLOCKS * ROWS_PER_BLOCK;
/// Size of a large page on x86-64, and on ARM with small pages of 4 KiB.
const LARGE_PAGE: usize = 2 << 20;

/// Filled by the first scan; empty if there was no memory for it.
pub(super) type Sheet = OnceLock<Option<Copied>>;

pub(super) struct Copied {
    map: MmapMut,
    /// Where a large page begins.
    from: usize,
}

impl Rows {
    /// The sketch of a row.
    pub(in crate::search) fn sketch(&self, row: usize) -> &[u8] {
        self.sketch_in(self.sketches(row / ROWS_PER_BLOCK), row % ROWS_PER_BLOCK)
            .unwrap_or_default()
    }

    /// One of successive sketches.
    pub(in crate::search) fn sketch_in<'a>(&self, sketches: &'a [u8], place: usize) -> Option<&'a [u8]> {
        let bytes = self.sketch_bytes();
        sketches.get(place * bytes..(place + 1) * bytes)
    }

    /// The sketches of one block's rows.
    pub(in crate::search) fn sketches(&self, block: usize) -> &[u8] {
        self.copied(block).unwrap_or_else(|| self.own_sketches(block))
    }

    /// The sketches of a block in its file, where they are not copied.
    pub(in crate::search) fn scattered(&self, block: usize) -> &[u8] {
        match self.copied(block) {
            Some(_) => &[],
            None => self.own_sketches(block),
        }
    }

    /// Makes room for the sheets of all rows, and forgets those of rows that no longer count.
    pub(super) fn fit_sheets(&mut self) {
        self.sheets.resize_with(self.len / ROWS_PER_SHEET, Sheet::new);
    }

    fn copied(&self, block: usize) -> Option<&[u8]> {
        let number = block / BLOCKS;
        let sheet = self.sheets.get(number)?;
        let Copied { map, from } = sheet.get_or_init(|| self.copy(number)).as_ref()?;
        let bytes = ROWS_PER_BLOCK * self.sketch_bytes();
        let from = from + block % BLOCKS * bytes;
        map.get(from..from + bytes)
    }

    fn copy(&self, number: usize) -> Option<Copied> {
        let bytes = ROWS_PER_SHEET * self.sketch_bytes();
        if bytes == 0 {
            return None;
        }
        let mut map = MmapMut::map_anon(bytes + LARGE_PAGE).ok()?;
        let from = map.as_ptr().align_offset(LARGE_PAGE);
        #[cfg(target_os = "linux")]
        if let Err(error) = map.advise_range(memmap2::Advice::HugePage, from, bytes) {
            tracing::debug!(%error, "sketches lie in small pages");
        }
        let places = map.get_mut(from..from + bytes)?.chunks_mut(bytes / BLOCKS);
        for (block, place) in (number * BLOCKS..).zip(places) {
            let own = self.own_sketches(block);
            if own.len() != place.len() {
                return None;
            }
            place.copy_from_slice(own);
            if let Some(Block::Mapped(map)) = self.blocks.get(block) {
                super::give_back(map, self.sketches_at(), place.len());
            }
        }
        Some(Copied { map, from })
    }

    fn own_sketches(&self, block: usize) -> &[u8] {
        let rows = self
            .len
            .saturating_sub(block * ROWS_PER_BLOCK)
            .min(ROWS_PER_BLOCK);
        let (from, bytes) = (self.sketches_at(), rows * self.sketch_bytes());
        let block = self.blocks.get(block).map(Block::bytes);
        block
            .and_then(|block| block.get(from..from + bytes))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::{Extent, NewRow};
    use super::*;

    const DIMENSION: usize = 8;

    /// Rows whose vectors differ between `round`s.
    fn append(rows: &mut Rows, count: usize, round: usize) {
        let vectors: Vec<[i8; DIMENSION]> = (rows.len()..rows.len() + count)
            .map(|row| std::array::from_fn(|bit| if (row * 31 + round) >> bit & 1 == 1 { 1 } else { -1 }))
            .collect();
        let new: Vec<NewRow<'_>> = vectors
            .iter()
            .map(|vector| NewRow::new(Uuid::nil(), 1, 1, Some(vector)))
            .collect();
        rows.append(&new).unwrap();
    }

    fn are_right(rows: &Rows) -> bool {
        (0..=rows.blocks()).all(|block| {
            let is_copied = rows.copied(block).is_some();
            is_copied == (block < rows.len() / ROWS_PER_SHEET * BLOCKS)
                && rows.sketches(block) == rows.own_sketches(block)
                && rows.scattered(block).is_empty() == (is_copied || block == rows.blocks())
        })
    }

    #[test]
    fn copied_sketches_are_those_of_the_blocks() {
        let dir = tempfile::tempdir().unwrap();
        for dir in [None, Some(dir.path().to_owned())] {
            let mut rows = Rows::open(dir.clone(), Extent::default(), DIMENSION).unwrap();
            append(&mut rows, ROWS_PER_SHEET - 1, 0);
            assert!(rows.sheets.is_empty() && are_right(&rows));
            append(&mut rows, ROWS_PER_SHEET + 9, 0);
            assert!(rows.sheets.len() == 2 && are_right(&rows));

            // Rows of the second sheet are rolled back and written again.
            rows.truncate(ROWS_PER_SHEET + 70);
            assert!(rows.sheets.len() == 1 && are_right(&rows));
            append(&mut rows, ROWS_PER_SHEET, 1);
            assert!(rows.sheets.len() == 2 && are_right(&rows));

            if dir.is_some() {
                let again = Rows::open(dir, rows.extent(), DIMENSION).unwrap();
                assert!(again.sheets.len() == 2 && are_right(&again));
            }
        }
    }
}
