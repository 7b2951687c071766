//! The marking of a version that follows a stored one.
//!
//! Rule: only a version that states a marking lowers the one of its row. One that states none keeps what is stricter,
//! and so does one that arrives after a newer version without a marking, or beside another text of the same version.

use crate::domain::stix::marking::SilentVersion;
use crate::domain::tlp::Tlp;

/// The marking of a version after one with the marking `stored`, where `planned` is what it would have by itself.
pub(super) fn level_after(stored: Tlp, planned: Tlp, stated: Option<Tlp>) -> Tlp {
    match stated {
        Some(_) => planned,
        None => planned.max(stored),
    }
}

/// What is said of a version with the marking `level`. Only one that is silent (it states no marking, and carries none that
/// is undefined) has taken the default of its bundle.
pub(super) fn silent_version(stored: Tlp, planned: Tlp, level: Tlp, is_silent: bool) -> SilentVersion {
    SilentVersion {
        before: if is_silent { stored } else { level },
        planned,
        level,
    }
}
