//! Which objects pass into an export.
//!
//! Every node, relationship and supporting object goes through [`Gate::sort`], and nothing else decides what leaves:
//! `marking::departure` judges by the strictest marking that the object carries. The definitions of its markings leave
//! with it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::stix::export::ExportObject;
use crate::domain::stix::marking::{self, Departure, Markings};
use crate::domain::tlp::Tlp;
use crate::store::{Definitions, Store};

/// What may leave in an export, and what is known of the markings that it met.
pub(super) struct Gate<'a> {
    store: &'a Store,
    ws: Uuid,
    /// The strictest marking that the caller may see.
    seen: Tlp,
    /// The strictest marking that may leave.
    leaving: Tlp,
    definitions: Definitions,
    known: Markings,
    asked: HashSet<String>,
    /// The markings that the definition of each carries.
    carried: HashMap<String, Vec<String>>,
}

/// Objects that leave, and those that don't.
pub(super) struct SortedObjects<T> {
    pub(super) leaving: Vec<(T, ExportObject)>,
    /// The number of those withheld.
    pub(super) held: u64,
    /// Whether one of them is withheld because it is RED.
    pub(super) red: bool,
}

impl<'a> Gate<'a> {
    pub(super) fn new(store: &'a Store, ws: Uuid, seen: Tlp, leaving: Tlp) -> Self {
        Self {
            store,
            ws,
            seen,
            leaving,
            definitions: Definitions::default(),
            known: Markings::new(),
            asked: HashSet::new(),
            carried: HashMap::new(),
        }
    }

    /// Divides objects into those that leave and those that don't.
    pub(super) async fn sort<T>(
        &mut self,
        objects: Vec<(T, ExportObject)>,
    ) -> Result<SortedObjects<T>, DomainError> {
        let carried = objects
            .iter()
            .flat_map(|(_, object)| marking::marking_refs(&object.raw));
        self.look_up(carried.map(str::to_owned).collect()).await?;
        let mut sorted = SortedObjects {
            leaving: Vec::new(),
            held: 0,
            red: false,
        };
        for (key, object) in objects {
            match marking::departure(&object.raw, object.tlp, &self.known, self.leaving) {
                Departure::Leaves if !self.are_markings_defined(&object.raw) => sorted.held += 1,
                Departure::Leaves => sorted.leaving.push((key, object)),
                Departure::Above(level) => {
                    sorted.held += 1;
                    sorted.red |= level == Tlp::Red;
                }
                Departure::Undefined => sorted.held += 1,
            }
        }
        Ok(sorted)
    }

    /// The definitions of these markings, as far as the caller may know them.
    pub(super) async fn definitions(
        &mut self,
        markings: Vec<String>,
    ) -> Result<Vec<Map<String, Value>>, DomainError> {
        self.look_up(markings.iter().cloned().collect()).await?;
        let found = markings
            .iter()
            .filter_map(|id| self.definitions.object(id, self.seen));
        Ok(found.collect())
    }

    /// Reads the definitions of these markings, and of those that the definitions carry.
    async fn look_up(&mut self, mut markings: HashSet<String>) -> Result<(), DomainError> {
        loop {
            markings.retain(|id| !marking::is_built_in(id) && !self.asked.contains(id));
            if markings.is_empty() {
                return Ok(());
            }
            let ids: Vec<String> = markings.iter().cloned().collect();
            let found = self.store.definitions(self.ws, &ids).await?;
            marking::learn(&mut self.known, found.known_to(self.seen));
            self.definitions.extend(found);
            self.asked.extend(markings.drain());
            for id in ids {
                if let Some(definition) = self.definitions.object(&id, self.seen) {
                    let carried: Vec<String> = marking::custom_refs(&definition);
                    markings.extend(carried.iter().cloned());
                    self.carried.insert(id, carried);
                }
            }
        }
    }

    /// Whether the definitions of all markings that the object carries can leave with the markings that they carry
    /// themselves.
    fn are_markings_defined(&self, object: &Map<String, Value>) -> bool {
        let mut left = marking::custom_refs(object);
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(id) = left.pop() {
            if !marking::has_definition(&id) && !self.known.contains_key(&id) {
                return false;
            }
            if seen.insert(id.clone()) {
                left.extend(self.carried.get(&id).into_iter().flatten().cloned());
            }
        }
        true
    }
}
