//! Numbers of documents and words by what it takes to see them.
//!
//! What enters a score is counted over the nodes that the caller may see, and over no others: how common a word is, how many
//! nodes there are and how long they are. Otherwise the scores of visible nodes would tell how many hidden ones hold a word.
//! Nodes of one status and marking form a group, and whoever may see one of them may see all.

use super::{GROUPS, group_of};

/// The groups of nodes that a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::search) struct VisibleGroups(u32);

// One bit for each group.
const _: () = assert!(GROUPS <= 32, "groups no longer fit a set");

impl VisibleGroups {
    /// The groups that `sees` accepts.
    pub(in crate::search) fn of(sees: impl Fn(usize) -> bool) -> Self {
        let groups = (0..GROUPS).filter(|group| sees(*group));
        VisibleGroups(groups.fold(0, |bits, group| bits | 1 << group))
    }

    fn has(self, group: usize) -> bool {
        self.0 >> group & 1 == 1
    }
}

/// A number for each group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::search) struct MarkingCounts([u64; GROUPS]);

impl MarkingCounts {
    /// The number for one group, zero for the others.
    pub(in crate::search) fn of_group(group: usize, count: u64) -> Self {
        let mut counts = MarkingCounts::default();
        counts
            .0
            .iter_mut()
            .skip(group)
            .take(1)
            .for_each(|own| *own = count);
        counts
    }

    /// Adds to the number of the group that a class belongs to; that of passages and merged nodes belongs to none.
    #[inline]
    pub(in crate::search) fn add(&mut self, class: u8, count: u64) {
        if let Some(own) = group_of(class).and_then(|group| self.0.get_mut(group)) {
            *own += count;
        }
    }

    #[inline]
    pub(in crate::search) fn subtract(&mut self, class: u8, count: u64) {
        if let Some(own) = group_of(class).and_then(|group| self.0.get_mut(group)) {
            *own = own.saturating_sub(count);
        }
    }

    /// Both together.
    pub(in crate::search) fn and(mut self, other: MarkingCounts) -> Self {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(own, other)| *own += other);
        self
    }

    /// The first without the other.
    pub(in crate::search) fn without(mut self, other: MarkingCounts) -> Self {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(own, other)| *own = own.saturating_sub(other));
        self
    }

    /// The sum over the groups that a caller may see.
    pub(in crate::search) fn seen_by(&self, groups: VisibleGroups) -> u64 {
        let seen = self.0.iter().enumerate().filter(|(group, _)| groups.has(*group));
        seen.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::node::NodeStatus;
    use crate::domain::tlp::Tlp;
    use crate::search::document::{
        CompiledFilter, Filter, GONE, Population, RowFilter, class_of, class_of_passage,
    };

    #[test]
    fn a_count_is_seen_by_whoever_sees_what_is_counted() {
        let kinds = Population::ALL.into_iter();
        let kinds =
            kinds.flat_map(|population| population.types().iter().map(move |kind| (population, *kind)));
        for (population, kind) in kinds {
            for &status in NodeStatus::ALL {
                for tlp in Tlp::ALL {
                    let class = class_of(population, kind, status, tlp);
                    let mut counts = MarkingCounts::default();
                    counts.add(class, 3);
                    for highest_tlp in Tlp::ALL {
                        let filters = [false, true].into_iter().flat_map(|include_rejected| {
                            [Some(Population::Main), Some(Population::Context), None].map(|asked| Filter {
                                include_rejected,
                                population: asked,
                                ..Filter::up_to(highest_tlp)
                            })
                        });
                        for filter in filters {
                            let allowed = CompiledFilter::of(&filter);
                            let want = if allowed.sees(class) { 3 } else { 0 };
                            assert_eq!(
                                counts.seen_by(allowed.groups()),
                                want,
                                "{population:?} {kind:?} {status:?} {tlp} {filter:?}"
                            );
                            let is_asked = filter.population.is_none_or(|asked| asked == population);
                            assert!(is_asked || want == 0);
                        }
                    }
                    counts.subtract(class, 3);
                    assert_eq!(counts, MarkingCounts::default());
                }
            }
        }
        let mut counts = MarkingCounts::default();
        counts.add(class_of_passage(Population::Main, Tlp::White), 1);
        counts.add(class_of_passage(Population::Context, Tlp::Red), 1);
        counts.add(GONE, 1);
        assert_eq!(counts, MarkingCounts::default());
    }
}
