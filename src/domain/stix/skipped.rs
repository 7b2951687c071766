//! What was not taken in, and why.

use std::collections::BTreeMap;

use serde::Serialize;

/// Skipped objects that are listed one by one.
const MAX_LISTED: usize = 100;

/// Objects of one type that were not taken, with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkippedType {
    pub count: u64,
    pub reasons: BTreeMap<String, u64>,
}

/// One object that was not taken although its type is supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedObject {
    pub id: String,
    pub reason: String,
}

/// Everything that was not taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkipReport {
    pub by_type: BTreeMap<String, SkippedType>,
    /// The first hundred bad objects.
    pub objects: Vec<SkippedObject>,
}

impl SkipReport {
    /// Number of objects not taken.
    pub fn total(&self) -> u64 {
        self.by_type.values().map(|skipped| skipped.count).sum()
    }

    /// Counts one object whose type is simply not a node.
    pub fn count(&mut self, kind: &str, reason: &str) {
        let entry = self.by_type.entry(kind.to_owned()).or_default();
        entry.count += 1;
        *entry.reasons.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts and lists one object that breaks a rule.
    pub fn bad(&mut self, kind: &str, id: &str, reason: String) {
        // Reasons name values of the object, so the count per reason keeps only the rule.
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
