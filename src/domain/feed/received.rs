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
#[serde(default)]
pub struct Received {
    /// The lowest marking of what the page at hand has brought so far.
    page: Option<Tlp>,
    /// In the order of [`Tlp::ALL`].
    levels: [MarkedReceipt; Tlp::ALL.len()],
}

/// What was received at one marking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct MarkedReceipt {
    /// Pages that brought something of this marking, and nothing of a lower one.
    pages: u64,
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
    /// Pages that brought them.
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
        for level in &mut received.levels {
            level.settled_at = counts.settled_at;
        }
        let strictest = tally.strictest().unwrap_or(default).max(default);
        let level = received.at(strictest);
        level.pages = counts.pages;
        level.other_bytes = counts.bytes;
        level.unchanged = counts.unchanged;
        level.unreadable = counts.unreadable;
        level.skipped = counts.skipped;
        received
    }

    /// Begins a page: what is added from now on is on it.
    pub fn begin_page(&mut self) {
        self.page = None;
    }

    /// Adds a new item.
    pub fn add_item(&mut self, tlp: Tlp, bytes: u64) {
        self.of_page(tlp).item_bytes += bytes;
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
        let level = self.of_page(tlp);
        level.unchanged += 1;
        level.other_bytes += bytes;
    }

    /// Adds entries that are no objects. They state no marking.
    pub fn add_unreadable(&mut self, default: Tlp, entries: u64) {
        if entries > 0 {
            self.of_page(default).unreadable += entries;
        }
    }

    /// Adds objects that can't be staged.
    pub fn add_skipped(&mut self, skips: SkipsByMarking) {
        for (tlp, of_marking) in skips {
            let level = self.of_page(tlp);
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
            view.pages += level.pages;
            view.bytes += level.item_bytes + level.other_bytes;
            view.unchanged += level.unchanged;
            view.unreadable += level.unreadable;
            view.skipped.absorb(level.skipped.clone());
            view.settled_at = level.settled_at;
        }
        view.objects = tally.total(highest) + view.unchanged + view.unreadable + view.skipped.total();
        // The first page came, whatever was on it. Each further one brought an object; of one that has been marked higher
        // since, nothing is left.
        view.pages = view.pages.min(view.objects).max(1);
        view
    }

    /// Where something of this marking is counted that the page at hand brings.
    fn of_page(&mut self, tlp: Tlp) -> &mut MarkedReceipt {
        if self.page.is_none_or(|lowest| tlp < lowest) {
            if let Some(lowest) = self.page.replace(tlp) {
                let before = self.at(lowest);
                before.pages = before.pages.saturating_sub(1);
            }
            self.at(tlp).pages += 1;
        }
        self.at(tlp)
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

    /// Objects with their markings, page by page. Each has a name.
    type Pages = Vec<Vec<(usize, Tlp, Event)>>;

    fn told(pages: &Pages, highest: Tlp) -> ReceivedView {
        let (mut received, mut tally) = (Received::default(), Tally::default());
        for page in pages {
            received.begin_page();
            for (name, tlp, event) in page {
                add(&mut received, &mut tally, (*name, *tlp, *event));
            }
        }
        received.settle(Some(&tally), DateTime::UNIX_EPOCH);
        received.view(&tally, highest)
    }

    fn add(received: &mut Received, tally: &mut Tally, (name, tlp, event): (usize, Tlp, Event)) {
        match event {
            Event::Staged => {
                tally.add(tlp, ItemStatus::Pending);
                received.add_item(tlp, 10);
            }
            Event::Committed => {
                tally.add(tlp, ItemStatus::Committed);
                received.add_item(tlp, 10);
            }
            Event::Unchanged => received.add_unchanged(tlp, 7),
            Event::Skipped => {
                let mut skips = SkipsByMarking::default();
                let id = format!("tool--{name}");
                skips.add_invalid(
                    SkippedSize { tlp, bytes: 5 },
                    "tool",
                    &id,
                    "name: is required".into(),
                );
                received.add_skipped(skips);
            }
            Event::Unreadable => received.add_unreadable(tlp, 1),
        }
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
            pages in prop::collection::vec(prop::collection::vec(event(), 0..9), 0..9),
            highest in prop::sample::select(Tlp::ALL.to_vec()),
        ) {
            let mut name = 0..;
            let pages: Pages = pages
                .into_iter()
                .map(|page| page.into_iter().zip(name.by_ref()).map(|((tlp, event), name)| (name, tlp, event)).collect())
                .collect();
            let mut visible = pages.clone();
            for page in &mut visible {
                page.retain(|(_, tlp, _)| *tlp <= highest);
            }
            visible.retain(|page| !page.is_empty());
            let view = told(&pages, highest);
            prop_assert_eq!(view.pages, (visible.len() as u64).max(1));
            prop_assert_eq!(view, told(&visible, highest));
        }
    }

    #[test]
    fn a_bundle_that_is_staged_in_parts_is_one_page() {
        let mut received = Received::default();
        received.begin_page();
        for tlp in [Tlp::Red, Tlp::Green, Tlp::Amber] {
            received.add_unchanged(tlp, 7);
            let text = serde_json::to_string(&received).unwrap();
            received = serde_json::from_str(&text).unwrap();
        }
        let pages = |highest| received.view(&Tally::default(), highest).pages;
        assert_eq!(Tlp::ALL.map(pages), [1; 5]);
        let counted = received.levels.iter().map(|level| level.pages);
        assert_eq!(counted.sum::<u64>(), 1);
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
