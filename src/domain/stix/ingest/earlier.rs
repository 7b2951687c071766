//! The markings of an object's versions that come together.
//!
//! Rule: they count as if the versions had come one by one, the oldest first. So a version that states no marking keeps
//! what is stricter since the last one that states one, and of two texts of one version the stricter statement counts.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{ObjectMarking, Planner, modified_of, text};
use crate::domain::tlp::Tlp;

/// How a version is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionMarking {
    pub modified: DateTime<Utc>,
    pub tlp: Tlp,
    /// The marking that the version itself states.
    pub stated: Option<Tlp>,
}

/// What other versions say of the marking of the newest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarlierMarking {
    /// The level below which the newest one does not fall.
    pub tlp: Option<Tlp>,
    /// The part of it that a version states.
    pub stated: Option<Tlp>,
}

/// The versions that came with newer ones, by the id of their object.
#[derive(Debug, Clone, Default)]
pub struct EarlierVersions(HashMap<String, Vec<VersionMarking>>);

impl EarlierVersions {
    pub fn note(&mut self, stix_id: &str, version: VersionMarking) {
        self.0.entry(stix_id.to_owned()).or_default().push(version);
    }

    /// What they say of the marking of the object's newest version.
    pub fn of(&self, stix_id: &str, newest: VersionMarking) -> EarlierMarking {
        let versions = self.0.get(stix_id).map(Vec::as_slice).unwrap_or_default();
        let states = |version: &&VersionMarking| version.stated.is_some();
        let last_statement = versions
            .iter()
            .filter(states)
            .map(|version| version.modified)
            .max();
        let counts = |version: &&VersionMarking| match newest.stated {
            Some(_) => version.stated.is_some() && version.modified >= newest.modified,
            None => last_statement.is_none_or(|last| version.modified >= last),
        };
        let counted = || versions.iter().filter(counts);
        EarlierMarking {
            tlp: counted().map(|version| version.tlp).max(),
            stated: counted().filter_map(|version| version.stated).max(),
        }
    }
}

impl Planner {
    /// What the other versions of an object in the bundle say of its marking.
    pub(super) fn earlier_marking(
        &self,
        object: &Map<String, Value>,
        marked: &ObjectMarking,
    ) -> EarlierMarking {
        let id = text(object, "id").unwrap_or_default();
        self.earlier.of(id, self.version(object, marked))
    }

    /// A version of an object with its marking.
    pub(super) fn version(&self, object: &Map<String, Value>, marked: &ObjectMarking) -> VersionMarking {
        VersionMarking {
            modified: modified_of(object).unwrap_or(self.defaults.now),
            tlp: marked.tlp,
            stated: marked.stated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(year: i64, tlp: Tlp, stated: Option<Tlp>) -> VersionMarking {
        let modified = DateTime::from_timestamp(year * 31_556_952, 0).unwrap();
        VersionMarking {
            modified,
            tlp,
            stated,
        }
    }

    #[test]
    fn versions_count_as_if_they_had_come_one_by_one() {
        let stating = |year, tlp| version(year, tlp, Some(tlp));
        let silent = |year| version(year, Tlp::Green, None);
        let undefined = |year| version(year, Tlp::Amber, None);
        let (red, green, amber) = (Some(Tlp::Red), Some(Tlp::Green), Some(Tlp::Amber));
        for (earlier, newest, level, stated) in [
            (vec![stating(1, Tlp::Red)], silent(2), red, red),
            (vec![stating(1, Tlp::Red)], stating(2, Tlp::Green), None, None),
            (vec![stating(2, Tlp::Red)], stating(2, Tlp::Green), red, red),
            (vec![stating(2, Tlp::Red)], silent(2), red, red),
            (
                vec![stating(2, Tlp::Green), stating(1, Tlp::Red)],
                silent(3),
                green,
                green,
            ),
            (
                vec![undefined(2), stating(1, Tlp::Green)],
                silent(3),
                amber,
                green,
            ),
            (vec![undefined(1)], silent(2), amber, None),
            (vec![undefined(2)], stating(2, Tlp::Green), None, None),
            (vec![], silent(1), None, None),
        ] {
            let mut versions = EarlierVersions::default();
            for version in &earlier {
                versions.note("tool--1", *version);
                versions.note("tool--2", stating(9, Tlp::Red));
            }
            let want = EarlierMarking { tlp: level, stated };
            assert_eq!(versions.of("tool--1", newest), want, "{earlier:?} {newest:?}");
        }
    }
}
