//! Public names of actors, tools and malware, with their aliases.
//!
//! The list is data: name, type, ATT&CK id, and aliases separated by `;`. `assets/gazetteer/build.py` writes it from our
//! own list and the MISP galaxies. A name marked `=` matches only in exactly this case. One marked `~` must also be
//! beside a word such as "malware" or "group", one marked `^` only where a sentence begins. These are ordinary words.
//! Names are compared by [`canonical_name`], so `APT28`, `APT 28` and `apt-28` are one name; each canonical form belongs
//! to one entry only.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::LazyLock;

use crate::domain::kinds::EntityKind;

const DATA: &str = include_str!("../../../assets/gazetteer.csv");

/// When a name in a text matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// In any case.
    Any,
    /// In exactly this case.
    Exact,
    /// In exactly this case; where a sentence begins, also beside a word that says what it is.
    Inside,
    /// In exactly this case and beside a word that says what it is.
    Context,
}

/// An actor, tool or malware.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: String,
    pub kind: EntityKind,
    /// Its id in MITRE ATT&CK.
    pub attack_id: Option<String>,
    /// Other names, without the canonical one.
    pub aliases: Vec<String>,
    pub(super) modes: Vec<Mode>,
}

impl Entry {
    /// The canonical name and all aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }

    /// Whether this spelling of one of its names is more than an ordinary word.
    pub fn is_distinct(&self, spelling: &str) -> bool {
        let wanted = canonical_name(spelling);
        let mut names = self.names().zip(&self.modes);
        names.any(|(name, mode)| *mode != Mode::Context && canonical_name(name) == wanted)
    }
}

/// All entries, indexed by all their names.
#[derive(Debug)]
pub struct Gazetteer {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    rejected: usize,
}

static SHARED: LazyLock<Gazetteer> = LazyLock::new(|| Gazetteer::read(DATA));

impl Gazetteer {
    /// The built-in list.
    pub fn shared() -> &'static Gazetteer {
        &SHARED
    }

    fn read(data: &str) -> Gazetteer {
        let mut gazetteer = Gazetteer {
            entries: Vec::new(),
            by_name: HashMap::new(),
            rejected: 0,
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(data.as_bytes());
        for record in reader.records() {
            match record.ok().as_ref().and_then(entry) {
                Some(entry) => gazetteer.add(entry),
                None => gazetteer.rejected += 1,
            }
        }
        gazetteer
    }

    fn add(&mut self, entry: Entry) {
        let at = self.entries.len();
        for name in entry.names().chain(entry.attack_id.as_deref()) {
            match self.by_name.entry(canonical_name(name)) {
                hash_map::Entry::Vacant(free) => {
                    free.insert(at);
                }
                // Another spelling of the same entry is fine; another entry's name is not.
                hash_map::Entry::Occupied(taken) if *taken.get() == at => {}
                hash_map::Entry::Occupied(_) => self.rejected += 1,
            }
        }
        self.entries.push(entry);
    }

    /// The entry with this name, alias or ATT&CK id, in any spelling.
    pub fn resolve(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(&canonical_name(name))?)
    }

    /// The aliases of the entry with this name; empty if there is none.
    pub fn aliases_of(&self, name: &str) -> &[String] {
        self.resolve(name)
            .map(|entry| entry.aliases.as_slice())
            .unwrap_or_default()
    }

    /// All entries, in list order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

fn entry(record: &csv::StringRecord) -> Option<Entry> {
    let (name, first) = mode(record.get(0)?);
    let kind = match record.get(1)? {
        "actor" => EntityKind::Actor,
        "tool" => EntityKind::Tool,
        "malware" => EntityKind::Malware,
        _ => return None,
    };
    let attack_id = record.get(2).filter(|id| !id.is_empty()).map(str::to_owned);
    let mut aliases = Vec::new();
    let mut modes = vec![first];
    for alias in record
        .get(3)
        .unwrap_or_default()
        .split(';')
        .filter(|alias| !alias.trim().is_empty())
    {
        let (alias, mode) = mode(alias);
        aliases.push(alias.to_owned());
        modes.push(mode);
    }
    (!name.is_empty()).then(|| Entry {
        name: name.to_owned(),
        kind,
        attack_id,
        aliases,
        modes,
    })
}

fn mode(text: &str) -> (&str, Mode) {
    let text = text.trim();
    [('=', Mode::Exact), ('^', Mode::Inside), ('~', Mode::Context)]
        .into_iter()
        .find_map(|(mark, mode)| Some((text.strip_prefix(mark)?, mode)))
        .unwrap_or((text, Mode::Any))
}

/// The form in which names are compared: letters and digits, in lower case.
pub fn canonical_name(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .filter(|c| c.is_alphanumeric())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_list_is_large_and_clean() {
        let gazetteer = Gazetteer::shared();
        let count = |kind| {
            gazetteer
                .entries()
                .iter()
                .filter(|entry| entry.kind == kind)
                .count()
        };
        let (actors, tools, malware) = (
            count(EntityKind::Actor),
            count(EntityKind::Tool),
            count(EntityKind::Malware),
        );
        assert!(actors >= 750, "{actors} actors");
        assert!(tools + malware >= 2_500, "{tools} tools, {malware} malware");
        assert_eq!(gazetteer.rejected, 0);
    }

    #[test]
    fn every_spelling_of_a_name_is_one_entry() {
        let gazetteer = Gazetteer::shared();
        for name in ["APT28", "APT 28", "apt-28", "Fancy Bear", "FANCYBEAR", "G0007"] {
            assert_eq!(
                gazetteer.resolve(name).map(|entry| entry.name.as_str()),
                Some("APT28"),
                "{name}"
            );
        }
        assert!(
            gazetteer
                .aliases_of("Sandworm")
                .iter()
                .any(|alias| alias == "Voodoo Bear")
        );
        assert!(gazetteer.resolve("TA0001").is_none());
        assert!(gazetteer.aliases_of("nobody").is_empty());
    }

    #[test]
    fn a_name_in_dispute_stands_for_itself() {
        let gazetteer = Gazetteer::shared();
        for name in [
            "Berserk Bear",
            "Mint Sandstorm",
            "Cobalt Gypsy",
            "NOBELIUM",
            "DYMALLOY",
        ] {
            let entry = gazetteer.resolve(name).unwrap();
            assert_eq!(canonical_name(&entry.name), canonical_name(name));
            assert_eq!((&entry.attack_id, entry.aliases.len()), (&None, 0), "{name}");
        }
    }

    #[test]
    fn no_two_entries_share_a_name() {
        let mut seen = HashMap::new();
        for (at, entry) in Gazetteer::shared().entries().iter().enumerate() {
            for name in entry.names().chain(entry.attack_id.as_deref()) {
                let other = *seen.entry(canonical_name(name)).or_insert(at);
                assert_eq!(other, at, "{name}");
            }
        }
    }

    proptest! {
        #[test]
        fn canonical_names_stay(name in any::<String>()) {
            let once = canonical_name(&name);
            prop_assert_eq!(canonical_name(&once), once);
        }
    }
}
