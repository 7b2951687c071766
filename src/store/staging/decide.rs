//! Decisions on staged entities: one decision on one of them, or on many.

use surrealdb::types::SurrealValue;
use uuid::Uuid;

use super::Decision;
use super::rows::StagedEntityRow;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::node::NodeType;
use crate::domain::staging::{StagedEntity, StagedStatus, is_sensitivity};
use crate::domain::tlp::Tlp;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{key, parse, record, tlp};

/// Most entities of one decision.
pub const MAX_DECIDED: usize = 1000;
const COMMITTED: &str = "the entity is already committed and can't be changed";

/// The entities that a decision is about.
#[derive(Debug, Clone)]
pub enum Chosen {
    /// All of these, or none.
    Ids(Vec<Uuid>),
    /// The first entities of a batch that fit, are not committed and would be changed, up to [`MAX_DECIDED`].
    Filter(EntityFilter),
}

/// Entities of a batch; what is `None` fits all.
#[derive(Debug, Clone)]
pub struct EntityFilter {
    pub batch: Uuid,
    pub status: Option<StagedStatus>,
    pub node_type: Option<NodeType>,
    /// The least proposed confidence.
    pub min_confidence: Option<f64>,
    /// Whether the entity has a TLP sensitivity warning.
    pub sensitive: Option<bool>,
}

impl EntityFilter {
    fn fits(&self, row: &StagedEntityRow) -> bool {
        let sensitive = row.warnings.iter().any(|warning| is_sensitivity(warning));
        self.status.is_none_or(|status| row.status == status.as_str())
            && self.node_type.is_none_or(|kind| row.node_type == kind.as_str())
            && self.min_confidence.is_none_or(|least| row.confidence >= least)
            && self.sensitive.is_none_or(|wanted| wanted == sensitive)
    }
}

/// What a decision has changed.
#[derive(Debug)]
pub struct Decided {
    pub entities: Vec<StagedEntity>,
    /// Entities of the batch that fit too, and wait for the next request.
    pub remaining: usize,
}

/// A decision under way, by a caller who sees what is marked up to `highest`.
pub(super) struct Deciding<'a> {
    pub tx: &'a WriteTx,
    pub ws: Uuid,
    pub decision: Decision,
    pub highest: Tlp,
    /// Type of the node that the entities are merged with.
    pub target_type: Option<NodeType>,
}

impl Deciding<'_> {
    pub async fn run(
        &self,
        chosen: &Chosen,
        audit: &(impl Fn(&[Uuid]) -> AuditEntry + Send + Sync),
    ) -> Result<Decided, StoreError> {
        let (rows, remaining) = match chosen {
            Chosen::Ids(ids) => (self.rows_of(ids).await?, 0),
            Chosen::Filter(filter) => self.fitting(filter).await?,
        };
        if rows.is_empty() {
            return Ok(Decided {
                entities: Vec::new(),
                remaining,
            });
        }
        let mut decided = Vec::with_capacity(rows.len());
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            ids.push(key(&row.id)?);
            decided.push(self.decide(row)?);
        }
        let update = "FOR $row IN $rows { UPDATE $row.id CONTENT $row RETURN NONE }";
        self.tx.write(update, decided.clone()).await?;
        self.tx.audit([&audit(&ids)]).await?;
        let mut entities = Vec::with_capacity(decided.len());
        for row in decided {
            entities.push(row.into_entity()?);
        }
        Ok(Decided { entities, remaining })
    }

    async fn rows_of(&self, ids: &[Uuid]) -> Result<Vec<StagedEntityRow>, StoreError> {
        let query = format!(
            "SELECT * FROM $ids WHERE ws = $ws AND (resolved_tlp ?? proposed_tlp) <= {}",
            self.highest.rank()
        );
        let records = ids.iter().map(|id| record("staged_entity", *id)).collect();
        let found: Vec<StagedEntityRow> = self.tx.find(self.ws, &query, records).await?;
        if found.len() < ids.len() {
            return Err(DomainError::NotFound("staging record").into());
        }
        Ok(found)
    }

    /// The entities of a visible batch that a filter chooses, in text order, and how many more there are.
    async fn fitting(&self, filter: &EntityFilter) -> Result<(Vec<StagedEntityRow>, usize), StoreError> {
        let values = [
            ("ws", self.ws.into_value()),
            ("id", filter.batch.into_value()),
            ("batch", record("staging_batch", filter.batch).into_value()),
            ("highest", i64::from(self.highest.rank()).into_value()),
        ];
        let query = "SELECT VALUE ws FROM $batch WHERE ws = $ws AND tlp_rank <= $highest";
        let batch: Vec<Uuid> = self.tx.select(query, &values).await?;
        if batch.is_empty() {
            return Err(DomainError::NotFound("batch").into());
        }
        let query = "SELECT * FROM staged_entity WHERE batch = $id AND ws = $ws \
                     AND (resolved_tlp ?? proposed_tlp) <= $highest ORDER BY ord";
        let mut rows: Vec<StagedEntityRow> = self.tx.select(query, &values).await?;
        rows.retain(|row| row.node.is_none() && filter.fits(row) && self.changes(row));
        let remaining = rows.len().saturating_sub(MAX_DECIDED);
        rows.truncate(MAX_DECIDED);
        Ok((rows, remaining))
    }

    /// Whether the decision is not yet that of an entity.
    fn changes(&self, row: &StagedEntityRow) -> bool {
        let level = self.decision.resolved_tlp.map(|level| i64::from(level.rank()));
        let target = self.decision.merge_target;
        row.status != self.decision.status.as_str()
            || level.is_some_and(|level| row.resolved_tlp != Some(level))
            || target.is_some_and(|target| row.merge_target != Some(target))
    }

    /// The entity as decided.
    fn decide(&self, mut row: StagedEntityRow) -> Result<StagedEntityRow, DomainError> {
        let decision = &self.decision;
        if self
            .target_type
            .is_some_and(|kind| !is_same_type(kind, &row.node_type))
        {
            let rule = format!("must be a node of type {}", row.node_type);
            return Err(DomainError::invalid("merge_target_id", rule));
        }
        if row.node.is_some() {
            return Err(DomainError::Conflict(COMMITTED.into()));
        }
        check_marking(&row, decision)?;
        row.status = decision.status.as_str().into();
        if let Some(level) = decision.resolved_tlp {
            row.resolved_tlp = Some(i64::from(level.rank()));
        }
        if decision.status == StagedStatus::Merged {
            row.merge_target = decision.merge_target.or(row.merge_target);
            if row.merge_target.is_none() {
                let rule = "is required with status merged";
                return Err(DomainError::invalid("merge_target_id", rule));
            }
        } else {
            row.merge_target = None;
        }
        Ok(row)
    }
}

/// Rule: what has a sensitivity warning becomes a node, or evidence of one, only once somebody has decided on its
/// marking.
fn check_marking(row: &StagedEntityRow, decision: &Decision) -> Result<(), DomainError> {
    let is_taken = |status: StagedStatus| matches!(status, StagedStatus::Accepted | StagedStatus::Merged);
    let was_taken = parse(&row.status).is_ok_and(is_taken);
    let is_marked = decision.resolved_tlp.is_some() || row.resolved_tlp.is_some();
    if !is_taken(decision.status) || was_taken || is_marked || decision.accept_marking {
        return Ok(());
    }
    let Some(warning) = row.warnings.iter().find(|warning| is_sensitivity(warning)) else {
        return Ok(());
    };
    let rule = format!(
        "must be true, or resolved_tlp must be given, to take {:?} as {}, because it carries the warning \"{warning}\"",
        row.name,
        tlp(row.proposed_tlp)?
    );
    Err(DomainError::invalid("accept_marking", rule))
}

/// Whether a node of this type can be an entity of that type: a CVE is a vulnerability under another name.
fn is_same_type(kind: NodeType, entity: &str) -> bool {
    let both = [kind.as_str(), entity];
    kind.as_str() == entity || both.iter().all(|name| ["cve", "vulnerability"].contains(name))
}
