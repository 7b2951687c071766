//! Keys that several nodes carry.

use std::collections::HashSet;

use uuid::Uuid;

use super::{KeyedDoc, Keywords};
use crate::search::document::{CompiledFilter, RowFilter};
use crate::search::error::SearchError;

/// Nodes that are looked at per key; a name that more carry says little.
const MAX_PER_KEY: usize = 20;

impl Keywords<'_> {
    /// The keys from this one on, in order, that several visible nodes carry, with the first of these by id, until `take` returns
    /// false. The work is linear in the number of keys.
    pub(in crate::search) fn shared_keys(
        &self,
        from: &str,
        allowed: &CompiledFilter,
        mut take: impl FnMut(&str, Vec<Uuid>) -> bool,
    ) -> Result<(), SearchError> {
        let rows: Vec<_> = self.rows().collect();
        let mut streams = Vec::with_capacity(rows.len());
        for rows in &rows {
            let terms = rows.segment.keys.terms();
            let mut stream = terms.range().ge(from).into_stream()?;
            let has_key = stream.advance();
            streams.push((stream, has_key));
        }
        let mut fresh = self.fresh.keys_from(from).peekable();
        loop {
            let open = streams.iter().filter(|(_, has_key)| *has_key);
            let first = open.map(|(stream, _)| stream.key()).min();
            let newest = fresh.peek().map(|key| key.as_bytes());
            let Some(key) = first.into_iter().chain(newest).min() else {
                return Ok(());
            };
            let key = String::from_utf8_lossy(key).into_owned();
            let mut found: Vec<Uuid> = Vec::new();
            if fresh.next_if(|next| **next == key).is_some() {
                let carriers = self.fresh.with_key(&key);
                let seen = |doc: &KeyedDoc| allowed.row(doc.class, &self.table_entry(doc.node));
                found.extend(carriers.filter(seen).map(|doc| doc.node));
            }
            for (rows, (stream, has_key)) in rows.iter().zip(&mut streams) {
                if !*has_key || stream.key() != key.as_bytes() {
                    continue;
                }
                rows.segment.carriers(stream.value(), |doc, _| {
                    if rows.shows(doc, allowed) {
                        found.push(rows.segment.node(doc));
                    }
                    true
                })?;
                *has_key = stream.advance();
            }
            // By id, since in which order documents are met depends on hidden ones, too.
            found.sort_unstable();
            let mut known = HashSet::new();
            found.retain(|node| known.insert(*node));
            found.truncate(MAX_PER_KEY);
            if found.len() > 1 && !take(&key, found) {
                return Ok(());
            }
        }
    }
}
