//! The nodes that hold a word, as far as they are few.

use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED, Term};
use uuid::Uuid;

use super::{Keywords, TextScope};
use crate::search::document::RowFilter;
use crate::search::error::SearchError;

/// Visible nodes with a word that are looked at: a few milliseconds of work if the caller asks for few of them.
const MAX_EXAMINED: usize = 100_000;

impl Keywords<'_> {
    /// The visible nodes or passages that hold this token in these texts; `None` if they are more than `limit`. Hidden nodes don't
    /// count.
    pub(in crate::search) fn holders(
        &self,
        texts: TextScope,
        token: &str,
        allowed: &impl RowFilter,
        limit: usize,
    ) -> Result<Option<Vec<Uuid>>, SearchError> {
        let mut found: Vec<Uuid> = Vec::new();
        // Returns whether there is room for more.
        let mut add = |node: Uuid| {
            if !found.contains(&node) {
                found.push(node);
            }
            found.len() <= limit
        };
        let mut left = MAX_EXAMINED;
        for name in texts.fields() {
            for (node, class) in self.fresh.holders(*name, token) {
                if allowed.row(class, &self.table_entry(node)) && !add(node) {
                    return Ok(None);
                }
            }
            let term = Term::from_field_text(self.field(*name), token);
            for rows in self.rows() {
                let words = rows.segment.words(*name);
                let Some(info) = words.get_term_info(&term)? else {
                    continue;
                };
                let mut docs = words.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
                let mut doc = docs.doc();
                while doc != TERMINATED && left > 0 {
                    if rows.shows(doc, allowed) && !add(rows.segment.node(doc)) {
                        return Ok(None);
                    }
                    left -= usize::from(allowed.sees(rows.segment.class(doc)));
                    doc = docs.advance();
                }
            }
        }
        Ok(Some(found))
    }
}
