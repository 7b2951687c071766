//! Which objects of a collection a request asks for (TAXII 2.1 section 3.4).

use chrono::{DateTime, Utc};

use super::addition::{AddedKind, Addition};
use super::view::Contents;
use crate::domain::tlp::Tlp;

/// The version of every object that this service gives out.
const SPEC_VERSION: &str = "2.1";

/// Which versions of an object are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionMatch {
    pub first: bool,
    pub last: bool,
    pub all: bool,
    /// With these times.
    pub at: Vec<DateTime<Utc>>,
}

/// What of a collection is asked for. Each condition that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectMatch {
    pub ids: Vec<String>,
    pub types: Vec<String>,
    pub spec_versions: Vec<String>,
    pub versions: VersionMatch,
}

/// The place of a version among those of its object.
#[derive(Debug, Clone, Copy)]
pub struct VersionPlace {
    pub is_first: bool,
    pub is_last: bool,
    pub at: Option<DateTime<Utc>>,
}

impl VersionMatch {
    /// Whether only newest versions are asked for, as without the parameter.
    pub fn is_last_only(&self) -> bool {
        !self.first && !self.all && self.at.is_empty()
    }

    /// Whether the only version of an object is asked for, with this time.
    pub fn admits_only(&self, at: Option<DateTime<Utc>>) -> bool {
        self.admits(VersionPlace {
            is_first: true,
            is_last: true,
            at,
        })
    }

    /// Whether a version is asked for.
    pub fn admits(&self, place: VersionPlace) -> bool {
        if self.all || (self.is_last_only() || self.last) && place.is_last {
            return true;
        }
        self.first && place.is_first || place.at.is_some_and(|time| self.at.contains(&time))
    }
}

impl ObjectMatch {
    /// Whether objects of the version of STIX that this service gives out are asked for.
    pub fn admits_spec_version(&self) -> bool {
        self.spec_versions.is_empty() || self.spec_versions.iter().any(|one| one == SPEC_VERSION)
    }

    /// Whether an object of this type is asked for.
    pub fn admits_type(&self, stix_type: &str) -> bool {
        self.admits_spec_version() && (self.types.is_empty() || self.types.iter().any(|one| one == stix_type))
    }

    /// Whether an entry may be what is asked for of a collection, as far as it says. What objects of every collection refer
    /// to, their authors and markings, is in all of them.
    pub fn admits_entry(&self, entry: &Addition, tlp: Tlp, contents: &Contents) -> bool {
        let (stix_type, tlp) = (entry.stix_type.as_deref(), entry.own.unwrap_or(tlp));
        stix_type.is_none_or(|stix_type| self.admits_type(stix_type))
            && (is_of_every_collection(entry) || may_hold(contents, stix_type, tlp))
    }
}

/// Whether an entry is of something that is in every collection.
pub fn is_of_every_collection(entry: &Addition) -> bool {
    entry.kind == AddedKind::Support || entry.stix_type.as_deref() == Some("identity")
}

fn may_hold(contents: &Contents, stix_type: Option<&str>, tlp: Tlp) -> bool {
    match contents {
        Contents::All => true,
        Contents::Level(level) => tlp == *level,
        Contents::Filtered(filter) => {
            filter.allows_marking(tlp) && stix_type.is_none_or(|stix_type| filter.allows_type(stix_type))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_matched_by_their_place_or_time() {
        let time = DateTime::<Utc>::UNIX_EPOCH;
        let place = |is_first, is_last| VersionPlace {
            is_first,
            is_last,
            at: Some(time),
        };
        let none = VersionMatch::default();
        let [first, last, all, at] = [0, 1, 2, 3].map(|which| VersionMatch {
            first: which == 0,
            last: which == 1,
            all: which == 2,
            at: (which == 3).then_some(time).into_iter().collect(),
        });
        for (asked, oldest, middle, newest) in [
            (none, false, false, true),
            (first, true, false, false),
            (last, false, false, true),
            (all, true, true, true),
            (at, true, true, true),
        ] {
            assert_eq!(asked.admits(place(true, false)), oldest, "{asked:?}");
            assert_eq!(asked.admits(place(false, false)), middle, "{asked:?}");
            assert_eq!(asked.admits(place(false, true)), newest, "{asked:?}");
            assert!(
                asked.admits(place(true, true)),
                "an only version is both: {asked:?}"
            );
        }
    }
}
