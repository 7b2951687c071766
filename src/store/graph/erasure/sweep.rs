//! What goes with a feed, a user or a workspace: rows that are no nodes, in transactions of some hundred rows each. A sweep that
//! a crash interrupted is done again from its beginning, and finds what is left.

use chrono::{DateTime, Utc};
use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;

use super::part::add_counts;
use super::rows::{Owned, TENANT_TABLES, TenantTable};
use super::{ErasureJob, READ};
use crate::domain::erasure::RemovedCounts;
use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_retry;
use crate::store::feeds::erase::{erase_items, tombstone};
use crate::store::rows::{corrupt, key, record, up_to_limit};
use crate::store::{Store, failed};

/// Rows removed in one transaction.
const CHUNK: usize = 500;
/// Rows looked up at a time.
const FOUND: usize = 10_000;

pub(super) type Count = Option<fn(&mut RemovedCounts) -> &mut u64>;

impl Store {
    /// Removes the rows of a workspace but its own; returns how many there were.
    pub async fn sweep_workspace(&self, job: &ErasureJob, ws: Uuid) -> Result<u64, DomainError> {
        let mut swept = 0;
        for table in TENANT_TABLES {
            let query = rows_of(*table);
            let next = Uuid::from_u128(ws.as_u128().wrapping_add(1));
            let bound = [
                ("ws", ws.into_value()),
                ("next", next.into_value()),
                ("row", record("write_turn", ws).into_value()),
            ];
            swept += self.sweep_rows(job, (&query, &bound), table.count).await?;
        }
        self.unsaved.lock().retain(|(of, _)| *of != ws);
        Ok(swept)
    }

    /// Removes the row of a workspace, once nothing else of it is left.
    pub async fn forget_workspace(&self, ws: Uuid) -> Result<(), DomainError> {
        let rows = vec![record("workspace", ws)];
        self.remove_rows_of(rows, None).await
    }

    /// Removes what a feed has received and what it remembers, and what it alone brought beside nodes and relationships. Its
    /// row stays with nothing but its rule, for what others brought, too.
    pub async fn sweep_feed(
        &self,
        job: &ErasureJob,
        feed: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let bound = [("ws", job.ws.into_value()), ("feed", feed.into_value())];
        let batches = "SELECT VALUE id FROM feed_batch WHERE ws = $ws AND feed = $feed";
        for batch in self.found_rows(batches, &bound).await? {
            self.sweep_feed_batch(job, &batch, now).await?;
        }
        self.sweep_received(job, feed).await?;
        let supports =
            "SELECT VALUE id FROM stix_support WHERE ws = $ws AND feeds = [$feed] AND tlp_rank <= $highest";
        let seen = [bound.as_slice(), &[seen_by(job)]].concat();
        let count: Count = Some(|counts| &mut counts.supporting_objects);
        self.sweep_rows(job, (supports, &seen), count).await?;
        self.sweep_waiting(job, feed).await?;
        let (ws, counts) = (job.ws, feeds(1));
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome: Result<(), StoreError> = async {
                if tombstone(&tx, ws, feed, now).await? {
                    add_counts(&tx, job, &counts).await?;
                }
                Ok(())
            }
            .await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("erasing a feed failed"))
    }

    /// Removes a user with the keys, sessions, staged texts, uploads and texts of the audit log that are the user's.
    pub async fn sweep_user(
        &self,
        job: &ErasureJob,
        user: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let ws = job.ws;
        let bound = [("ws", ws.into_value()), ("user", user.into_value())];
        self.unsaved
            .lock()
            .retain(|(of, record)| *of != ws || record.user != user);
        let seen = [bound.as_slice(), &[seen_by(job)]].concat();
        let batches = "SELECT VALUE id FROM staging_batch WHERE ws = $ws AND user = $user";
        let of_seen = format!("{batches} AND tlp_rank <= $highest");
        let shown = self.found_rows(&of_seen, &seen).await?;
        for batch in self.found_rows(batches, &bound).await? {
            let of_batch = [("ws", ws.into_value()), ("batch", key(&batch)?.into_value())];
            for query in [
                "SELECT VALUE id FROM staged_entity WHERE batch = $batch AND ws = $ws",
                "SELECT VALUE id FROM staging_part WHERE batch = $batch AND ws = $ws",
            ] {
                self.sweep_rows(job, (query, &of_batch), None).await?;
            }
            // What is hidden from the administrator goes, too, and shows in no count.
            let count: Count = Some(|counts| &mut counts.staging_batches);
            let count = count.filter(|_| shown.contains(&batch));
            self.remove_counted(job, vec![batch], count).await?;
        }
        let uploads = "SELECT VALUE id FROM feed_batch WHERE ws = $ws AND user = $user AND feed = NONE";
        for batch in self.found_rows(uploads, &bound).await? {
            self.sweep_feed_batch(job, &batch, now).await?;
        }
        let handed_in = "SELECT VALUE id FROM hand_in WHERE ws = $ws AND user = $user";
        self.sweep_rows(job, (handed_in, &bound), None).await?;
        let sessions = "SELECT VALUE id FROM recall_session WHERE ws = $ws AND user = $user";
        let keys = "SELECT VALUE id FROM api_key WHERE ws = $ws AND owner = $user";
        let of_seen = format!("{sessions} AND max_tlp <= $highest");
        let count: Count = Some(|counts| &mut counts.sessions);
        self.sweep_rows(job, (&of_seen, &seen), count).await?;
        self.sweep_rows(job, (sessions, &bound), None).await?;
        let count: Count = Some(|counts| &mut counts.api_keys);
        self.sweep_rows(job, (keys, &bound), count).await?;
        self.sweep_texts_of_user(job, user).await?;
        let account = "SELECT VALUE id FROM type::record('user', $user) WHERE ws = $ws";
        let count: Count = Some(|counts| &mut counts.users);
        self.sweep_rows(job, (account, &bound), count).await.map(drop)
    }

    /// The texts of the entries that a user made.
    async fn sweep_texts_of_user(&self, job: &ErasureJob, user: Uuid) -> Result<(), DomainError> {
        let range = "audit_by_user:[$ws, $user]..[$ws, $user, $end]";
        let query = format!("SELECT VALUE id FROM {range}");
        let bound = [
            ("ws", job.ws.into_value()),
            ("user", user.into_value()),
            ("end", i64::MAX.into_value()),
        ];
        let mut texts = Vec::new();
        for id in self.found_rows(&query, &bound).await? {
            let RecordIdKey::Array(key) = id.key else {
                return Err(corrupt("a reference of the audit log has no position"));
            };
            let place: Vec<Value> = key.iter().skip(2).cloned().collect();
            let key = [vec![job.ws.into_value()], place].concat();
            texts.push(RecordId::new("audit_text", surrealdb::types::Array::from(key)));
        }
        for part in texts.chunks(CHUNK) {
            let query = "SELECT VALUE id FROM $ids WHERE tenant_id = $ws";
            let bound = [("ws", job.ws.into_value()), ("ids", part.to_vec().into_value())];
            let count: Count = Some(|counts| &mut counts.audit_texts);
            self.sweep_rows(job, (query, &bound), count).await?;
        }
        Ok(())
    }

    /// What a feed, or an upload without one, keeps until something that needs it is committed.
    async fn sweep_received(&self, job: &ErasureJob, from: Uuid) -> Result<(), DomainError> {
        let bound = [("ws", job.ws.into_value()), ("from", from.into_value())];
        for query in [
            "SELECT VALUE id FROM feed_support:[$ws, $from]..=[$ws, $from, '\u{10ffff}']",
            "SELECT VALUE id FROM feed_waiting:[$ws, $from]..=[$ws, $from, '\u{10ffff}']",
        ] {
            self.sweep_rows(job, (query, &bound), None).await?;
        }
        Ok(())
    }

    async fn sweep_feed_batch(
        &self,
        job: &ErasureJob,
        batch: &RecordId,
        now: DateTime<Utc>,
    ) -> Result<(), DomainError> {
        let ws = job.ws;
        let range = up_to_limit("feed_item:[$ws, $batch]..=[$ws, $batch, $end]");
        let query = format!("SELECT VALUE id FROM {range} LIMIT {CHUNK}");
        let bound = [
            ("ws", ws.into_value()),
            ("batch", key(batch)?.into_value()),
            ("end", i64::MAX.into_value()),
        ];
        loop {
            let items = self.found_rows(&query, &bound).await?;
            if items.is_empty() {
                break;
            }
            let items = &items;
            with_retry(|| async {
                let tx = self.begin().await?;
                let outcome: Result<(), StoreError> = async {
                    let counts = RemovedCounts {
                        feed_items: erase_items(&tx, ws, (items.clone(), job.highest), now).await?,
                        ..RemovedCounts::default()
                    };
                    add_counts(&tx, job, &counts).await
                }
                .await;
                tx.finish(outcome).await
            })
            .await
            .map_err(|error: StoreError| error.into_domain("erasing items of a feed failed"))?;
        }
        self.sweep_received(job, key(batch)?).await?;
        let pulse = record("feed_pulse", key(batch)?);
        self.remove_rows_of(vec![pulse], None).await?;
        // Whether somebody may see a batch depends on its items, so it is not counted.
        self.remove_rows_of(vec![batch.clone()], None).await
    }

    /// Relationships of a feed that wait for an end.
    async fn sweep_waiting(&self, job: &ErasureJob, feed: Uuid) -> Result<(), DomainError> {
        let waiting = self.waiting_of_feed(job.ws, feed, job.highest).await?;
        let counts = RemovedCounts {
            waiting_relationships: waiting.waiting,
            ..RemovedCounts::default()
        };
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome: Result<(), StoreError> = async {
                waiting.write(&tx).await?;
                add_counts(&tx, job, &counts).await
            }
            .await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("erasing what waits of a feed failed"))
    }

    /// Removes the rows that a query finds, until it finds no more; returns how many there were.
    pub(super) async fn sweep_rows(
        &self,
        job: &ErasureJob,
        (query, bound): (&str, &[(&'static str, Value)]),
        count: Count,
    ) -> Result<u64, DomainError> {
        let (mut swept, mut before) = (0, Vec::new());
        loop {
            let rows = self.found_rows(query, bound).await?;
            if rows.is_empty() {
                return Ok(swept);
            }
            if rows == before {
                return Err(corrupt("rows that are to be erased can't be removed"));
            }
            swept += rows.len() as u64;
            self.remove_in_parts(job, &rows, count).await?;
            before = rows;
        }
    }

    /// Removes rows, and counts them in the receipt if they have a place there.
    pub(super) async fn remove_in_parts(
        &self,
        job: &ErasureJob,
        rows: &[RecordId],
        count: Count,
    ) -> Result<(), DomainError> {
        for part in rows.chunks(CHUNK) {
            self.remove_counted(job, part.to_vec(), count).await?;
        }
        Ok(())
    }

    async fn remove_counted(
        &self,
        job: &ErasureJob,
        rows: Vec<RecordId>,
        count: Count,
    ) -> Result<(), DomainError> {
        let counts = count.map(|field| {
            let mut counts = RemovedCounts::default();
            *field(&mut counts) += rows.len() as u64;
            (job, counts)
        });
        self.remove_rows_of(rows, counts).await
    }

    async fn remove_rows_of(
        &self,
        rows: Vec<RecordId>,
        counts: Option<(&ErasureJob, RemovedCounts)>,
    ) -> Result<(), DomainError> {
        let (rows, counts) = (&rows, &counts);
        with_retry(|| async {
            let tx = self.begin().await?;
            let outcome: Result<(), StoreError> = async {
                tx.write("DELETE $rows RETURN NONE", rows.clone()).await?;
                match counts {
                    Some((job, counts)) => add_counts(&tx, job, counts).await,
                    None => Ok(()),
                }
            }
            .await;
            tx.finish(outcome).await
        })
        .await
        .map_err(|error: StoreError| error.into_domain("erasing rows failed"))
    }

    async fn found_rows(
        &self,
        query: &str,
        bound: &[(&'static str, Value)],
    ) -> Result<Vec<RecordId>, DomainError> {
        let mut statement = self.db.query(query);
        for (name, value) in bound {
            statement = statement.bind((*name, value.clone()));
        }
        let mut response = statement.await.map_err(failed(READ))?;
        response.take(0).map_err(failed(READ))
    }
}

/// The highest marking that the administrator may see, as statements name it.
fn seen_by(job: &ErasureJob) -> (&'static str, Value) {
    ("highest", i64::from(job.highest.rank()).into_value())
}

/// The statement that finds rows of a workspace in a table.
fn rows_of(table: TenantTable) -> String {
    let name = table.name;
    match table.owned {
        Owned::Column(column) => format!("SELECT VALUE id FROM {name} WHERE {column} = $ws LIMIT {FOUND}"),
        Owned::Key => {
            let range = up_to_limit(&format!("{name}:[$ws]..[$next]"));
            format!("SELECT VALUE id FROM {range} LIMIT {FOUND}")
        }
        Owned::Id => "SELECT VALUE id FROM $row".to_owned(),
    }
}

fn feeds(number: u64) -> RemovedCounts {
    RemovedCounts {
        feeds: number,
        ..RemovedCounts::default()
    }
}
