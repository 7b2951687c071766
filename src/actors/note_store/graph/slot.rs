//! Positions in the lists of the graph, in half the memory of a pointer.

use std::ops::Deref;

/// Position of an entity, a note or a relationship in its list; what is removed leaves its slot empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::actors::note_store) struct Slot(u32);

impl Slot {
    /// The slot of the next entry of a list.
    pub(in crate::actors::note_store) fn after<T>(list: &[T]) -> Self {
        // Four billion entries would need more memory than any machine has.
        Self(u32::try_from(list.len()).unwrap_or(u32::MAX))
    }

    /// The slots of a list's entries from this position on.
    pub(in crate::actors::note_store) fn from<T>(
        list: &[T],
        first: usize,
    ) -> impl Iterator<Item = Self> + use<T> {
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        (first..Self::after(list).0).map(Self)
    }
}

/// As an index.
pub(in crate::actors::note_store) trait At {
    fn at(&self) -> usize;
}

impl At for Slot {
    fn at(&self) -> usize {
        self.0.at()
    }
}

impl At for u32 {
    fn at(&self) -> usize {
        usize::try_from(*self).unwrap_or(usize::MAX)
    }
}

/// A list of slots, most often of none or one.
#[derive(Debug, Default)]
pub(in crate::actors::note_store) enum Slots {
    #[default]
    None,
    One(Slot),
    /// Behind a pointer, which keeps the other cases small.
    #[allow(clippy::box_collection)]
    Several(Box<Vec<Slot>>),
}

impl Deref for Slots {
    type Target = [Slot];

    fn deref(&self) -> &[Slot] {
        match self {
            Self::None => &[],
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Several(slots) => slots,
        }
    }
}

impl Slots {
    /// Inserts a slot so many places before the end.
    pub(super) fn insert_before(&mut self, later: usize, slot: Slot) {
        match self {
            Self::None => *self = Self::One(slot),
            Self::One(only) => {
                let pair = if later == 0 { [*only, slot] } else { [slot, *only] };
                *self = Self::Several(Box::new(pair.to_vec()));
            }
            Self::Several(slots) => slots.insert(slots.len().saturating_sub(later), slot),
        }
    }

    /// Takes a slot out of the list.
    pub(super) fn remove(&mut self, slot: Slot) {
        match self {
            Self::One(only) if *only == slot => *self = Self::None,
            Self::None | Self::One(_) => {}
            Self::Several(slots) => {
                // Relationships are listed by age, notes mostly; else it is most often one of the newest.
                let by_age = slots.binary_search(&slot).ok();
                let place = by_age.or_else(|| slots.iter().rposition(|known| *known == slot));
                if let Some(place) = place {
                    slots.remove(place);
                }
            }
        }
    }

    pub(super) fn push(&mut self, slot: Slot) {
        self.insert_before(0, slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_the_order_of_a_list() {
        for places in [[0, 0, 0, 0], [0, 1, 0, 2], [0, 1, 2, 3], [0, 0, 1, 1]] {
            let (mut slots, mut list) = (Slots::default(), Vec::new());
            assert!(slots.is_empty());
            for (number, later) in (0..).zip(places) {
                slots.insert_before(later, Slot(number));
                list.insert(list.len() - later, Slot(number));
                assert_eq!(*slots, *list, "{places:?}");
            }
            for number in [3, 0, 7, 1, 2] {
                slots.remove(Slot(number));
                list.retain(|slot| *slot != Slot(number));
                assert_eq!(*slots, *list, "{places:?} without {number}");
            }
        }
    }
}
