//! Files without what was removed. A removal only marks documents and rows; their words and vectors stay until a merge, or a
//! compaction, rewrites what they lie in.

use std::time::Instant;

use tantivy::index::SegmentId;

use super::super::error::SearchError;
use super::WorkspaceIndex;

impl WorkspaceIndex {
    /// Rewrites every file that holds something removed, and waits until the old files are gone.
    pub fn purge(&self) -> Result<(), SearchError> {
        let mut writing = self.writing.lock();
        writing.used = Instant::now();
        if writing.staged {
            // The rest of a large write is on its way; rolling it back lets it be written again.
            let failed = Err(SearchError::Index(
                "a purge came between the parts of a write".into(),
            ));
            self.or_roll_back(&mut writing, failed).ok();
        }
        {
            let copy = self.table().compact_copy()?;
            *self.table_mut() = copy;
            let copy = self.relations().compact_copy()?;
            *self.relations_mut() = copy;
        }
        if writing.writer.is_none() {
            writing.writer = Some(self.open_writer()?);
        }
        // Names the new rows, and writes out what was only in memory.
        self.flush(&mut writing, &[], self.checkpoint())?;
        writing.tidying = None;
        if let Some(writer) = writing.writer.take() {
            writer.wait_merging_threads()?;
        }
        let mut writer = self.open_writer()?;
        // What names a segment keeps its files, so only the ids are kept.
        let segments = self.index.searchable_segment_metas()?.into_iter();
        let marked = segments.filter(|segment| segment.num_deleted_docs() > 0);
        let marked: Vec<SegmentId> = marked.map(|segment| segment.id()).collect();
        for segment in marked {
            writer.merge(&[segment]).wait()?;
        }
        self.reader.reload()?;
        self.segments.show(self.reader.searcher());
        writer.garbage_collect_files().wait()?;
        writing.writer = Some(writer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use crate::search::document::IndexDoc;
    use crate::search::tests::{all, doc, found, id, open};
    use crate::search::{Mode, WorkspaceIndex};

    /// The words that the files of the text index hold, and whether the directory has files of other segments.
    fn words(index: &WorkspaceIndex, dir: &Path) -> (BTreeSet<String>, bool) {
        let mut words = BTreeSet::new();
        let searcher = index.reader.searcher();
        let mut segments = BTreeSet::new();
        for segment in searcher.segment_readers() {
            segments.insert(segment.segment_id().uuid_string());
            for (field, entry) in index.index.schema().fields() {
                if !entry.is_indexed() {
                    continue;
                }
                let terms = segment.inverted_index(field).unwrap();
                let mut terms = terms.terms().stream().unwrap();
                while terms.advance() {
                    words.insert(String::from_utf8_lossy(terms.key()).into_owned());
                }
            }
        }
        let files = fs::read_dir(dir).unwrap().flatten();
        let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let of_another = names.any(|name| {
            let of = name.split('.').next().unwrap_or_default();
            of.len() == 32 && !segments.contains(of)
        });
        (words, of_another)
    }

    fn fill(index: &WorkspaceIndex) {
        for n in 0..40 {
            let text = format!("loader number{n} xylograph{n}");
            index
                .apply(vec![doc(n, &format!("Actor {n}"), &text)], 1)
                .unwrap();
        }
    }

    #[test]
    fn nothing_of_a_removed_document_is_left_in_any_file() {
        let dir = tempfile::tempdir().unwrap();
        let search = open(Some(dir.path()));
        let index = search.workspace(id(0)).unwrap();
        let of_workspace = index.dir.clone().unwrap();
        fill(&index);
        index.purge().unwrap();
        let before = words(&index, &of_workspace).0;
        assert!(before.iter().any(|word| word.contains("xylograph7")));
        let rows = index.len();
        index.apply(vec![IndexDoc::removal(id(7), 2)], 2).unwrap();
        index.purge().unwrap();
        let (after, of_another) = words(&index, &of_workspace);
        assert!(!after.iter().any(|word| word.contains("xylograph7")));
        assert!(!of_another && after.len() < before.len());
        assert!(index.len() <= rows);
        for n in (0..40).filter(|n| *n != 7) {
            let words = format!("xylograph{n}");
            assert_eq!(found(&index, &words, Mode::Keyword, &all(), 1), [id(n)]);
        }
        assert_eq!(found(&index, "loader", Mode::Keyword, &all(), 50).len(), 39);
        drop((index, search));
        let reopened = open(Some(dir.path())).workspace(id(0)).unwrap();
        assert_eq!(found(&reopened, "loader", Mode::Keyword, &all(), 50).len(), 39);
        assert_eq!(reopened.checkpoint(), 2);
    }
}
