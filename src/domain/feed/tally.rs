//! Counts of a batch's items by marking and status.
//!
//! What a caller may see is counted without a scan, and nothing hidden is counted.

use super::item::ItemStatus;
use crate::domain::tlp::Tlp;

const STATUSES: usize = ItemStatus::ALL.len();
const CELLS: usize = Tlp::ALL.len() * STATUSES;

/// Number of items for each marking and status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally([u64; CELLS]);

impl Tally {
    /// Counts one more item.
    pub fn add(&mut self, tlp: Tlp, status: ItemStatus) {
        if let Some(cell) = self.0.get_mut(cell(tlp, status)) {
            *cell += 1;
        }
    }

    /// Counts an item that was counted elsewhere before.
    pub fn transfer(&mut self, from: (Tlp, ItemStatus), to: (Tlp, ItemStatus)) {
        if let Some(cell) = self.0.get_mut(cell(from.0, from.1)) {
            *cell = cell.saturating_sub(1);
        }
        self.add(to.0, to.1);
    }

    /// Items of a status that are marked no higher than `highest`.
    pub fn visible(&self, status: ItemStatus, highest: Tlp) -> u64 {
        let levels = Tlp::ALL.iter().filter(|level| **level <= highest);
        levels.filter_map(|level| self.0.get(cell(*level, status))).sum()
    }

    /// All items, hidden ones included.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Items that are neither rejected nor committed, hidden ones included.
    pub fn open(&self) -> u64 {
        self.visible(ItemStatus::Pending, Tlp::Red) + self.visible(ItemStatus::Accepted, Tlp::Red)
    }

    /// The stored form.
    pub fn to_row(self) -> Vec<i64> {
        let count = |count: &u64| i64::try_from(*count).unwrap_or(i64::MAX);
        self.0.iter().map(count).collect()
    }

    /// Reads the stored form.
    pub fn from_row(row: &[i64]) -> Self {
        let mut tally = Self::default();
        for (cell, count) in tally.0.iter_mut().zip(row) {
            *cell = u64::try_from(*count).unwrap_or(0);
        }
        tally
    }
}

fn cell(tlp: Tlp, status: ItemStatus) -> usize {
    usize::from(tlp.rank()) * STATUSES + status as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_seen_is_counted() {
        let mut tally = Tally::default();
        tally.add(Tlp::Green, ItemStatus::Pending);
        tally.add(Tlp::Green, ItemStatus::Pending);
        tally.add(Tlp::Red, ItemStatus::Pending);
        tally.transfer(
            (Tlp::Green, ItemStatus::Pending),
            (Tlp::Amber, ItemStatus::Committed),
        );
        assert_eq!(tally.visible(ItemStatus::Pending, Tlp::Amber), 1);
        assert_eq!(tally.visible(ItemStatus::Pending, Tlp::Red), 2);
        assert_eq!(tally.visible(ItemStatus::Committed, Tlp::Green), 0);
        assert_eq!(tally.visible(ItemStatus::Committed, Tlp::Amber), 1);
        assert_eq!(tally.open(), 2);
        assert_eq!(Tally::from_row(&tally.to_row()), tally);
    }
}
