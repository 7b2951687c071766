//! Writing drafts: what every way in other than STIX produces, in one transaction with its audit entry.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::Store;
use super::connect::StoreError;
use super::nodes::StoredNode;
use super::retry::with_retry;
use super::rows::{AuditRow, EdgeRow, EvidenceRow, NodeRow, corrupt, key, pack, record, tlp};
use super::stix::{IngestResult, node_id};
use super::tx::{WriteTx, breathe};
use crate::domain::audit::AuditEntry;
use crate::domain::draft::{Drafts, EdgeDraft, EvidenceDraft, NodeDraft};
use crate::domain::error::DomainError;
use crate::domain::node::NodeStatus;
use crate::domain::tlp::Tlp;

/// Longest list that merging makes.
const MOST_UNITED: usize = 2000;
/// Which of some rows of the workspace there are.
const IDS: &str = "SELECT id FROM $ids WHERE ws = $ws";
/// Properties whose lists are united when two nodes turn out to be one.
const UNITED: [&str; 4] = ["aliases", "external_ids", "tags", "labels"];

/// What an ingest of drafts did, with the nodes the index must read again.
#[derive(Debug)]
pub struct DraftsIngested {
    pub result: IngestResult,
    pub touched: Vec<StoredNode>,
    /// The node each draft became or was merged into, in the order of the drafts.
    pub ids: Vec<Uuid>,
    pub rev: u64,
}

/// How drafts are written.
#[derive(Debug, Clone)]
pub struct DraftsWrite<'a> {
    pub ws: Uuid,
    pub drafts: &'a Drafts,
    /// Drafts that are nodes we have already, by position.
    pub merges: &'a HashMap<usize, Uuid>,
    /// Redistribution state of the source.
    pub redistribution: &'a str,
    /// The highest marking that the writer may see.
    pub highest: Tlp,
    /// Drafts that only add their evidence to the node they are merged into, by position.
    pub evidence_only: &'a HashSet<usize>,
    pub now: DateTime<Utc>,
}

#[derive(Debug, SurrealValue)]
struct IdRow {
    id: RecordId,
}

/// The id of the evidence record that an identity names in a workspace.
pub(super) fn evidence_id(ws: Uuid, identity: &str) -> Uuid {
    Uuid::new_v5(&ws, format!("evidence\0{identity}").as_bytes())
}

impl Store {
    /// Writes drafts: all of them, or, on an error, none.
    pub async fn ingest_drafts(
        &self,
        write: &DraftsWrite<'_>,
        audit: impl Fn(&IngestResult) -> AuditEntry,
    ) -> Result<DraftsIngested, DomainError> {
        with_retry(|| async {
            let tx = self.begin().await?;
            let rev = self.next_rev();
            let outcome = write_drafts(&tx, write, rev, &audit).await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("ingest failed"))
    }
}

/// Writes drafts inside a transaction that may hold more.
pub(super) async fn write_drafts(
    tx: &WriteTx,
    write: &DraftsWrite<'_>,
    rev: u64,
    audit: &impl Fn(&IngestResult) -> AuditEntry,
) -> Result<DraftsIngested, StoreError> {
    let mut work = Work {
        tx,
        write,
        rev,
        result: IngestResult::default(),
    };
    work.evidence().await?;
    let (ids, touched) = work.nodes().await?;
    work.edges(&ids).await?;
    let result = work.result;
    let entry = audit(&result);
    tx.write(
        "INSERT INTO audit $rows RETURN NONE",
        vec![AuditRow::from(&entry)],
    )
    .await?;
    Ok(DraftsIngested {
        result,
        touched,
        ids,
        rev,
    })
}

struct Work<'a> {
    tx: &'a WriteTx,
    write: &'a DraftsWrite<'a>,
    rev: u64,
    result: IngestResult,
}

impl Work<'_> {
    async fn evidence(&mut self) -> Result<(), StoreError> {
        let drafts = &self.write.drafts.evidence;
        let id_of = |draft: &EvidenceDraft| record("evidence", evidence_id(self.write.ws, &draft.identity));
        let found: Vec<IdRow> = self
            .tx
            .find(self.write.ws, IDS, drafts.iter().map(id_of).collect())
            .await?;
        let mut known: HashSet<Uuid> = found.iter().map(|row| key(&row.id)).collect::<Result<_, _>>()?;
        let mut rows = Vec::new();
        for (place, draft) in drafts.iter().enumerate() {
            breathe(place).await;
            let id = id_of(draft);
            if known.insert(key(&id)?) {
                rows.push(self.evidence_row(id, draft));
            }
        }
        self.result.evidence_created = rows.len() as u64;
        self.tx
            .write("INSERT INTO evidence $rows RETURN NONE", rows)
            .await
    }

    fn evidence_row(&self, id: RecordId, draft: &EvidenceDraft) -> EvidenceRow {
        EvidenceRow {
            id,
            ws: self.write.ws,
            kind: draft.kind.into(),
            ext_id: draft.ext_id.clone(),
            title: draft.title.clone(),
            source: draft.source.clone(),
            tlp_rank: i64::from(draft.tlp.rank()),
            raw: Some(pack(&draft.raw)),
            created_at: self.write.now,
        }
    }

    /// Creates or merges the nodes; the id of each draft's node, and the nodes that changed.
    async fn nodes(&mut self) -> Result<(Vec<Uuid>, Vec<StoredNode>), StoreError> {
        let drafts = &self.write.drafts.nodes;
        let own_id = |(i, draft): (usize, &NodeDraft)| {
            let merged = self.write.merges.get(&i).copied();
            merged.unwrap_or_else(|| node_id(self.write.ws, &draft.identity))
        };
        let mut ids: Vec<Uuid> = drafts.iter().enumerate().map(own_id).collect();
        let mut wanted: HashSet<Uuid> = ids.iter().copied().collect();
        wanted.extend(drafts.iter().map(|draft| self.id_beside(draft)));
        let wanted = wanted.into_iter().map(|id| record("node", id)).collect();
        let query = "SELECT * FROM $ids WHERE ws = $ws";
        let found: Vec<NodeRow> = self.tx.find(self.write.ws, query, wanted).await?;
        let mut rows: HashMap<Uuid, (NodeRow, Change)> = HashMap::new();
        for row in found {
            rows.insert(key(&row.id)?, (row, Change::None));
        }
        if !self.write.merges.values().all(|id| rows.contains_key(id)) {
            return Err(DomainError::NotFound("node").into());
        }
        for (place, (id, draft)) in ids.iter_mut().zip(drafts).enumerate() {
            breathe(place).await;
            let hidden = rows.get(id).is_some_and(|(row, _)| self.hides(row, draft));
            if hidden && !self.write.merges.contains_key(&place) {
                *id = self.id_beside(draft);
            }
            match rows.get_mut(id) {
                Some((row, change)) => {
                    let before = row.clone();
                    self.merge(place, row, draft)?;
                    if *change == Change::None && differs(&before, row) {
                        *change = Change::Updated;
                    }
                }
                None => {
                    rows.insert(*id, (self.new_row(*id, draft), Change::Created));
                }
            }
        }
        let touched = self.write_rows(rows).await?;
        Ok((ids, touched))
    }

    /// Whether the node is one that the writer may not see although it may see the draft: then the answer must
    /// not tell that it exists, and the draft must not vanish in it.
    fn hides(&self, row: &NodeRow, draft: &NodeDraft) -> bool {
        let highest = i64::from(self.write.highest.rank());
        row.tlp_rank > highest && draft.tlp <= self.write.highest
    }

    /// The id of a draft whose own id belongs to a node that the writer may not see.
    fn id_beside(&self, draft: &NodeDraft) -> Uuid {
        let level = self.write.highest.as_str();
        node_id(self.write.ws, &format!("{}\0up to {level}", draft.identity))
    }

    async fn write_rows(
        &mut self,
        rows: HashMap<Uuid, (NodeRow, Change)>,
    ) -> Result<Vec<StoredNode>, StoreError> {
        let (mut created, mut updated, mut touched) = (Vec::new(), Vec::new(), Vec::new());
        for (mut row, change) in rows.into_values() {
            row.rev = i64::try_from(self.rev).unwrap_or(i64::MAX);
            if change != Change::None {
                touched.push(StoredNode::from_row(row.clone(), Tlp::Red)?);
            }
            match change {
                Change::None => {}
                Change::Created => created.push(row),
                Change::Updated => updated.push(row),
            }
        }
        self.result.nodes_created = created.len() as u64;
        self.result.nodes_updated = updated.len() as u64;
        self.tx
            .write("INSERT INTO node $rows RETURN NONE", created)
            .await?;
        self.tx
            .write(
                "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }",
                updated,
            )
            .await?;
        Ok(touched)
    }

    fn new_row(&self, id: Uuid, draft: &NodeDraft) -> NodeRow {
        let mut row = NodeRow {
            id: record("node", id),
            ws: self.write.ws,
            node_type: draft.node_type.as_str().into(),
            name: draft.name.clone(),
            description: draft.description.clone(),
            source: draft.source.clone(),
            source_type: draft.source_type.into(),
            tlp_rank: i64::from(draft.tlp.rank()),
            confidence: draft.confidence,
            properties: Value::Object(draft.properties.clone()).to_string(),
            status: NodeStatus::Active.as_str().into(),
            evidence: Vec::new(),
            evidence_tlp: Vec::new(),
            stix_evidence: None,
            modified: None,
            redistribution: self.write.redistribution.into(),
            rev: 0,
            ingested_at: self.write.now,
        };
        self.link(&mut row, draft);
        row
    }

    fn link(&self, row: &mut NodeRow, draft: &NodeDraft) {
        for evidence in draft
            .evidence
            .iter()
            .filter_map(|&i| self.write.drafts.evidence.get(i))
        {
            row.link(evidence_id(self.write.ws, &evidence.identity), evidence.tlp);
        }
    }

    /// Adds what a draft knows to the node it is. What a more restricted source says stays in its evidence:
    /// the node's own text must not rise above the node's marking.
    fn merge(&self, place: usize, row: &mut NodeRow, draft: &NodeDraft) -> Result<(), DomainError> {
        self.link(row, draft);
        if self.write.evidence_only.contains(&place) {
            return Ok(());
        }
        if draft.tlp > tlp(row.tlp_rank)? {
            // A source that restricts what it said itself restricts the node.
            if row.source == draft.source && row.source_type == draft.source_type {
                row.tlp_rank = i64::from(draft.tlp.rank());
            }
            return Ok(());
        }
        row.confidence = row.confidence.max(draft.confidence);
        if row.description.is_empty() {
            row.description.clone_from(&draft.description);
        }
        let mut properties: Map<String, Value> = serde_json::from_str(&row.properties).map_err(corrupt)?;
        unite(&mut properties, draft, &row.name);
        row.properties = Value::Object(properties).to_string();
        Ok(())
    }

    async fn edges(&mut self, nodes: &[Uuid]) -> Result<(), StoreError> {
        let drafts = &self.write.drafts.edges;
        let mut rows: HashMap<Uuid, EdgeRow> = HashMap::new();
        for draft in drafts {
            let (Some(source), Some(target)) = (nodes.get(draft.source), nodes.get(draft.target)) else {
                continue;
            };
            // Two drafts that became one node say nothing about each other.
            if source != target {
                let row = self.edge_row(draft, *source, *target);
                rows.entry(key(&row.id)?).or_insert(row);
            }
        }
        let ids = rows.values().map(|row| row.id.clone()).collect();
        let found: Vec<IdRow> = self.tx.find(self.write.ws, IDS, ids).await?;
        for row in found {
            rows.remove(&key(&row.id)?);
        }
        self.result.edges_created = rows.len() as u64;
        self.tx
            .write(
                "INSERT RELATION INTO edge $rows RETURN NONE",
                rows.into_values().collect(),
            )
            .await
    }

    fn edge_row(&self, draft: &EdgeDraft, source: Uuid, target: Uuid) -> EdgeRow {
        // The marking is part of it: a hidden statement must not swallow an open one.
        let name = format!("edge\0{source}\0{}\0{target}\0{}", draft.relationship, draft.tlp);
        let evidence = self.write.drafts.evidence.get(draft.evidence);
        EdgeRow {
            id: record("edge", Uuid::new_v5(&self.write.ws, name.as_bytes())),
            source: record("node", source),
            target: record("node", target),
            ws: self.write.ws,
            relationship: draft.relationship.clone(),
            tlp_rank: i64::from(draft.tlp.rank()),
            confidence: draft.confidence,
            active: true,
            modified: None,
            raw: None,
            proof: Some(draft.proof.clone()),
            evidence: evidence.map(|evidence| evidence_id(self.write.ws, &evidence.identity)),
            properties: None,
            created_at: self.write.now,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Created,
    Updated,
}

fn differs(before: &NodeRow, after: &NodeRow) -> bool {
    before.evidence != after.evidence
        || before.properties != after.properties
        || before.description != after.description
        || before.confidence != after.confidence
        || before.tlp_rank != after.tlp_rank
}

/// Adds the draft's properties where the node has none, and unites the lists of names and tags. A name the
/// node does not carry yet becomes an alias.
fn unite(properties: &mut Map<String, Value>, draft: &NodeDraft, name: &str) {
    for (key, value) in &draft.properties {
        match (properties.get_mut(key), value) {
            (Some(Value::Array(have)), Value::Array(more)) if UNITED.contains(&key.as_str()) => {
                let known: HashSet<String> = have.iter().map(Value::to_string).collect();
                let new = more.iter().filter(|item| !known.contains(&item.to_string()));
                let room = MOST_UNITED.saturating_sub(have.len());
                let new: Vec<Value> = new.take(room).cloned().collect();
                have.extend(new);
            }
            (Some(_), _) => {}
            (None, value) => {
                properties.insert(key.clone(), value.clone());
            }
        }
    }
    if draft.merge_by_name && !draft.name.eq_ignore_ascii_case(name) {
        let aliases = properties
            .entry("aliases")
            .or_insert_with(|| Value::Array(Vec::new()));
        let alias = Value::from(draft.name.as_str());
        if let Value::Array(aliases) = aliases
            && !aliases.contains(&alias)
        {
            aliases.push(alias);
        }
    }
}
