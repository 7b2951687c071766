//! Turns entries of the list of additions into the objects that one reader is given.
//!
//! What an object looks like and whether it leaves is what a session's export says (`export.rs`, `export_gate.rs`), object by
//! object: one that may not leave is withheld and counted, and the others leave.

mod edges;
mod nodes;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, SubsecRound, Utc};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use uuid::Uuid;

use self::nodes::PageNodes;
use crate::actors::graph_store::GraphCore;
use crate::actors::graph_store::export::ExportLimits;
use crate::actors::graph_store::export_gate::Gate;
use crate::actors::graph_store::export_merges::MergedObjects;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::principal::{Principal, Workspace};
use crate::domain::stix::export::{self, ExportObject, ExportParts};
use crate::domain::stix::object::{self, modified_of};
use crate::domain::stix::synthesize;
use crate::domain::taxii::addition::AddedKind;
use crate::domain::taxii::asked::{ObjectMatch, is_of_every_collection};
use crate::domain::taxii::filter::ObjectFacts;
use crate::domain::taxii::view::Contents;
use crate::domain::tlp::Tlp;
use crate::store::DatedAddition;

/// What a reader is given of a collection.
pub(super) struct Reader<'a> {
    core: &'a GraphCore,
    pub(super) workspace: &'a Workspace,
    contents: &'a Contents,
    asked: &'a ObjectMatch,
    limits: ExportLimits,
    gate: Gate<'a>,
    author_id: String,
}

/// An object that is given out, as text: what answers requests must not spend its time on a large page.
#[derive(Debug, Clone)]
pub struct GivenObject {
    /// When it was added, in microseconds.
    pub date: i64,
    pub id: String,
    /// When this version was made; `None` of an object that has no versions.
    pub version: Option<String>,
    pub json: Box<RawValue>,
}

impl GivenObject {
    /// # Errors
    /// When the object can't be written as JSON, which no object that was read as JSON fails at.
    pub(super) fn new(date: i64, object: &Value) -> Result<Self, DomainError> {
        let text = |name: &str| object[name].as_str().map(str::to_owned);
        let json = to_raw_value(object);
        Ok(Self {
            date,
            id: text("id").unwrap_or_default(),
            version: text("modified").or_else(|| text("created")),
            json: json.map_err(|error| DomainError::internal("an object can't be written", error))?,
        })
    }
}

/// An object on its way out.
struct Candidate {
    date: i64,
    object: ExportObject,
}

/// What a page of entries gives, and how many objects are withheld of it.
#[derive(Default)]
pub(super) struct Given {
    pub(super) objects: Vec<GivenObject>,
    pub(super) held: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        core: &'a GraphCore,
        by: &'a Principal,
        limits: ExportLimits,
        (contents, asked): (&'a Contents, &'a ObjectMatch),
    ) -> Self {
        let workspace = &by.workspace;
        let (ws, seen) = (workspace.id, workspace.clearance().highest());
        let author = author_of(workspace);
        Self {
            core,
            workspace,
            contents,
            asked,
            gate: Gate::new(&core.graph.store, ws, seen, limits.highest),
            limits,
            author_id: object::text(&author, "id").unwrap_or_default().to_owned(),
        }
    }

    /// Whether an object is the identity of the workspace that every collection begins with: a copy of it that came back from
    /// elsewhere is no second one.
    fn is_standing(&self, object: &ExportObject) -> bool {
        let (id, version) = version_of(object);
        id == self.author_id && version.is_none_or(|version| version <= self.workspace.created_at)
    }

    /// The strictest marking that the reader may see.
    fn seen(&self) -> Tlp {
        self.workspace.clearance().highest()
    }

    fn is_blocked(&self, feeds: &[Uuid]) -> bool {
        feeds.iter().any(|feed| self.limits.blocked.contains(feed))
    }

    /// Whether an entry may be of something that the collection holds and the request asks for.
    pub(super) fn admits_entry(&self, entry: &DatedAddition) -> bool {
        self.asked.admits_entry(&entry.addition, entry.tlp, self.contents)
    }

    fn admits(&self, facts: &ObjectFacts<'_>) -> bool {
        self.asked.admits_type(facts.stix_type)
            && match self.contents {
                Contents::All => true,
                Contents::Level(level) => facts.tlp == *level,
                Contents::Filtered(filter) => filter.admits(facts),
            }
    }

    /// What these entries give, in their order.
    pub(super) async fn objects(&mut self, entries: &[DatedAddition]) -> Result<Given, DomainError> {
        let entries = &self.last_entries(entries).await?;
        let mut given = Given::default();
        let PageNodes {
            mut candidates,
            mut merged,
            ids,
        } = self.nodes(entries, &mut given.held).await?;
        let (edges, ends) = self.edges(entries, &mut given.held).await?;
        candidates.extend(edges);
        candidates.extend(self.supports(entries, &mut given.held).await?);
        candidates.retain(|candidate| !self.is_standing(&candidate.object));
        // One order of what has the same date: a page may begin among them.
        candidates.sort_by_cached_key(|candidate| (candidate.date, version_of(&candidate.object)));
        let mut parts = ExportParts {
            nodes: candidates
                .iter()
                .map(|candidate| candidate.object.clone())
                .collect(),
            supporting: ends,
            ..ExportParts::default()
        };
        merged.rename_in_all(&mut parts);
        let kept = self.follow(&mut parts, &ids, &mut merged).await?;
        let left: HashSet<(String, Option<DateTime<Utc>>)> = parts.nodes.iter().map(version_of).collect();
        let (leaving, dropped): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|candidate| left.contains(&version_of(&candidate.object)));
        // That a relationship leads to something hidden is not told.
        let is_relationship =
            |object: &ExportObject| object::text(&object.raw, "type") == Some("relationship");
        let dropped = dropped
            .iter()
            .filter(|candidate| !is_relationship(&candidate.object));
        given.held += dropped.count() as u64;
        let dates = leaving.into_iter().map(|candidate| candidate.date);
        let leaving: Vec<(i64, ExportObject)> = dates.zip(parts.nodes).collect();
        let built = blocking(move || {
            let single = |(date, object)| {
                let object = export::single(object, |id| kept.contains(id));
                let given = object.map(|object| GivenObject::new(date, &object));
                given.map_or_else(|violations| Ok(Err(violations)), |given| given.map(Ok))
            };
            leaving.into_iter().map(single).collect::<Result<Vec<_>, _>>()
        });
        for object in built.await? {
            match object {
                Ok(object) => given.objects.push(object),
                Err(violations) => {
                    tracing::warn!(
                        rules = export::summary(&violations),
                        "an object breaks a rule of STIX and stays"
                    );
                    given.held += 1;
                }
            }
        }
        Ok(given)
    }

    /// These entries without those of things that were entered again since then, and are given with their last entry.
    async fn last_entries(&self, entries: &[DatedAddition]) -> Result<Vec<DatedAddition>, DomainError> {
        let rows = entries.iter().map(|entry| entry.addition.id);
        let again = self.core.graph.store.last_dates(self.workspace.id, rows).await?;
        let is_last = |entry: &&DatedAddition| {
            again
                .get(&entry.addition.id)
                .is_none_or(|last| last.rev != entry.addition.rev || last.date <= entry.date)
        };
        Ok(entries.iter().filter(is_last).cloned().collect())
    }

    /// Follows the references of the parts to what leaves, and drops the parts that don't leave without others; the ids of all
    /// that does. What those objects refer to themselves is asked for only as far as they can't leave without it.
    async fn follow(
        &mut self,
        parts: &mut ExportParts,
        ids: &[Uuid],
        merged: &mut MergedObjects,
    ) -> Result<HashSet<String>, DomainError> {
        let ws = self.workspace.id;
        let mut near = parts.supporting.len();
        for step in 0..2 {
            if step == 1 {
                near = parts.supporting.len();
            }
            self.core
                .add_supporting(&mut self.gate, ws, (parts, ids, merged), (&self.limits, 1))
                .await?;
        }
        for far in parts.supporting.iter_mut().skip(near) {
            far.raw.retain(|name, _| name == "id" || name == "type");
        }
        parts.supporting.push(ExportObject::of_definition(Map::from_iter([
            ("id".to_owned(), Value::from(self.author_id.clone())),
            ("type".to_owned(), Value::from("identity")),
        ])));
        parts.drop_without_references();
        let all = parts.nodes.iter().chain(&parts.supporting);
        let ids = all.filter_map(|object| object::text(&object.raw, "id"));
        Ok(ids.map(str::to_owned).collect())
    }

    /// The supporting objects of these entries.
    async fn supports(
        &mut self,
        entries: &[DatedAddition],
        held: &mut u64,
    ) -> Result<Vec<Candidate>, DomainError> {
        let ws = self.workspace.id;
        let named = entries
            .iter()
            .filter(|entry| is_of_every_collection(&entry.addition));
        let named = named.filter(|entry| entry.addition.kind == AddedKind::Support);
        let named: HashMap<Uuid, &DatedAddition> = named.map(|entry| (entry.addition.id, entry)).collect();
        let ids: Vec<Uuid> = named.keys().copied().collect();
        let found = self
            .core
            .graph
            .store
            .supports_to_export(ws, &ids, self.seen())
            .await?;
        let mut objects = Vec::new();
        for support in found {
            let Some(entry) = named.get(&support.id) else {
                continue;
            };
            let stix_type = object::type_of_id(&support.stix_id).unwrap_or_default();
            let is_asked =
                self.asked.admits_type(stix_type) && self.asked.versions.admits_only(Some(support.modified));
            if support.modified.timestamp_micros() != entry.addition.rev || !is_asked {
                continue;
            }
            // A definition says much of what carries it: it leaves where it was sent by itself, as any object does.
            if support.tlp > self.limits.highest || self.is_blocked(&support.feeds) {
                *held += 1;
            } else if stix_type == "marking-definition" {
                let known = self.gate.definitions(vec![support.stix_id]).await?;
                objects.extend(
                    known
                        .into_iter()
                        .map(|raw| (entry.date, ExportObject::of_definition(raw))),
                );
            } else if support.is_held {
                *held += 1;
            } else {
                let object = ExportObject {
                    raw: support.raw,
                    tlp: support.tlp,
                    confidence: None,
                    changed_at: None,
                };
                objects.push((entry.date, object));
            }
        }
        let sorted = self.gate.sort(objects).await?;
        *held += sorted.held;
        let leaving = sorted.leaving.into_iter();
        Ok(leaving.map(|(date, object)| Candidate { date, object }).collect())
    }
}

impl GraphCore {
    /// What may leave to a caller.
    pub(super) async fn limits_of(&self, by: &Principal) -> Result<ExportLimits, DomainError> {
        let workspace = &by.workspace;
        let (ws, seen) = (workspace.id, workspace.clearance().highest());
        let blocked = self.graph.store.blocked_feeds(ws).await?;
        Ok(ExportLimits {
            highest: match workspace.red_export_grant {
                true => seen,
                false => seen.min(Tlp::AmberPk),
            },
            blocked: blocked.iter().map(|feed| feed.id).collect(),
            include_rejected: by.may_see_rejected(),
            merges: self.merges_seen(ws, (seen, by.may_see_rejected())).await?,
        })
    }
}

/// The identity of a workspace.
pub(super) fn author_of(workspace: &Workspace) -> Map<String, Value> {
    synthesize::workspace_identity(workspace.id, &workspace.name, workspace.created_at)
}

/// Says of an object that it is no longer valid; false where the standard has no way to.
fn revoke(object: &mut ExportObject) -> bool {
    // Observables have no versions (STIX 2.1 section 3.2).
    let has_versions = object.raw.contains_key("modified");
    if has_versions {
        object.raw.insert("revoked".to_owned(), true.into());
    }
    has_versions
}

/// The time of the version that an object leaves as.
fn version_time(object: &ExportObject) -> Option<DateTime<Utc>> {
    let changed_at = object.changed_at.map(|time| time.trunc_subsecs(3));
    changed_at.max(modified_of(&object.raw))
}

fn version_of(object: &ExportObject) -> (String, Option<DateTime<Utc>>) {
    let id = object::text(&object.raw, "id").unwrap_or_default();
    (id.to_owned(), modified_of(&object.raw))
}
