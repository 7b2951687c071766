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

/// The markings around a version that states none.
#[derive(Debug, Clone, Copy)]
pub struct SilentVersion {
    /// The marking of the version before.
    pub before: Tlp,
    /// What the version would be marked by itself: with the default of its bundle.
    pub planned: Tlp,
    /// What it is marked.
    pub level: Tlp,
}

/// The newer versions that state no marking, where this changes what counts: they keep a stricter one of the version
/// before, or take a stricter default of their bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SilentReport {
    named: Vec<String>,
    total: usize,
}

impl SilentReport {
    /// Notes a version that states no marking, if its marking is another one than before, or than planned.
    pub fn note(&mut self, stix_id: &str, version: SilentVersion) {
        let SilentVersion {
            before,
            planned,
            level,
        } = version;
        let what = if level > planned {
            format!("it keeps {level} of an earlier version")
        } else if level > before {
            format!("it takes {level} of its bundle, although the earlier version was {before}")
        } else {
            return;
        };
        self.total += 1;
        if self.named.len() < MAX_NAMED {
            let line = format!("{stix_id}: the newer version states no marking, so {what}");
            self.named.push(line);
        }
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn into_warnings(self) -> Vec<String> {
        let rest = self.total - self.named.len();
        let mut lines = self.named;
        if rest > 0 {
            lines.push(format!(
                "{rest} more newer versions state no marking, so they have the stricter of their bundle's and the one before"
            ));
        }
        lines
    }
}
