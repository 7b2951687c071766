//! What one part of an erasure removes: read in the turn of the workspace, so that nothing changes in between.
//!
//! Rules:
//! - An evidence record goes with a node if no other node lists it, and with it what it alone states.
//! - A node goes with an evidence record if it lists no other, or if the record is its original.
//! - There is no index of most of this, as erasures are rare: the tables are read.

use std::collections::{HashMap, HashSet};

use surrealdb::types::{RecordId, SurrealValue, Value};
use uuid::Uuid;

use super::ErasurePart;
use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::store::feeds::hand_ins::HandInObjects;
use crate::store::graph::added_dates::place_of;
use crate::store::graph::erased_changes::{ChangesWithout, ErasedIds, RewrittenRow};
use crate::store::graph::faces::correction_of;
use crate::store::identity::collections::CollectionNodes;
use crate::store::rows::{key, record};
use crate::store::staging::erase::StagingWithout;
use crate::store::stix::erase::StixWithout;
use crate::store::{Store, failed};

const READ: &str = "reading what is to be erased failed";

#[derive(Debug, SurrealValue)]
struct NodeLinks {
    id: RecordId,
    tlp_rank: i64,
    evidence: Vec<Uuid>,
    stix_evidence: Option<Uuid>,
    corrected: Option<String>,
}

#[derive(Debug, SurrealValue)]
struct FoundEvidence {
    id: RecordId,
    kind: String,
    ext_id: Option<String>,
    tlp_rank: i64,
}

#[derive(Debug, SurrealValue)]
struct Ranked {
    id: RecordId,
    tlp_rank: i64,
}

#[derive(Debug, SurrealValue)]
struct StatedEdge {
    id: RecordId,
    tlp_rank: i64,
    evidence: Option<Uuid>,
}

#[derive(Debug, SurrealValue)]
struct FoundPair {
    id: RecordId,
    one: Uuid,
    other: Uuid,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct SessionRow {
    id: RecordId,
    node_ids: Vec<Uuid>,
    pub(super) max_tlp: i64,
}

/// Rows with the rank of their marking.
pub(super) type RankedRows = Vec<(RecordId, i64)>;

/// What a part removes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) nodes: RankedRows,
    /// Nodes that stay without some of their evidence.
    pub(super) touched: Vec<RecordId>,
    pub(super) evidence: RankedRows,
    pub(super) evidence_ids: HashSet<Uuid>,
    pub(super) edges: RankedRows,
    pub(super) passages: RankedRows,
    /// Rows of merges, and of pairs that are not the same.
    pub(super) merges: Vec<RecordId>,
    /// Those of both whose nodes are seen.
    pub(super) merges_seen: u64,
    pub(super) sessions: Vec<SessionRow>,
    pub(super) collections: Vec<CollectionNodes>,
    pub(super) items: Vec<RecordId>,
    pub(super) hand_ins: Vec<HandInObjects>,
    pub(super) staging: StagingWithout,
    pub(super) stix: StixWithout,
    pub(super) changes: ChangesWithout,
    pub(super) additions: Vec<RewrittenRow>,
    /// When it was entered last into the list of additions.
    pub(super) last_dates: Vec<RecordId>,
}

/// The nodes of a workspace with what they list.
struct AllLinks {
    rows: Vec<NodeLinks>,
    ranks: HashMap<Uuid, i64>,
}

impl Store {
    pub(super) async fn plan_erasure(
        &self,
        ws: Uuid,
        part: &ErasurePart,
        highest: Tlp,
    ) -> Result<Plan, DomainError> {
        let all = self.all_links(ws).await?;
        let mut plan = Plan::default();
        let nodes = all.nodes_of(part, &mut plan)?;
        let found = self.erased_evidence(ws, &all.evidence_of(part, &nodes)?).await?;
        plan.evidence_ids = found.iter().map(|row| key(&row.id)).collect::<Result<_, _>>()?;
        let of_kind = |kind: &'static str| found.iter().filter(move |row| row.kind == kind);
        let texts = of_kind("staged").filter_map(|row| row.ext_id.as_deref()?.parse().ok());
        let texts: HashSet<Uuid> = texts.collect();
        let originals = all.originals_of(&nodes)?;
        let mut stix_ids = HashSet::new();
        for row in of_kind("stix") {
            if originals.contains(&key(&row.id)?) {
                stix_ids.extend(row.ext_id.clone());
            }
        }
        plan.evidence = found.into_iter().map(|row| (row.id, row.tlp_rank)).collect();
        plan.edges = self.erased_edges(ws, part, (&nodes, &plan.evidence_ids)).await?;
        plan.passages = self.erased_passages(ws, &nodes).await?;
        self.plan_merges(ws, &nodes, (&all, highest), &mut plan).await?;
        plan.sessions = self.sessions_without(ws, &nodes).await?;
        plan.collections = self.collections_without(ws, &nodes).await?;
        plan.items = self.items_of_objects(ws, &stix_ids).await?;
        plan.staging = self.staging_without(ws, (&nodes, &texts), highest).await?;
        let rows = plan.evidence.iter().chain(&plan.edges);
        let rows: HashSet<Uuid> = rows.map(|(id, _)| key(id)).collect::<Result<_, _>>()?;
        plan.hand_ins = self.hand_ins_without(ws, (&stix_ids, &rows)).await?;
        plan.stix = self.stix_without(ws, (&stix_ids, &rows), highest).await?;
        let edges = plan.edges.iter().map(|(id, _)| key(id));
        let touched = plan.touched.iter().map(key);
        let erased = ErasedIds {
            edges: edges.collect::<Result<_, _>>()?,
            touched: touched.collect::<Result<_, _>>()?,
            nodes,
        };
        plan.changes = self.changes_without_erased(ws, &erased, highest).await?;
        let mut gone = plan.stix.rows()?;
        gone.extend(erased.nodes.iter().chain(&erased.edges).chain(&plan.evidence_ids));
        plan.last_dates = gone.iter().map(|row| place_of(ws, *row)).collect();
        plan.additions = self.additions_without_erased(ws, &gone).await?;
        Ok(plan)
    }

    /// Reads rows; the query refers to workspace and values by their names.
    async fn found<T: SurrealValue>(
        &self,
        ws: Uuid,
        query: &str,
        values: &[(&'static str, Value)],
    ) -> Result<Vec<T>, DomainError> {
        let mut statement = self.db.query(query).bind(("ws", ws));
        for (name, value) in values {
            statement = statement.bind((*name, value.clone()));
        }
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }

    async fn all_links(&self, ws: Uuid) -> Result<AllLinks, DomainError> {
        let query = "SELECT id, tlp_rank, evidence, stix_evidence, corrected FROM node WHERE ws = $ws";
        let rows: Vec<NodeLinks> = self.found(ws, query, &[]).await?;
        let ranks = rows.iter().map(|row| Ok((key(&row.id)?, row.tlp_rank)));
        let ranks = ranks.collect::<Result<_, DomainError>>()?;
        Ok(AllLinks { rows, ranks })
    }

    async fn erased_evidence(
        &self,
        ws: Uuid,
        ids: &HashSet<Uuid>,
    ) -> Result<Vec<FoundEvidence>, DomainError> {
        let query = "SELECT id, kind, ext_id, tlp_rank FROM $ids WHERE ws = $ws";
        let ids: Vec<RecordId> = ids.iter().map(|id| record("evidence", *id)).collect();
        self.found(ws, query, &[("ids", ids.into_value())]).await
    }

    /// The edges that a part names, those of these nodes, and those that these records state.
    async fn erased_edges(
        &self,
        ws: Uuid,
        part: &ErasurePart,
        (nodes, evidence): (&HashSet<Uuid>, &HashSet<Uuid>),
    ) -> Result<RankedRows, DomainError> {
        let ids: Vec<RecordId> = nodes.iter().map(|id| record("node", *id)).collect();
        let ids = [("nodes", ids.into_value())];
        let mut edges: HashMap<Uuid, i64> = HashMap::new();
        let named: Vec<RecordId> = part.edges.iter().map(|id| record("edge", *id)).collect();
        if !named.is_empty() {
            let query = "SELECT id, tlp_rank FROM $ids WHERE ws = $ws";
            let rows: Vec<Ranked> = self.found(ws, query, &[("ids", named.into_value())]).await?;
            for row in rows {
                edges.insert(key(&row.id)?, row.tlp_rank);
            }
        }
        for query in [
            "SELECT id, tlp_rank FROM $nodes->edge WHERE ws = $ws",
            "SELECT id, tlp_rank FROM $nodes<-edge WHERE ws = $ws",
        ] {
            let rows: Vec<Ranked> = match nodes.is_empty() {
                true => Vec::new(),
                false => self.found(ws, query, &ids).await?,
            };
            for row in rows {
                edges.insert(key(&row.id)?, row.tlp_rank);
            }
        }
        let query = "SELECT id, tlp_rank, evidence FROM edge WHERE ws = $ws AND evidence != NONE";
        let stated: Vec<StatedEdge> = match evidence.is_empty() {
            true => Vec::new(),
            false => self.found(ws, query, &[]).await?,
        };
        let is_stated = |row: &StatedEdge| row.evidence.is_some_and(|by| evidence.contains(&by));
        for row in stated.into_iter().filter(is_stated) {
            edges.insert(key(&row.id)?, row.tlp_rank);
        }
        let edges = edges.into_iter();
        Ok(edges.map(|(id, rank)| (record("edge", id), rank)).collect())
    }

    async fn erased_passages(&self, ws: Uuid, nodes: &HashSet<Uuid>) -> Result<RankedRows, DomainError> {
        let query =
            "SELECT id, tlp_rank FROM passage WHERE ws = $ws AND (source IN $nodes OR target IN $nodes)";
        let ids: Vec<RecordId> = nodes.iter().map(|id| record("node", *id)).collect();
        let rows: Vec<Ranked> = match ids.is_empty() {
            true => Vec::new(),
            false => self.found(ws, query, &[("nodes", ids.into_value())]).await?,
        };
        Ok(rows.into_iter().map(|row| (row.id, row.tlp_rank)).collect())
    }

    async fn plan_merges(
        &self,
        ws: Uuid,
        nodes: &HashSet<Uuid>,
        (all, highest): (&AllLinks, Tlp),
        plan: &mut Plan,
    ) -> Result<(), DomainError> {
        let ends = [
            ("first", Uuid::nil().into_value()),
            ("last", Uuid::max().into_value()),
        ];
        for query in [
            "SELECT id, record::id(id)[1] AS one, into AS other FROM node_merge:[$ws, $first]..=[$ws, $last]",
            "SELECT id, record::id(id)[1] AS one, record::id(id)[2] AS other \
             FROM node_distinct:[$ws, $first, $first]..=[$ws, $last, $last]",
        ] {
            let pairs: Vec<FoundPair> = self.found(ws, query, &ends).await?;
            for pair in pairs {
                if nodes.contains(&pair.one) || nodes.contains(&pair.other) {
                    let is_seen = |id: &Uuid| {
                        all.ranks
                            .get(id)
                            .is_some_and(|rank| *rank <= i64::from(highest.rank()))
                    };
                    plan.merges_seen += u64::from(is_seen(&pair.one) && is_seen(&pair.other));
                    plan.merges.push(pair.id);
                }
            }
        }
        Ok(())
    }

    async fn sessions_without(
        &self,
        ws: Uuid,
        nodes: &HashSet<Uuid>,
    ) -> Result<Vec<SessionRow>, DomainError> {
        let query = "SELECT id, node_ids, max_tlp FROM recall_session WHERE ws = $ws";
        let mut sessions: Vec<SessionRow> = self.found(ws, query, &[]).await?;
        sessions.retain_mut(|session| {
            let before = session.node_ids.len();
            session.node_ids.retain(|id| !nodes.contains(id));
            session.node_ids.len() < before
        });
        Ok(sessions)
    }

    async fn collections_without(
        &self,
        ws: Uuid,
        nodes: &HashSet<Uuid>,
    ) -> Result<Vec<CollectionNodes>, DomainError> {
        let query = "SELECT id, nodes FROM collection WHERE ws = $ws";
        let mut collections: Vec<CollectionNodes> = self.found(ws, query, &[]).await?;
        collections.retain_mut(|collection| {
            let before = collection.nodes.len();
            collection.nodes.retain(|id| !nodes.contains(id));
            collection.nodes.len() < before
        });
        Ok(collections)
    }
}

impl NodeLinks {
    fn corrections(&self) -> Result<Vec<Uuid>, DomainError> {
        let correction = correction_of(self.corrected.as_deref())?.unwrap_or_default();
        Ok(correction.evidence.into_iter().map(|(id, _)| id).collect())
    }
}

impl AllLinks {
    /// The nodes that a part removes; those that only lose evidence are noted in the plan.
    fn nodes_of(&self, part: &ErasurePart, plan: &mut Plan) -> Result<HashSet<Uuid>, DomainError> {
        let named: HashSet<Uuid> = part.nodes.iter().copied().collect();
        let records: HashSet<Uuid> = part.evidence.iter().copied().collect();
        let mut nodes = HashSet::new();
        for row in &self.rows {
            let id = key(&row.id)?;
            let listed = row.evidence.iter().filter(|id| records.contains(*id)).count();
            let is_last = listed > 0 && listed == row.evidence.len();
            let is_original = row.stix_evidence.is_some_and(|id| records.contains(&id));
            if named.contains(&id) || is_last || is_original {
                nodes.insert(id);
                plan.nodes.push((row.id.clone(), row.tlp_rank));
            } else if listed > 0 || row.corrections()?.iter().any(|id| records.contains(id)) {
                plan.touched.push(row.id.clone());
            }
        }
        Ok(nodes)
    }

    /// The records that a part removes: those it names, and those that no other node lists than these.
    fn evidence_of(&self, part: &ErasurePart, nodes: &HashSet<Uuid>) -> Result<HashSet<Uuid>, DomainError> {
        let (mut with_nodes, mut elsewhere) = (HashSet::new(), HashSet::new());
        for row in &self.rows {
            if nodes.contains(&key(&row.id)?) {
                with_nodes.extend(row.evidence.iter().copied());
                with_nodes.extend(row.corrections()?);
            } else {
                elsewhere.extend(row.evidence.iter().copied());
            }
        }
        let alone = with_nodes.difference(&elsewhere).copied();
        Ok(alone.chain(part.evidence.iter().copied()).collect())
    }

    /// What the nodes among these list that are STIX objects.
    fn originals_of(&self, nodes: &HashSet<Uuid>) -> Result<HashSet<Uuid>, DomainError> {
        let mut originals = HashSet::new();
        for row in self.rows.iter().filter(|row| row.stix_evidence.is_some()) {
            if nodes.contains(&key(&row.id)?) {
                originals.extend(row.evidence.iter().copied());
            }
        }
        Ok(originals)
    }
}
