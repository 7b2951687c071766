//! E-mails that are still to be sent. Several processes may share the work: an e-mail is claimed for a while before it
//! is sent, and all times are the database's.

mod pilot;

use std::time::Duration;

use chrono::{DateTime, Utc};
use surrealdb::IndexedResults;
use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::connection::database::Statement;
use super::connection::error::StoreError;
use super::connection::retry::with_retry;
use super::rows::{key, record};
use super::{Store, failed};
use crate::domain::error::DomainError;

const CLAIM: &str = "claiming an e-mail failed";
const RECORD: &str = "recording what became of an e-mail failed";

/// An e-mail that this caller alone may send until its claim ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedMail {
    /// Id of the pilot request.
    pub id: Uuid,
    pub ws: Uuid,
    /// Attempts to send it, this one included.
    pub attempts: u32,
    claim: Uuid,
}

/// What is done about an e-mail after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is sent again later.
    Retry,
    /// It has been tried for too long.
    GivenUp,
    /// The claim had ended: another process takes care of it.
    Lost,
}

#[derive(Debug, SurrealValue)]
struct ClaimedRow {
    id: RecordId,
    ws: Uuid,
    attempts: i64,
}

impl Store {
    /// Claims the e-mail that has been due for the longest time. Nobody else gets it before `lease` is over.
    ///
    /// # Errors
    /// The database failed.
    pub async fn claim_mail(&self, lease: Duration) -> Result<Option<ClaimedMail>, DomainError> {
        // One block is one transaction: of two concurrent callers, one sees the other's claim.
        let block = "{ \
            LET $due = (SELECT id, next_attempt FROM outbox WHERE state = 'pending' AND next_attempt <= time::now() \
                ORDER BY next_attempt LIMIT 1); \
            RETURN (UPDATE $due.id SET claim = $claim, attempts += 1, next_attempt = time::now() + $lease \
                RETURN id, ws, attempts); \
            }";
        let claim = Uuid::new_v4();
        let rows: Vec<ClaimedRow> = with_retry(|| async {
            let statement = self.db.query(block).bind(("claim", claim));
            Ok(statement.bind(("lease", lease)).await?.take(0)?)
        })
        .await
        .map_err(|error: StoreError| error.into_domain(CLAIM))?;
        let claimed = |row: ClaimedRow| {
            Ok(ClaimedMail {
                id: key(&row.id)?,
                ws: row.ws,
                attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
                claim,
            })
        };
        rows.into_iter().next().map(claimed).transpose()
    }

    /// Records that an e-mail was sent. Even when the claim has ended by now: it must not be sent once more.
    ///
    /// # Errors
    /// The database failed.
    pub async fn record_mail_sent(&self, mail: &ClaimedMail) -> Result<(), DomainError> {
        let block = "{ \
            UPDATE $mail SET state = 'sent', claim = NONE, last_error = NONE, ended_at = time::now() \
                WHERE ws = $ws RETURN NONE; \
            UPDATE $request SET notification = 'sent' WHERE ws = $ws RETURN NONE; \
            }";
        with_retry(|| async {
            self.of_mail(block, mail).await?.check()?;
            Ok(())
        })
        .await
        .map_err(|error: StoreError| error.into_domain(RECORD))
    }

    /// Records that an attempt failed. The next one begins after `pause`, unless the e-mail has waited for `patience`.
    ///
    /// # Errors
    /// The database failed.
    pub async fn record_mail_failure(
        &self,
        mail: &ClaimedMail,
        error: &str,
        (pause, patience): (Duration, Duration),
    ) -> Result<AfterFailure, DomainError> {
        let block = "{ \
            LET $states = (UPDATE $mail SET claim = NONE, last_error = $error, \
                next_attempt = time::now() + $pause, \
                state = IF queued_at + $patience <= time::now() { 'dead' } ELSE { 'pending' }, \
                ended_at = IF queued_at + $patience <= time::now() { time::now() } ELSE { NONE } \
                WHERE ws = $ws AND claim = $claim RETURN VALUE state); \
            IF $states = ['dead'] { UPDATE $request SET notification = 'failed' WHERE ws = $ws RETURN NONE }; \
            RETURN $states; \
            }";
        let states: Vec<String> = with_retry(|| async {
            let statement = self.of_mail(block, mail).bind(("claim", mail.claim));
            let statement = statement.bind(("error", error.to_owned()));
            let statement = statement.bind(("pause", pause)).bind(("patience", patience));
            Ok(statement.await?.take(0)?)
        })
        .await
        .map_err(|error: StoreError| error.into_domain(RECORD))?;
        Ok(match states.first().map(String::as_str) {
            None => AfterFailure::Lost,
            Some("dead") => AfterFailure::GivenUp,
            Some(_) => AfterFailure::Retry,
        })
    }

    /// Ends all claims: their attempts died with an earlier process. Only for a store that no other process uses.
    ///
    /// # Errors
    /// The database failed.
    pub async fn end_mail_claims(&self) -> Result<(), DomainError> {
        self.db
            .query(
                "UPDATE outbox SET claim = NONE, next_attempt = time::now() \
                 WHERE state = 'pending' AND claim != NONE RETURN NONE",
            )
            .await
            .and_then(IndexedResults::check)
            .map_err(failed(CLAIM))?;
        Ok(())
    }

    /// Number of e-mails that are still to be sent.
    ///
    /// # Errors
    /// The database failed.
    pub async fn pending_mails(&self) -> Result<u64, DomainError> {
        let what = "counting e-mails failed";
        let mut response = self
            .db
            .query("SELECT VALUE count FROM (SELECT count() FROM outbox WHERE state = 'pending' GROUP ALL)")
            .await
            .map_err(failed(what))?;
        let count: Option<i64> = response.take(0).map_err(failed(what))?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    /// Removes e-mails that were sent or given up before `before`; returns their number. The requests stay.
    ///
    /// # Errors
    /// When the database fails; rows removed before that stay removed.
    pub async fn sweep_outbox(&self, before: DateTime<Utc>) -> Result<usize, DomainError> {
        // The end of a pending e-mail is NONE, which sorts before all times.
        let query = "SELECT VALUE id FROM outbox WHERE ended_at < $before \
                     AND ended_at > d'1970-01-01T00:00:00Z' LIMIT 500";
        self.sweep(query, before, "DELETE $ids RETURN NONE").await
    }

    fn of_mail(&self, block: &'static str, mail: &ClaimedMail) -> Statement<'_> {
        self.db
            .query(block)
            .bind(("mail", record("outbox", mail.id)))
            .bind(("request", record("pilot_request", mail.id)))
            .bind(("ws", mail.ws))
    }
}
