//! The relationships between two sets of nodes.

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::store::rows::{key, record};
use crate::store::{Store, failed};

/// A relationship from one set to the other.
#[derive(Debug, Clone)]
pub struct Link {
    pub from: Uuid,
    pub to: Uuid,
    pub relationship: String,
    /// Whether it leads from `from` to `to` rather than back.
    pub outgoing: bool,
    /// 0 to 1.
    pub confidence: f64,
}

#[derive(Debug, SurrealValue)]
struct Row {
    near: RecordId,
    far: RecordId,
    relationship: String,
    outgoing: bool,
    confidence: f64,
}

impl Store {
    /// The active relationships between these nodes up to a marking. The caller must check access to the nodes.
    pub async fn links(
        &self,
        ws: Uuid,
        highest: Tlp,
        from: &[Uuid],
        to: &[Uuid],
    ) -> Result<Vec<Link>, DomainError> {
        if from.is_empty() || to.is_empty() {
            return Ok(Vec::new());
        }
        let read = |near: &str, far: &str, arrow: &str, outgoing: bool| {
            format!(
                "SELECT {near} AS near, {far} AS far, {outgoing} AS outgoing, relationship, confidence \
                 FROM $from{arrow}edge WHERE ws = $ws AND active = true AND tlp_rank <= $highest AND {far} IN $to"
            )
        };
        let query = format!(
            "{}; {}",
            read("in", "out", "->", true),
            read("out", "in", "<-", false)
        );
        let ids = |nodes: &[Uuid]| nodes.iter().map(|id| record("node", *id)).collect::<Vec<_>>();
        let what = "reading relationships failed";
        let mut response = self
            .db
            .query(query)
            .bind(("from", ids(from)))
            .bind(("to", ids(to)))
            .bind(("ws", ws))
            .bind(("highest", i64::from(highest.rank())))
            .await
            .map_err(failed(what))?;
        let mut rows: Vec<Row> = response.take(0).map_err(failed(what))?;
        rows.extend(response.take::<Vec<Row>>(1).map_err(failed(what))?);
        rows.into_iter().map(Row::into_link).collect()
    }
}

impl Row {
    fn into_link(self) -> Result<Link, DomainError> {
        Ok(Link {
            from: key(&self.near)?,
            to: key(&self.far)?,
            relationship: self.relationship,
            outgoing: self.outgoing,
            confidence: self.confidence,
        })
    }
}
