//! The report of skipped objects.

use std::collections::BTreeMap;

use serde::Serialize;

/// Maximum number of skipped objects listed individually.
const MAX_LISTED: usize = 100;

/// Skipped objects of one type, with reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkippedType {
    pub count: u64,
    pub reasons: BTreeMap<String, u64>,
}

/// A skipped object of a supported type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedObject {
    pub id: String,
    pub reason: String,
}

/// All skipped objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

    /// Counts and lists an object that breaks a rule.
    pub fn bad(&mut self, kind: &str, id: &str, reason: String) {
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
}
