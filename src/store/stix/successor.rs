//! The marking of a version that follows a stored one.
//!
//! Rule: only a version that states a marking lowers the one of its row. One that states none keeps what is stricter,
//! and so does one that arrives after a newer version without a marking, or beside another text of the same version.

use crate::domain::tlp::Tlp;

/// Maximum number of objects that a report names.
const MAX_NAMED: usize = 100;

/// The marking of a version after one with the marking `stored`, where `planned` is what it would have by itself.
pub(super) fn level_after(stored: Tlp, planned: Tlp, stated: Option<Tlp>) -> Tlp {
    match stated {
        Some(_) => planned,
        None => planned.max(stored),
    }
}

/// The versions that kept the marking of the stored ones because they state none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptReport {
    named: Vec<String>,
    total: usize,
}

impl KeptReport {
    /// Notes a version, if it would be marked lower by itself.
    pub(super) fn note(&mut self, stix_id: &str, kept: Tlp, planned: Tlp) {
        if kept <= planned {
            return;
        }
        self.total += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!(
                "{stix_id}: the newer version states no marking, so it keeps {kept} of the stored version"
            ));
        }
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn into_warnings(self) -> Vec<String> {
        let rest = self.total - self.named.len();
        let mut lines = self.named;
        if rest > 0 {
            lines.push(format!(
                "{rest} more newer versions state no marking, so they keep those of the stored versions"
            ));
        }
        lines
    }
}
