//! Counts of a batch's items by marking and status.
//!
//! What a caller may see is counted without a scan, and nothing hidden is counted.

use super::item::ItemStatus;
use crate::domain::tlp::Tlp;

const STATUSES: usize = ItemStatus::ALL.len();
/// Statuses of items that are still to be decided or committed.
const OPEN: [ItemStatus; 2] = [ItemStatus::Pending, ItemStatus::Accepted];
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
        self.remove(from.0, from.1);
        self.add(to.0, to.1);
    }

    /// Counts one item less.
    pub fn remove(&mut self, tlp: Tlp, status: ItemStatus) {
        if let Some(cell) = self.0.get_mut(cell(tlp, status)) {
            *cell = cell.saturating_sub(1);
        }
    }

    /// Items of a status that are marked no higher than `highest`.
    pub fn visible(&self, status: ItemStatus, highest: Tlp) -> u64 {
        let levels = Tlp::ALL.iter().filter(|level| **level <= highest);
        levels.filter_map(|level| self.0.get(cell(*level, status))).sum()
    }

    /// All items that are marked no higher than `highest`.
    pub fn total(&self, highest: Tlp) -> u64 {
        ItemStatus::ALL
            .iter()
            .map(|status| self.visible(*status, highest))
            .sum()
    }

    /// Items that are neither rejected nor committed, and marked no higher than `highest`.
    pub fn open(&self, highest: Tlp) -> u64 {
        OPEN.iter().map(|status| self.visible(*status, highest)).sum()
    }

    /// The strictest marking of an item.
    pub fn strictest(&self) -> Option<Tlp> {
        let mut levels = Tlp::ALL.into_iter().rev();
        levels.find(|level| {
            ItemStatus::ALL
                .iter()
                .any(|status| self.0.get(cell(*level, *status)) > Some(&0))
        })
    }

    /// Places in the stored form of the counts of all items that are marked no higher than `highest`.
    pub fn places_of_all(highest: Tlp) -> impl Iterator<Item = usize> {
        0..cell(highest, ItemStatus::Pending) + STATUSES
    }

    /// Places in the stored form of the counts that [`Tally::open`] adds up.
    pub fn places_of_open(highest: Tlp) -> impl Iterator<Item = usize> {
        let levels = Tlp::ALL.into_iter().filter(move |level| *level <= highest);
        levels.flat_map(|level| OPEN.map(|status| cell(level, status)))
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
        assert_eq!([Tlp::Amber, Tlp::Red].map(|highest| tally.open(highest)), [1, 2]);
        assert_eq!([Tlp::Green, Tlp::Red].map(|highest| tally.total(highest)), [1, 3]);
        assert_eq!(tally.strictest(), Some(Tlp::Red));
        assert_eq!(Tally::default().strictest(), None);
        let row = tally.to_row();
        for highest in Tlp::ALL {
            let sum = |places: &mut dyn Iterator<Item = usize>| places.map(|at| row[at]).sum::<i64>();
            let all = sum(&mut Tally::places_of_all(highest));
            assert_eq!(u64::try_from(all), Ok(tally.total(highest)), "{highest}");
            let open = sum(&mut Tally::places_of_open(highest));
            assert_eq!(u64::try_from(open), Ok(tally.open(highest)), "{highest}");
        }
        assert_eq!(Tally::from_row(&tally.to_row()), tally);
    }
}
