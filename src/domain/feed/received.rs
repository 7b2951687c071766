//! What a batch has received, counted by marking.
//!
//! Rule: what a caller is told of a batch follows from the items and objects that the caller may see now, and from
//! nothing else. So everything is counted for each marking, and added up for each reader.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::domain::stix::ingest::{SkipReport, SkipsByMarking};
use crate::domain::tlp::Tlp;

/// What a batch has received beside the number of its items, which [`Tally`] counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Objects on the largest page.
    page_objects: u64,
    /// In the order of [`Tlp::ALL`].
    levels: [MarkedReceipt; Tlp::ALL.len()],
}

/// What was received at one marking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MarkedReceipt {
    /// Size of the items.
    item_bytes: u64,
    /// Size of what became no item.
    other_bytes: u64,
    unchanged: u64,
    unreadable: u64,
    skipped: SkipReport,
    /// When the last item that is marked no higher was decided and committed.
    settled_at: Option<DateTime<Utc>>,
}

/// What a caller may know of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceivedView {
    pub objects: u64,
    /// Pages that these objects fill.
    pub pages: u64,
    pub bytes: u64,
    pub unchanged: u64,
    pub unreadable: u64,
    pub skipped: SkipReport,
    /// When the last visible item was decided and committed, unless one is open.
    pub settled_at: Option<DateTime<Utc>>,
}

/// What was counted without a marking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnmarkedCounts {
    pub pages: u64,
    pub bytes: u64,
    pub unchanged: u64,
    pub unreadable: u64,
    pub skipped: SkipReport,
    pub settled_at: Option<DateTime<Utc>>,
}

impl Received {
    /// Counts of a batch that did not know their markings. They count at the strictest marking of the batch: of its
    /// items, and the one of objects that state none.
    pub fn of_unmarked(counts: UnmarkedCounts, tally: &Tally, default: Tlp) -> Self {
        let mut received = Self::default();
        let objects = tally.total(Tlp::Red) + counts.unchanged + counts.unreadable + counts.skipped.total();
        received.page_objects = objects.div_ceil(counts.pages.max(1));
        for level in &mut received.levels {
            level.settled_at = counts.settled_at;
        }
        let strictest = tally.strictest().unwrap_or(default).max(default);
        let level = received.at(strictest);
        level.other_bytes = counts.bytes;
        level.unchanged = counts.unchanged;
        level.unreadable = counts.unreadable;
        level.skipped = counts.skipped;
        received
    }

    /// Notes the number of objects on a page.
    pub fn note_page(&mut self, objects: u64) {
        self.page_objects = self.page_objects.max(objects);
    }

    /// Adds a new item.
    pub fn add_item(&mut self, tlp: Tlp, bytes: u64) {
        self.at(tlp).item_bytes += bytes;
    }

    /// Follows an item that is marked differently now.
    pub fn move_item(&mut self, from: Tlp, to: Tlp, bytes: u64) {
        let source = self.at(from);
        // The size of an item of an older batch is counted with the rest.
        let moved = bytes.min(source.item_bytes);
        source.item_bytes -= moved;
        self.at(to).item_bytes += moved;
    }

    /// Adds an object that is known already.
    pub fn add_unchanged(&mut self, tlp: Tlp, bytes: u64) {
        let level = self.at(tlp);
        level.unchanged += 1;
        level.other_bytes += bytes;
    }

    /// Adds entries that are no objects. They state no marking.
    pub fn add_unreadable(&mut self, default: Tlp, entries: u64) {
        self.at(default).unreadable += entries;
    }

    /// Adds objects that can't be staged.
    pub fn add_skipped(&mut self, skips: SkipsByMarking) {
        for (tlp, of_marking) in skips {
            let level = self.at(tlp);
            level.other_bytes += of_marking.bytes;
            level.skipped.absorb(of_marking.report);
        }
    }

    /// Notes for each reader whether all items are decided and committed. `tally` is `None` while more may come.
    pub fn settle(&mut self, tally: Option<&Tally>, now: DateTime<Utc>) {
        for (level, tlp) in self.levels.iter_mut().zip(Tlp::ALL) {
            let done = tally.is_some_and(|tally| tally.open(tlp) == 0);
            level.settled_at = done.then(|| level.settled_at.unwrap_or(now));
        }
    }

    /// What a caller cleared up to `highest` may know of it.
    pub fn view(&self, tally: &Tally, highest: Tlp) -> ReceivedView {
        let mut view = ReceivedView::default();
        let visible = Tlp::ALL.iter().take_while(|level| **level <= highest).count();
        for level in self.levels.iter().take(visible) {
            view.bytes += level.item_bytes + level.other_bytes;
            view.unchanged += level.unchanged;
            view.unreadable += level.unreadable;
            view.skipped.absorb(level.skipped.clone());
            view.settled_at = level.settled_at;
        }
        view.objects = tally.total(highest) + view.unchanged + view.unreadable + view.skipped.total();
        view.pages = view.objects.div_ceil(self.page_objects.max(1)).max(1);
        view
    }

    fn at(&mut self, tlp: Tlp) -> &mut MarkedReceipt {
        let [white, green, amber, amber_pk, red] = &mut self.levels;
        match tlp {
            Tlp::White => white,
            Tlp::Green => green,
            Tlp::Amber => amber,
            Tlp::AmberPk => amber_pk,
            Tlp::Red => red,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::feed::ItemStatus;
    use crate::domain::stix::ingest::SkippedSize;

    /// Something that happens to an object of a batch.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Staged,
        Committed,
        Unchanged,
        Skipped,
        Unreadable,
    }

    fn told(events: &[(Tlp, Event)], page: u64, highest: Tlp) -> ReceivedView {
        let (mut received, mut tally) = (Received::default(), Tally::default());
        received.note_page(page);
        for (place, (tlp, event)) in events.iter().enumerate() {
            match event {
                Event::Staged | Event::Committed => {
                    let staged = matches!(event, Event::Staged);
                    let status = if staged {
                        ItemStatus::Pending
                    } else {
                        ItemStatus::Committed
                    };
                    tally.add(*tlp, status);
                    received.add_item(*tlp, 10);
                }
                Event::Unchanged => received.add_unchanged(*tlp, 7),
                Event::Skipped => {
                    let size = SkippedSize { tlp: *tlp, bytes: 5 };
                    let mut skips = SkipsByMarking::default();
                    skips.add_invalid(
                        size,
                        "tool",
                        &format!("tool--{place}"),
                        "name: is required".into(),
                    );
                    received.add_skipped(skips);
                }
                Event::Unreadable => received.add_unreadable(*tlp, 1),
            }
        }
        received.settle(Some(&tally), DateTime::UNIX_EPOCH);
        received.view(&tally, highest)
    }

    fn event() -> impl Strategy<Value = (Tlp, Event)> {
        let kinds = [
            Event::Staged,
            Event::Committed,
            Event::Unchanged,
            Event::Skipped,
            Event::Unreadable,
        ];
        (
            prop::sample::select(Tlp::ALL.to_vec()),
            prop::sample::select(kinds.to_vec()),
        )
    }

    proptest! {
        #[test]
        fn nothing_hidden_changes_what_a_caller_is_told(
            events in prop::collection::vec(event(), 0..40),
            highest in prop::sample::select(Tlp::ALL.to_vec()),
        ) {
            // Hidden objects are the last ones, so that the names of the others are the same in both worlds.
            let mut events = events;
            events.sort_by_key(|(tlp, _)| *tlp > highest);
            let visible: Vec<_> = events.iter().copied().filter(|(tlp, _)| *tlp <= highest).collect();
            prop_assert_eq!(told(&events, 50, highest), told(&visible, 50, highest));
        }
    }

    #[test]
    fn an_item_that_is_marked_higher_takes_its_size_along() {
        let (mut received, mut tally) = (Received::default(), Tally::default());
        tally.add(Tlp::Green, ItemStatus::Pending);
        received.add_item(Tlp::Green, 10);
        tally.transfer((Tlp::Green, ItemStatus::Pending), (Tlp::Red, ItemStatus::Pending));
        received.move_item(Tlp::Green, Tlp::Red, 10);
        let told = |highest| {
            let view = received.view(&tally, highest);
            (view.objects, view.bytes)
        };
        assert_eq!([Tlp::Amber, Tlp::Red].map(told), [(0, 0), (1, 10)]);
    }

    #[test]
    fn what_was_counted_without_a_marking_has_the_strictest_one_of_the_batch() {
        let mut tally = Tally::default();
        tally.add(Tlp::Green, ItemStatus::Pending);
        tally.add(Tlp::Amber, ItemStatus::Pending);
        let counts = UnmarkedCounts {
            pages: 2,
            bytes: 900,
            unchanged: 3,
            ..UnmarkedCounts::default()
        };
        let received = Received::of_unmarked(counts, &tally, Tlp::Green);
        let told = |highest| {
            let view = received.view(&tally, highest);
            (view.objects, view.pages, view.bytes, view.unchanged)
        };
        assert_eq!(told(Tlp::Green), (1, 1, 0, 0));
        assert_eq!(told(Tlp::Amber), (5, 2, 900, 3));
    }
}
