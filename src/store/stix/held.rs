//! Objects withheld because a marking is not defined, and re-marking them once it is.
//!
//! The definition is stored first, with its bundle. The objects that waited for it follow page by page, each page a
//! transaction, so their number is not limited. An interrupted run is resumed by the next definition and at the next
//! start.

use uuid::Uuid;

use super::remarking::{Release, RemarkedObjects};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::tlp::Tlp;
use crate::store::connection::retry::with_retry;
use crate::store::{Store, failed};

/// Maximum number of objects a report names, and of markings it names for each.
const MAX_NAMED: usize = 100;
const MAX_MARKINGS: usize = 3;
/// Withheld rows re-marked in one transaction.
const PAGE: u32 = 256;

/// Objects that were ingested although one of their markings is not defined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldReport {
    named: Vec<String>,
    pub(in crate::store) total: u64,
}

impl HeldReport {
    pub(in crate::store) fn note(&mut self, stix_id: &str, tlp: Tlp, held_by: &[String]) {
        self.total += 1;
        if self.named.len() >= MAX_NAMED {
            return;
        }
        let shown: Vec<&str> = held_by.iter().take(MAX_MARKINGS).map(String::as_str).collect();
        let more = match held_by.len().saturating_sub(MAX_MARKINGS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.named.push(format!(
            "{stix_id}: nobody has defined {}{more}, or its level can't be read; taken in at {tlp}, and held back from \
             exports until that is defined",
            shown.join(", ")
        ));
    }

    /// One line per object, a hundred at most, and one that counts the rest.
    pub fn into_warnings(self) -> Vec<String> {
        let rest = self.total.saturating_sub(MAX_NAMED as u64);
        let mut lines = self.named;
        if rest > 0 {
            lines.push(format!(
                "{rest} more objects are held back for markings that nobody has defined"
            ));
        }
        lines
    }
}

impl Store {
    /// Whether any object of the workspace waits for a marking.
    pub async fn has_held_objects(&self, ws: Uuid) -> Result<bool, DomainError> {
        let what = "reading what is held back failed";
        let mut response = self
            .db
            .query("SELECT VALUE marking FROM stix_held WHERE ws = $ws LIMIT 1")
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let some: Option<String> = response.take(0).map_err(failed(what))?;
        Ok(some.is_some())
    }

    /// Whether objects of the workspace wait for one of these markings.
    pub async fn has_held_objects_for(&self, ws: Uuid, markings: &[String]) -> Result<bool, DomainError> {
        let what = "reading what is held back failed";
        let mut response = self
            .db
            .query("SELECT VALUE marking FROM stix_held WHERE ws = $ws AND marking IN $markings LIMIT 1")
            .bind(("ws", ws))
            .bind(("markings", markings.to_vec()))
            .await
            .map_err(failed(what))?;
        let some: Option<String> = response.take(0).map_err(failed(what))?;
        Ok(some.is_some())
    }

    /// Markings that objects still wait for although they are defined: the rest of an interrupted run.
    pub async fn markings_to_release(&self, ws: Uuid) -> Result<Vec<String>, DomainError> {
        let what = "reading what is held back failed";
        let mut response = self
            .db
            .query("SELECT VALUE marking FROM stix_held WHERE ws = $ws GROUP BY marking")
            .bind(("ws", ws))
            .await
            .map_err(failed(what))?;
        let waited_for: Vec<String> = response.take(0).map_err(failed(what))?;
        let known = self.markings(ws, &waited_for, Tlp::Red).await?;
        Ok(known.into_keys().collect())
    }

    /// Re-marks one page of the objects that wait for a marking; `None` if it is not defined or none are left. Objects
    /// below the level from which the marking is known go on waiting: some who see them can't know it.
    pub async fn release_held(
        &self,
        ws: Uuid,
        marking: &str,
        after: u64,
        audit: impl Fn(u64) -> AuditEntry,
    ) -> Result<Option<RemarkedObjects>, DomainError> {
        let defined = self.definitions(ws, &[marking.to_owned()]).await?;
        let Some(known_from) = defined.known_from(marking) else {
            return Ok(None);
        };
        let mut page = PAGE;
        loop {
            let released = with_retry(|| async {
                let tx = self.begin().await?;
                let release = Release::new(&tx, self.ids_of(ws), (ws, after), marking);
                let outcome = release.page(known_from, page, &audit).await;
                tx.finish(outcome).await
            });
            match released
                .await
                .map_err(|error| error.into_domain("re-marking failed"))
            {
                // The originals are long: a smaller page fits, as each of them did when it was ingested.
                Err(DomainError::TransactionTooLarge { .. }) if page > 1 => page = (page / 8).max(1),
                released => return released,
            }
        }
    }
}
