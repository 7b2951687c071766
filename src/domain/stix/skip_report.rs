//! The report of skipped objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::tlp::Tlp;

/// Maximum number of skipped objects listed individually.
const MAX_LISTED: usize = 100;
/// Maximum number of types, and of reasons of all types, that a report of several parts lists. The sender chooses them.
const MAX_NAMES: usize = 100;
/// Longest type, id or reason in such a report, in characters.
const MAX_TEXT: usize = 200;
/// Stands for all further types and reasons.
const OTHER: &str = "other";

/// Objects of one type that are none of the nodes and edges that an ingest counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedType {
    #[schema(example = 3)]
    pub count: u64,
    /// How many of them are kept all the same: found, related and exported.
    #[serde(default)]
    #[schema(example = 2)]
    pub kept: u64,
    /// Why the others are not.
    #[schema(example = json!({"name: is required": 1}))]
    pub reasons: BTreeMap<String, u64>,
}

/// A skipped object of a supported type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedObject {
    #[schema(example = "indicator--3f0a7b52-6c1d-4e8e-9b0f-7a4d2c5e1f60")]
    pub id: String,
    #[schema(example = "pattern: is required")]
    pub reason: String,
}

/// All skipped objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipReport {
    pub by_type: BTreeMap<String, SkippedType>,
    /// The first hundred invalid objects.
    pub objects: Vec<SkippedObject>,
}

impl SkipReport {
    /// Number of skipped objects.
    pub fn total(&self) -> u64 {
        self.by_type.values().map(|skipped| skipped.count).sum()
    }

    /// Counts an object whose type does not become a node.
    pub fn count(&mut self, kind: &str, reason: &str) {
        let entry = self.by_type.entry(kind.to_owned()).or_default();
        entry.count += 1;
        *entry.reasons.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts an object that is kept, though it is none of the nodes and edges that an ingest counts.
    pub fn keep(&mut self, kind: &str) {
        let entry = self.by_type.entry(kind.to_owned()).or_default();
        entry.count += 1;
        entry.kept += 1;
    }

    /// Counts and lists an object that breaks a rule.
    pub fn add_invalid(&mut self, kind: &str, id: &str, reason: String) {
        // Reasons contain values of the object, so counts are kept per rule only.
        let rule = reason.split(" (").next().unwrap_or(&reason).to_owned();
        self.count(kind, &rule);
        if self.objects.len() < MAX_LISTED {
            self.objects.push(SkippedObject {
                id: id.to_owned(),
                reason,
            });
        }
    }

    /// Adds the report of a further part. Its size is bounded however many parts there are.
    pub fn absorb(&mut self, part: Self) {
        let mut reasons: usize = self.by_type.values().map(|kind| kind.reasons.len()).sum();
        for (kind, of_type) in part.by_type {
            let kind = known_or_other(&self.by_type, self.by_type.len(), shorten(kind));
            let entry = self.by_type.entry(kind).or_default();
            entry.count += of_type.count;
            entry.kept += of_type.kept;
            let before = entry.reasons.len();
            for (reason, count) in of_type.reasons {
                let listed = reasons + entry.reasons.len() - before;
                let reason = known_or_other(&entry.reasons, listed, shorten(reason));
                *entry.reasons.entry(reason).or_default() += count;
            }
            reasons += entry.reasons.len() - before;
        }
        let room = MAX_LISTED.saturating_sub(self.objects.len());
        let listed = part.objects.into_iter().take(room).map(|object| SkippedObject {
            id: shorten(object.id),
            reason: shorten(object.reason),
        });
        self.objects.extend(listed);
    }
}

/// The skipped objects by their marking, so that nobody is told of those that stay hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkipsByMarking(BTreeMap<Tlp, MarkedSkips>);

/// Skipped objects of one marking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkedSkips {
    /// Size of the objects as they were received.
    pub bytes: u64,
    pub report: SkipReport,
}

/// The marking of a skipped object, and its size in bytes as it was received.
#[derive(Debug, Clone, Copy)]
pub struct SkippedSize {
    pub tlp: Tlp,
    pub bytes: usize,
}

impl SkipsByMarking {
    /// [`SkipReport::count`] for an object of this marking.
    pub fn count(&mut self, size: SkippedSize, kind: &str, reason: &str) {
        self.of(size).count(kind, reason);
    }

    /// [`SkipReport::keep`] for an object of this marking.
    pub fn keep(&mut self, size: SkippedSize, kind: &str) {
        self.of(size).keep(kind);
    }

    /// [`SkipReport::add_invalid`] for an object of this marking.
    pub fn add_invalid(&mut self, size: SkippedSize, kind: &str, id: &str, reason: String) {
        self.of(size).add_invalid(kind, id, reason);
    }

    fn of(&mut self, size: SkippedSize) -> &mut SkipReport {
        let skips = self.0.entry(size.tlp).or_default();
        skips.bytes += u64::try_from(size.bytes).unwrap_or(u64::MAX);
        &mut skips.report
    }
}

impl IntoIterator for SkipsByMarking {
    type Item = (Tlp, MarkedSkips);
    type IntoIter = std::collections::btree_map::IntoIter<Tlp, MarkedSkips>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The name, if it is known or the report, which lists so many, has room for it.
fn known_or_other<V>(known: &BTreeMap<String, V>, listed: usize, name: String) -> String {
    if listed < MAX_NAMES || known.contains_key(&name) {
        name
    } else {
        OTHER.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_many_parts_stays_small_and_counts_everything() {
        let mut whole = SkipReport::default();
        for part in 0..300 {
            let mut report = SkipReport::default();
            for reason in 0..100 {
                report.count("indicator", &format!("{part}.{reason}: is not allowed"));
            }
            report.count(&format!("x-{part}"), "type is not supported");
            report.count(&format!("{}{part}", "y".repeat(100_000)), "type is not supported");
            report.add_invalid(
                "tool",
                &format!("tool--{part}"),
                format!("name {part}: is required"),
            );
            whole.absorb(report);
        }
        assert_eq!(whole.total(), 30_900);
        assert!(serde_json::to_string(&whole).unwrap().len() < 100_000);
        assert!(whole.by_type.len() <= MAX_NAMES + 1);
        let reasons = whole.by_type.values().map(|kind| kind.reasons.len());
        // Each type may have one for the rest.
        assert!(reasons.sum::<usize>() <= 2 * MAX_NAMES + 1);
        assert_eq!(whole.objects.len(), MAX_LISTED);
    }
}
