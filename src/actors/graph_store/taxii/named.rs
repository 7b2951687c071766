//! The objects of a collection that a request names by their ids.

use uuid::{Builder, Uuid, Version};

use super::page::{AskedPage, Begin, ObjectPage, standing_objects};
use super::reader::Reader;
use crate::actors::graph_store::GraphCore;
use crate::domain::error::DomainError;
use crate::domain::graph::place::Place;
use crate::domain::stix::object::type_of_id;
use crate::domain::taxii::addition::{AddedKind, Addition};
use crate::domain::tlp::Tlp;
use crate::store::{DatedAddition, NamedRows};

impl GraphCore {
    /// A page of the named objects, each with its date in the list.
    pub(super) async fn named_page(
        &self,
        mut reader: Reader<'_>,
        asked: &AskedPage,
        up_to: i64,
    ) -> Result<ObjectPage, DomainError> {
        let workspace = reader.workspace;
        let (ws, highest) = (workspace.id, workspace.clearance().highest());
        let seal = self.list_seal(ws);
        let Begin { after, skip } = asked.begin_of_named(&seal)?;
        let rows = self.rows_of_objects(ws, &asked.matches.ids, highest).await?;
        let mut entries = self.graph.store.additions_of(ws, &rows, highest).await?;
        if !asked.matches.versions.is_last_only() {
            entries = self.with_older(ws, entries, highest).await?;
        }
        entries.retain(|entry| entry.date > after && entry.date <= up_to && reader.admits_entry(entry));
        entries.sort_by_key(|entry| entry.date);
        let mut page = ObjectPage {
            objects: standing_objects(workspace, &asked.matches, after)?,
            ..ObjectPage::default()
        };
        let given = reader.objects(&entries).await?;
        page.objects.extend(given.objects);
        page.held_back = given.held;
        let next_date = after.saturating_add(1);
        let of_next = page
            .objects
            .iter()
            .take_while(|object| object.date == next_date)
            .count();
        page.objects.drain(..skip.min(of_next));
        if page.objects.len() > asked.limit {
            page.objects.truncate(asked.limit);
            page.read_to = page.objects.last().map(|last| last.date);
            page.next = page.read_to.map(|date| {
                let given = page.objects.iter().filter(|object| object.date == date).count();
                let before = if date == next_date { skip } else { 0 };
                Begin::behind(date, before + given).seal(&seal)
            });
        }
        Ok(page)
    }

    /// The rows that objects with these ids may stand in.
    pub(super) async fn rows_of_objects(
        &self,
        ws: Uuid,
        ids: &[String],
        highest: Tlp,
    ) -> Result<NamedRows, DomainError> {
        let of_ws = self.graph.store.ids_of(ws);
        let mut rows = NamedRows {
            nodes: self.nodes_named(ws, ids.to_vec(), (highest, true)).await?,
            stix_ids: ids.to_vec(),
            ..NamedRows::default()
        };
        for id in ids {
            // An object that was made here has the id of its row with another version (`synthesize.rs`).
            let made_here = id
                .split_once("--")
                .and_then(|(_, uuid)| uuid.parse::<Uuid>().ok());
            let made_here = made_here.map(|id| {
                let builder = Builder::from_bytes(id.into_bytes());
                builder.with_version(Version::Sha1).into_uuid()
            });
            if type_of_id(id) == Some("relationship") {
                let places = std::iter::once(Place::First).chain(Place::beside());
                rows.edges.extend(places.map(|place| of_ws.edge(&place.name(id))));
                rows.edges.extend(made_here);
            } else {
                rows.nodes.extend(made_here);
            }
        }
        Ok(rows)
    }

    /// These entries, each after those of the older versions of its object.
    async fn with_older(
        &self,
        ws: Uuid,
        entries: Vec<DatedAddition>,
        highest: Tlp,
    ) -> Result<Vec<DatedAddition>, DomainError> {
        let store = &self.graph.store;
        let nodes: Vec<Uuid> = entries.iter().map(|entry| entry.addition.id).collect();
        let stored = store.nodes_by_id(ws, &nodes, highest, true).await?;
        let mut all = Vec::new();
        for entry in entries {
            let node = stored.iter().find(|stored| stored.node.id == entry.addition.id);
            let evidence = node.map_or(&[][..], |stored| &stored.node.linked_evidence_ids);
            let mut versions = store.object_versions(ws, evidence, highest).await?;
            versions.retain(|version| Some(version.original) != entry.addition.original);
            let count = i64::try_from(versions.len()).unwrap_or(0);
            for (place, version) in (0i64..).zip(versions) {
                all.push(DatedAddition {
                    date: entry.date.saturating_sub(count - place),
                    tlp: entry.tlp,
                    addition: Addition {
                        kind: AddedKind::Node,
                        rev: -1,
                        original: Some(version.original),
                        is_withdrawn: false,
                        ..entry.addition.clone()
                    },
                });
            }
            all.push(entry);
        }
        Ok(all)
    }
}
