//! Warnings about objects that say another level than their markings do.

use super::Conflict;

/// Maximum number of objects that a report names.
const MAX_NAMED: usize = 100;

/// The objects of a bundle that say two levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConflictReport {
    named: Vec<String>,
    total: usize,
}

impl ConflictReport {
    pub fn note(&mut self, stix_id: &str, conflict: Conflict) {
        self.total += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{stix_id}: {conflict}"));
        }
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn warnings(&self) -> Vec<String> {
        let mut lines = self.named.clone();
        let rest = self.total - self.named.len();
        if rest > 0 {
            lines.push(format!(
                "{rest} more objects say another level than their markings do: the stricter one counts"
            ));
        }
        lines
    }
}
