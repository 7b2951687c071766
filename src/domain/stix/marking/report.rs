//! Warnings about objects for which another level counts than the one that they say.

use super::Conflict;
use crate::domain::tlp::Tlp;

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

/// The versions that keep the markings of earlier ones because they state none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptReport {
    named: Vec<String>,
    total: usize,
}

impl KeptReport {
    /// Notes a version, if it would be marked lower by itself.
    pub fn note(&mut self, stix_id: &str, kept: Tlp, planned: Tlp) {
        if kept <= planned {
            return;
        }
        self.total += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!(
                "{stix_id}: the newer version states no marking, so it keeps {kept} of an earlier version"
            ));
        }
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn into_warnings(self) -> Vec<String> {
        let rest = self.total - self.named.len();
        let mut lines = self.named;
        if rest > 0 {
            lines.push(format!(
                "{rest} more newer versions state no marking, so they keep those of earlier versions"
            ));
        }
        lines
    }
}
