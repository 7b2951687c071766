//! Versions of one object, in a world of rows that holds nothing else: 10,000 worlds for each rule.

use chrono::TimeDelta;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const CASES: u32 = 10_000;

/// A version as it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    modified: DateTime<Utc>,
    stated: Option<Tlp>,
    /// The default of its bundle.
    default: Tlp,
    text: u8,
}

impl Version {
    fn level(&self) -> Tlp {
        self.stated.unwrap_or(self.default)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    stored: StoredVersion,
    /// The version whose text it has.
    version: Version,
}

#[derive(Debug, Clone, Default)]
struct World {
    rows: Vec<Row>,
}

/// What a writer is told of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Created,
    Updated,
    NotNewer,
}

impl World {
    fn stored(&self) -> Vec<StoredVersion> {
        self.rows.iter().map(|row| row.stored).collect()
    }

    fn send(&mut self, version: Version, writer: Tlp) -> Told {
        let level = version.level();
        let new = NewVersion {
            modified: version.modified,
            level,
            stated: version.stated,
            earlier: None,
            seen_from: level,
        };
        match resolve(&self.stored(), &new, writer) {
            Resolved::Create(place) => {
                let stored = StoredVersion {
                    place,
                    modified: Some(version.modified),
                    level,
                    seen_from: level,
                };
                assert!(self.rows.iter().all(|row| row.stored.place != place));
                self.rows.push(Row { stored, version });
                Told::Created
            }
            Resolved::Update { row, level } => {
                self.put(row, level, version);
                Told::Updated
            }
            Resolved::UpdateUnseen { row, level } => {
                self.put(row, level, version);
                Told::Created
            }
            Resolved::Rise {
                row,
                level,
                if_silent,
            } => {
                let row = &mut self.rows[row];
                if if_silent && row.version.stated.is_some() {
                    return Told::NotNewer;
                }
                (row.stored.level, row.stored.seen_from) = (level, level);
                Told::Updated
            }
            Resolved::Known { .. } => Told::NotNewer,
            Resolved::Nowhere => Told::Created,
        }
    }

    fn put(&mut self, row: usize, level: Tlp, version: Version) {
        let row = &mut self.rows[row];
        row.version = version;
        row.stored.modified = Some(version.modified);
        (row.stored.level, row.stored.seen_from) = (level, level);
    }

    /// The row that stands for the object to a reader.
    fn standing(&self, reader: Tlp) -> Option<&Row> {
        let stored = self.stored();
        let first = stored.iter().find(|row| row.place == Place::First);
        let first = first.filter(|first| first.seen_from <= reader);
        let able = |row: &StoredVersion| match first {
            Some(first) => row.seen_from >= first.seen_from && row.modified >= first.modified,
            None => true,
        };
        newest_seen(&stored, reader, able).map(|at| &self.rows[at])
    }
}

fn level() -> impl Strategy<Value = Tlp> {
    select(Tlp::ALL.to_vec())
}

fn time(step: u8) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(i64::from(step))
}

fn version() -> impl Strategy<Value = Version> {
    let parts = (0u8..5, option::of(level()), level(), 0u8..3);
    parts.prop_map(|(step, stated, default, text)| Version {
        modified: time(step),
        stated,
        default,
        text,
    })
}

/// The versions of an object, one for each time, which all come with one default.
fn history() -> impl Strategy<Value = Vec<Version>> {
    let stated = vec(option::of(level()), 1..6);
    (stated, level()).prop_map(|(stated, default)| {
        let version = |(step, stated)| Version {
            modified: time(step),
            stated,
            default,
            text: step,
        };
        (0u8..).zip(stated).map(version).collect()
    })
}

fn shuffled() -> impl Strategy<Value = (Vec<Version>, Vec<Version>)> {
    history().prop_flat_map(|history| {
        let sent = history.clone();
        // Some come twice.
        let twice = vec(select(history.clone()), 0..3);
        twice.prop_flat_map(move |twice| {
            let all: Vec<Version> = sent.iter().copied().chain(twice).collect();
            (Just(sent.clone()), Just(all).prop_shuffle())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn no_text_stands_above_its_marking_and_no_write_changes_what_its_writer_does_not_see(
        writes in vec((version(), level()), 1..9)
    ) {
        let mut world = World::default();
        for (version, writer) in writes {
            let before = world.clone();
            world.send(version, writer);
            for (at, row) in world.rows.iter().enumerate() {
                prop_assert!(row.stored.level >= row.version.level(), "{row:?} is marked below its text");
                let Some(old) = before.rows.get(at) else { continue };
                let is_own = row.stored.place == Place::Above(writer);
                prop_assert!(row == old || old.stored.seen_from <= writer || is_own, "{old:?} became {row:?}");
                let is_lowered = row.stored.level < old.stored.level;
                prop_assert!(!is_lowered || row.version.stated == Some(row.stored.level), "{old:?} became {row:?}");
            }
        }
    }

    #[test]
    fn any_order_of_the_same_versions_gives_the_same_row((history, sent) in shuffled()) {
        let mut world = World::default();
        for version in sent {
            world.send(version, Tlp::Red);
        }
        prop_assert_eq!(world.rows.len(), 1);
        let (row, newest) = (&world.rows[0], history.last().unwrap());
        prop_assert_eq!(&row.version, newest);
        // As if they had come one after the other.
        let after = |level: Option<Tlp>, version: &Version| {
            let level = level.map_or(version.level(), |level| level_after(level, version.level(), version.stated));
            Some(level)
        };
        let in_order = history.iter().fold(None, after).unwrap();
        prop_assert!(row.stored.level >= in_order, "{:?} is below {in_order}", row.stored);
        let statements: Vec<Tlp> = history.iter().filter_map(|version| version.stated).collect();
        if newest.stated.is_some() || statements.is_sorted() {
            prop_assert_eq!(row.stored.level, in_order);
        }
    }

    #[test]
    fn what_a_writer_is_told_does_not_depend_on_what_is_hidden(
        hidden in vec((0u8..5, 0u8..3), 1..4),
        own in vec((version(), 0usize..5), 1..8),
        writer in select(vec![Tlp::White, Tlp::Green, Tlp::Amber, Tlp::AmberPk]),
    ) {
        let red = |(step, text)| Version { modified: time(step), stated: Some(Tlp::Red), default: Tlp::Red, text };
        // The first row is a hidden one.
        let mut with = World::default();
        let mut hidden = hidden.into_iter().map(red);
        with.send(hidden.next().unwrap(), Tlp::Red);
        let mut without = World::default();
        for (version, turn) in own {
            // What the writer sends above its own clearance is told by its own rules.
            let version = Version { stated: version.stated.map(|stated| stated.min(writer)), default: version.default.min(writer), ..version };
            if turn == 0 && let Some(version) = hidden.next() {
                with.send(version, Tlp::Red);
            }
            prop_assert_eq!(with.send(version, writer), without.send(version, writer));
            let seen = |world: &World| world.standing(writer).map(|row| (row.version, row.stored.level));
            prop_assert_eq!(seen(&with), seen(&without));
        }
    }

    #[test]
    fn nobody_who_still_sees_a_version_is_put_back_to_an_older_one_unless_the_object_is_raised(writes in vec((version(), level()), 1..9)) {
        let mut world = World::default();
        for (version, writer) in writes {
            let before: Vec<Option<Row>> = Tlp::ALL.iter().map(|reader| world.standing(*reader).cloned()).collect();
            let first = |world: &World| world.rows.first().map(|row| row.stored.level);
            let level = first(&world);
            world.send(version, writer);
            // Nothing that is marked lower stands beside a first row that has risen: its writers may not have seen that.
            if first(&world) > level && level.is_some() {
                continue;
            }
            for (reader, old) in Tlp::ALL.into_iter().zip(before) {
                let Some(old) = old else { continue };
                let is_seen = |row: &&Row| row.stored.place == old.stored.place && row.stored.seen_from <= reader;
                if world.rows.iter().any(|row| is_seen(&row)) {
                    let now = world.standing(reader).map(|row| row.stored.modified);
                    prop_assert!(now >= Some(old.stored.modified), "{old:?} was newer for {reader}");
                }
            }
        }
    }
}
