//! Merges beyond those of the index library: it keeps up to seven segments of each size, and a search looks every word
//! up in each. While nothing is written, they are merged into one where that is worth it.

use std::cmp::Reverse;
use std::time::Duration;

use futures_util::FutureExt;
use tantivy::index::{SegmentId, SegmentMeta};

use super::super::error::SearchError;
use super::WorkspaceIndex;
use super::writers::WriterState;

/// Least number of segments that are merged. Below, each small write would cause a merge.
const MANY: usize = 4;
/// How many times as large as all smaller ones together the largest of them may be: what is written is then rewritten
/// only each time that it has grown by half.
const LARGEST: u64 = 2;
/// Documents for which a merge waits another second. Merging as many takes a second or two. If a bulk ingest only paused,
/// most of that work would have to be done again.
const DOCS_PER_SECOND: u64 = 200_000;

impl WorkspaceIndex {
    /// Shows what merges have done since the last commit, and begins another one if nothing has been written for `quiet`, or
    /// longer if there is much to merge. Opens a writer for segments that an earlier process left. Waits for nothing.
    pub fn tidy(&self, quiet: Duration) -> Result<(), SearchError> {
        let Some(mut writing) = self.writing.try_lock() else {
            return Ok(());
        };
        let quiet_for = writing.used.elapsed();
        let may_begin = quiet_for >= quiet && !writing.staged && !writing.is_tidying();
        let WriterState { writer, tidying, .. } = &mut *writing;
        let Some(writer) = writer else {
            let many = select_merge(self.visible_segments());
            if may_begin && many.may_begin_after(quiet, quiet_for) {
                *tidying = Some(writer.insert(self.open_writer()?).merge(&many.ids));
            }
            return Ok(());
        };
        let segments = self.index.searchable_segment_metas()?;
        if !self.is_visible(&segments) {
            self.reader.reload()?;
            self.segments.show(self.reader.searcher());
        }
        let merging = writer.get_merge_policy().compute_merge_candidates(&segments);
        let many = select_merge(segments.iter().map(size));
        if may_begin && merging.is_empty() && many.may_begin_after(quiet, quiet_for) {
            *tidying = Some(writer.merge(&many.ids));
        }
        Ok(())
    }

    /// Whether a merge of its own may not have ended, or waits until nothing has been written for long enough.
    pub(in crate::search) fn is_tidying(&self) -> bool {
        self.writing
            .try_lock()
            .is_none_or(|mut writing| self.tidies(&mut writing))
    }

    /// The same, for the holder of the write lock.
    pub(super) fn tidies(&self, writing: &mut WriterState) -> bool {
        let waits = || {
            let segments = self.index.searchable_segment_metas().unwrap_or_default();
            !select_merge(segments.iter().map(size)).ids.is_empty()
        };
        writing.is_tidying() || writing.writer.is_some() && waits()
    }

    /// The segments that searches look into.
    fn visible_segments(&self) -> Vec<(u64, SegmentId)> {
        let searcher = self.reader.searcher();
        let shown = searcher.segment_readers().iter();
        shown
            .map(|segment| (u64::from(segment.max_doc()), segment.segment_id()))
            .collect()
    }

    /// Whether searches look into these segments.
    fn is_visible(&self, segments: &[SegmentMeta]) -> bool {
        let shown = self.visible_segments();
        let is_shown = |segment: &SegmentMeta| shown.iter().any(|(_, shown)| *shown == segment.id());
        shown.len() == segments.len() && segments.iter().all(is_shown)
    }
}

/// Documents of a segment, and its name.
fn size(segment: &SegmentMeta) -> (u64, SegmentId) {
    (u64::from(segment.max_doc()), segment.id())
}

/// Segments to merge into one.
#[derive(Default)]
struct Merge {
    ids: Vec<SegmentId>,
    docs: u64,
}

impl Merge {
    /// Whether there is something to merge, and nothing was written for long enough.
    fn may_begin_after(&self, quiet: Duration, quiet_for: Duration) -> bool {
        !self.ids.is_empty() && quiet_for >= quiet + Duration::from_secs(self.docs / DOCS_PER_SECOND)
    }
}

impl WriterState {
    /// Whether a merge of [`WorkspaceIndex::tidy`] has not ended.
    pub(in crate::search) fn is_tidying(&mut self) -> bool {
        if self
            .tidying
            .as_mut()
            .is_some_and(|merge| merge.now_or_never().is_some())
        {
            self.tidying = None;
        }
        self.tidying.is_some()
    }
}

/// As many of the smallest of these segments as possible.
fn select_merge(segments: impl IntoIterator<Item = (u64, SegmentId)>) -> Merge {
    let mut sized: Vec<(u64, SegmentId)> = segments.into_iter().collect();
    sized.sort_unstable_by_key(|(docs, _)| Reverse(*docs));
    let mut left: u64 = sized.iter().map(|(docs, _)| docs).sum();
    let mut too_large = 0;
    for (docs, _) in &sized {
        if *docs <= LARGEST * (left - docs) {
            break;
        }
        left -= docs;
        too_large += 1;
    }
    let ids: Vec<SegmentId> = sized.iter().skip(too_large).map(|(_, id)| *id).collect();
    if ids.len() < MANY {
        Merge::default()
    } else {
        Merge { ids, docs: left }
    }
}

#[cfg(test)]
mod tests {
    use tantivy::Index;
    use tantivy::schema::Schema;
    use test_support::until;

    use super::*;
    use crate::domain::tlp::Tlp;
    use crate::search::tests::{all, doc, found, id, open, open_with};
    use crate::search::{Filter, IndexSettings, Mode};

    #[tokio::test]
    async fn many_segments_become_few_and_nothing_else_changes() {
        let dir = tempfile::tempdir().unwrap();
        let search = open(Some(dir.path()));
        let index = search.workspace(id(0)).unwrap();
        let segments = || index.segments().unwrap().iter().len();
        let text = |n: u128| format!("loader number{n} of the wiper");
        for n in 0..30 {
            index
                .apply(vec![doc(n, &format!("Actor {n}"), &text(n))], 1)
                .unwrap();
        }
        let mut hidden = doc(7, "Actor 7", "a dropper");
        (hidden.rev, hidden.tlp) = (2, Tlp::Red);
        index.apply(vec![hidden], 2).unwrap();
        index.tidy(Duration::from_secs(3600)).unwrap();
        let ask = || {
            let amber = Filter::up_to(Tlp::Amber);
            let words = ["wiper", "dropper", "number12", "Actor 7"];
            words.map(|words| [&all(), &amber].map(|filter| found(&index, words, Mode::Keyword, filter, 40)))
        };
        let before = ask();
        assert!(segments() > 3);
        until(|| {
            index.tidy(Duration::ZERO).unwrap();
            segments() <= 3
        })
        .await;
        assert_eq!(ask(), before);
        index.apply(vec![doc(30, "Actor 30", &text(30))], 3).unwrap();
        assert_eq!(found(&index, "number30", Mode::Keyword, &all(), 1), [id(30)]);
        assert_eq!(found(&index, "wiper", Mode::Keyword, &all(), 40).len(), 30);
        drop((index, search));
        let reopened = open(Some(dir.path())).workspace(id(0)).unwrap();
        assert_eq!(found(&reopened, "wiper", Mode::Keyword, &all(), 40).len(), 30);
    }

    #[tokio::test]
    async fn a_writer_stays_open_until_its_segments_are_merged() {
        let settings = IndexSettings {
            fresh_docs: 0,
            ..IndexSettings::default()
        };
        let search = open_with(None, "word-hash", settings);
        let index = search.workspace(id(0)).unwrap();
        for n in 0..4 {
            index.apply(vec![doc(n, "Actor", "text")], 1).unwrap();
        }
        let is_open = || index.writing.lock().writer.is_some();
        let a_moment = Duration::from_nanos(1);
        index.close_idle(a_moment).unwrap();
        assert!(is_open() && index.is_tidying());
        until(|| {
            index.tidy(Duration::ZERO).unwrap();
            !index.is_tidying()
        })
        .await;
        index.close_idle(a_moment).unwrap();
        assert!(!is_open());
    }

    #[tokio::test]
    async fn segments_that_an_earlier_process_left_are_merged() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let settings = IndexSettings {
                fresh_docs: 0,
                ..IndexSettings::default()
            };
            open_with(Some(dir.path()), "word-hash", settings)
        };
        {
            let index = open().workspace(id(0)).unwrap();
            for n in 0..20 {
                index.apply(vec![doc(n, "Actor", "text")], 1).unwrap();
            }
        }
        let search = open();
        let index = search.workspace(id(0)).unwrap();
        let segments = || index.segments().unwrap().iter().len();
        let is_open = || index.writing.lock().writer.is_some();
        assert!(segments() >= MANY);
        index.tidy(Duration::from_secs(3600)).unwrap();
        assert!(!is_open());
        index.tidy(Duration::ZERO).unwrap();
        assert!(is_open());
        until(|| {
            index.tidy(Duration::ZERO).unwrap();
            segments() < MANY
        })
        .await;
        assert_eq!(found(&index, "text", Mode::Keyword, &all(), 40).len(), 20);
        until(|| !index.is_tidying()).await;
        index.close_idle(Duration::from_nanos(1)).unwrap();
        index.tidy(Duration::ZERO).unwrap();
        assert!(!is_open());
    }

    #[test]
    fn a_large_segment_is_rewritten_only_for_much() {
        let index = Index::create_in_ram(Schema::builder().build());
        for (sizes, merged) in [
            (&[1, 1, 1][..], 0),
            (&[1, 1, 1, 1], 4),
            (&[1, 100, 110, 120], 4),
            (&[1, 1, 1, 1, 100], 4),
            (&[10, 10, 10, 10, 100], 4),
            (&[20, 10, 10, 10, 100], 5),
            (&[1, 2, 3, 100], 0),
            (&[], 0),
        ] {
            let segments: Vec<SegmentMeta> = sizes
                .iter()
                .map(|docs| index.new_segment_meta(SegmentId::generate_random(), *docs))
                .collect();
            let merge = select_merge(segments.iter().map(size));
            let of_them = segments
                .iter()
                .filter(|segment| merge.ids.contains(&segment.id()));
            let docs: u32 = of_them.map(SegmentMeta::max_doc).sum();
            assert_eq!(
                (merge.ids.len(), merge.docs),
                (merged, u64::from(docs)),
                "{sizes:?}"
            );
        }
    }
}
