//! Positions in the lists of the graph, in half the memory of a pointer.

/// Position of an entity, a note or a relationship in its list; entries are never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::actors::graph_store::memory) struct Slot(u32);

impl Slot {
    /// The slot of the next entry of a list.
    pub(in crate::actors::graph_store::memory) fn after<T>(list: &[T]) -> Self {
        // Four billion entries would need more memory than any machine has.
        Self(u32::try_from(list.len()).unwrap_or(u32::MAX))
    }
}

/// As an index.
pub(in crate::actors::graph_store::memory) trait At {
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
