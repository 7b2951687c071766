//! The entities of one name: nearly always a single one.

use super::Slot;

/// A set of slots, without a list for a single one.
#[derive(Debug)]
pub(in crate::actors::graph_store::memory) enum Slots {
    One(Slot),
    Several(Vec<Slot>),
}

impl Slots {
    pub(super) fn as_slice(&self) -> &[Slot] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Several(slots) => slots,
        }
    }

    /// Adds a slot, unless it is there.
    pub(super) fn add(&mut self, slot: Slot) {
        if self.as_slice().contains(&slot) {
            return;
        }
        match self {
            Self::One(first) => *self = Self::Several(vec![*first, slot]),
            Self::Several(slots) => slots.push(slot),
        }
    }
}
