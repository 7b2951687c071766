//! Resolves overlapping hits: the longest wins, then the most confident.

use super::mention::Mention;

/// Sorts hits by span and removes overlaps.
pub(super) fn resolve(mut hits: Vec<Mention>) -> Vec<Mention> {
    hits.sort_by(|a, b| {
        (a.span.start, a.span.end, a.kind)
            .cmp(&(b.span.start, b.span.end, b.kind))
            .then_with(|| a.value.cmp(&b.value))
    });
    let mut kept: Vec<Mention> = Vec::with_capacity(hits.len());
    for hit in hits {
        match kept.last_mut() {
            // Hits are ordered by start, so only the last kept one can overlap.
            Some(last) if hit.span.start < last.span.end => {
                if is_better(&hit, last) {
                    *last = hit;
                }
            }
            _ => kept.push(hit),
        }
    }
    kept
}

fn is_better(hit: &Mention, other: &Mention) -> bool {
    let (len, other_len) = (hit.span.len(), other.span.len());
    len > other_len || (len == other_len && hit.confidence > other.confidence)
}
