//! Database connection: one type for embedded and external databases.
//!
//! The SDK derives the cache sizes of an embedded store from the machine's memory and offers no setting, so an
//! embedded store is opened through the engine below the SDK, which has another handle type. This module hides the
//! difference.
//!
//! It also stops all writes once the disk has failed a commit. The next start recovers such a commit from the
//! engine's log in full or not at all; until then nobody can tell which.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use surrealdb::engine::any::Any;
use surrealdb::engine::local::Db;
use surrealdb::method::{ItemStream, Transaction};
use surrealdb::opt::auth::Database as DatabaseUser;
use surrealdb::types::{SurrealValue, Variables};
use surrealdb::{IndexedResults, Surreal};
use tracing::Instrument;

use super::pool::{self, Pool, PooledTransaction};
use super::size::{self, SizeLimit};
use crate::telemetry::traces;

/// Keywords of statements that write.
const WRITES: [&str; 6] = ["INSERT ", "UPDATE ", "UPSERT ", "CREATE ", "DELETE ", "RELATE "];

/// Error texts by which the engine reports a disk failure.
const DISK_ERRORS: [&str; 3] = ["IO error", "WAL error", STOPPED];
/// The engine takes no write until the store is reopened.
const STOPPED: &str = "Database stopped";
/// Error texts by which the engine reports bytes that are not those it wrote; the place follows.
const DAMAGE: [&str; 5] = [
    "Data corruption detected: ",
    "Corrupted block: ",
    "Corrupted table metadata: ",
    "Decompression error: ",
    "SSTable error: ",
];
/// Error texts of the system for a process, and for a machine, that has too many files open: `EMFILE` and `ENFILE`.
const TOO_MANY_FILES: [&str; 2] = ["(os error 24)", "(os error 23)"];
/// Error returned for a write refused because of an earlier failure.
const DISK_FAILED: &str = "WAL error: an earlier write failed";

/// A connection; each clone is its own session with the same rights.
#[derive(Debug, Clone)]
pub(in crate::store) struct Database {
    pub(in crate::store) connection: Connection,
    breaker: WriteBreaker,
    budget: SizeLimit,
}

#[derive(Debug, Clone)]
pub(in crate::store) enum Connection {
    /// Embedded, with cache sizes of our choosing.
    Embedded(Surreal<Db>),
    /// One session of a SurrealDB server: the owner's, while the store is opened.
    Remote(Surreal<Any>),
    /// The service's pooled sockets to a SurrealDB server.
    Pool(Arc<Pool>),
}

/// A circuit breaker: the first commit that fails because of the disk opens it, and no write is accepted until the
/// store is reopened.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct WriteBreaker(Arc<AtomicBool>);

/// A statement to be run; awaiting it runs it.
pub(in crate::store) struct Statement<'a> {
    target: Target<'a>,
    text: Cow<'a, str>,
    variables: Variables,
    /// Set for a write outside a transaction; a transaction checks it on commit.
    breaker: Option<&'a WriteBreaker>,
    budget: SizeLimit,
    /// Bytes held by the transaction, for a write inside one.
    held: Option<&'a AtomicU64>,
}

enum Target<'a> {
    Embedded(&'a Surreal<Db>),
    Remote(&'a Surreal<Any>),
    Pool(&'a Arc<Pool>),
    EmbeddedTransaction(&'a Transaction<Db>),
    RemoteTransaction(&'a Transaction<Any>),
    PooledTransaction(&'a PooledTransaction),
}

/// A client transaction.
#[derive(Debug)]
pub(in crate::store) struct WriteTransaction {
    transaction: ClientTransaction,
    breaker: WriteBreaker,
    budget: SizeLimit,
    /// Estimated bytes held by the transaction so far.
    held: AtomicU64,
}

#[derive(Debug)]
enum ClientTransaction {
    Embedded(Transaction<Db>),
    Remote(Transaction<Any>),
    Pooled(PooledTransaction),
}

impl WriteBreaker {
    pub(in crate::store) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn allow(&self) -> surrealdb::Result<()> {
        if self.is_open() {
            return Err(surrealdb::Error::internal(DISK_FAILED.to_owned()));
        }
        Ok(())
    }

    fn watch<T>(&self, outcome: surrealdb::Result<T>) -> surrealdb::Result<T> {
        outcome.inspect_err(|error| {
            if is_disk_failure(error) && !self.0.swap(true, Ordering::AcqRel) {
                let cause = if has_too_many_files(error) {
                    "too many files are open, and the database stopped; raise the limit of open files"
                } else {
                    "the disk failed a write"
                };
                tracing::error!(%error, "{cause}; nothing more is written until a restart");
                metrics::gauge!("storage_writable").set(0.0);
            }
        })
    }
}

fn writes(text: &str) -> bool {
    WRITES.iter().any(|word| text.contains(word))
}

/// Whether a write failed because of the disk, or the engine has stopped for whatever reason.
pub(in crate::store) fn is_disk_failure(error: &surrealdb::Error) -> bool {
    !pool::is_unreachable(error) && tells_disk_failure(error.message())
}

/// Whether a statement failed because too many files are open. That passes, unless the engine has stopped.
pub(in crate::store) fn has_too_many_files(error: &surrealdb::Error) -> bool {
    tells_too_many_files(error.message())
}

/// Where the store is damaged, if a statement failed because of that.
pub(in crate::store) fn damaged_place(error: &surrealdb::Error) -> Option<String> {
    place_of_damage(error.message()).map(str::to_owned)
}

fn place_of_damage(text: &str) -> Option<&str> {
    let start = DAMAGE
        .into_iter()
        .find_map(|words| Some(text.find(words)? + words.len()))?;
    let place = text.get(start..)?;
    // The checksums and other details follow.
    Some(place.split_inclusive(')').next().unwrap_or(place))
}

fn tells_disk_failure(text: &str) -> bool {
    let has_stopped = text.contains(STOPPED);
    has_stopped || (DISK_ERRORS.into_iter().any(|words| text.contains(words)) && !tells_too_many_files(text))
}

fn tells_too_many_files(text: &str) -> bool {
    TOO_MANY_FILES.into_iter().any(|words| text.contains(words))
}

impl Database {
    pub(in crate::store) fn new(connection: Connection, budget: SizeLimit) -> Self {
        metrics::gauge!("storage_writable").set(1.0);
        Self {
            connection,
            breaker: WriteBreaker::default(),
            budget,
        }
    }

    /// The size limit of a transaction.
    pub(in crate::store) fn budget(&self) -> SizeLimit {
        self.budget
    }

    /// The circuit breaker for disk failures.
    pub(in crate::store) fn breaker(&self) -> &WriteBreaker {
        &self.breaker
    }

    /// How many database replies have been lost; the statements may have taken effect.
    pub(in crate::store) fn losses(&self) -> u64 {
        match &self.connection {
            Connection::Embedded(_) | Connection::Remote(_) => 0,
            Connection::Pool(pool) => pool.losses(),
        }
    }

    /// Prepares a statement for this connection.
    pub(in crate::store) fn query<'a>(&'a self, text: impl Into<Cow<'a, str>>) -> Statement<'a> {
        let target = match &self.connection {
            Connection::Embedded(db) => Target::Embedded(db),
            Connection::Remote(db) => Target::Remote(db),
            Connection::Pool(pool) => Target::Pool(pool),
        };
        let text = text.into();
        Statement {
            target,
            variables: Variables::new(),
            breaker: writes(&text).then_some(&self.breaker),
            budget: self.budget,
            held: None,
            text,
        }
    }

    /// A connection for what reads for minutes: a pool's sockets have the time-out of a statement.
    pub(in crate::store) async fn for_long_reads(&self) -> surrealdb::Result<Self> {
        let mut same = self.clone();
        if let Connection::Pool(pool) = &self.connection {
            same.connection = Connection::Remote(pool.own_session().await?);
        }
        Ok(same)
    }

    /// Begins a client transaction in its own session.
    pub(in crate::store) async fn begin(self) -> surrealdb::Result<WriteTransaction> {
        self.breaker.allow()?;
        let transaction = match self.connection {
            Connection::Embedded(db) => ClientTransaction::Embedded(db.begin().await?),
            Connection::Remote(db) => ClientTransaction::Remote(db.begin().await?),
            Connection::Pool(pool) => ClientTransaction::Pooled(pool.begin().await?),
        };
        Ok(WriteTransaction {
            transaction,
            breaker: self.breaker,
            budget: self.budget,
            held: AtomicU64::new(0),
        })
    }

    /// Selects namespace and database.
    pub(in crate::store) async fn use_database(
        &self,
        namespace: &str,
        database: &str,
    ) -> surrealdb::Result<()> {
        match &self.connection {
            Connection::Embedded(db) => db.use_ns(namespace).use_db(database).await.map(drop),
            Connection::Remote(db) => db.use_ns(namespace).use_db(database).await.map(drop),
            // Each socket did that when it was opened.
            Connection::Pool(_) => Ok(()),
        }
    }

    /// Signs this session in as a database user.
    pub(in crate::store) async fn sign_in(&self, user: DatabaseUser) -> surrealdb::Result<()> {
        match &self.connection {
            Connection::Embedded(db) => db.signin(user).await.map(drop),
            Connection::Remote(db) => db.signin(user).await.map(drop),
            Connection::Pool(_) => Ok(()),
        }
    }
}

impl WriteTransaction {
    /// Prepares a statement inside the transaction.
    pub(in crate::store) fn query<'a>(&'a self, text: impl Into<Cow<'a, str>>) -> Statement<'a> {
        let target = match &self.transaction {
            ClientTransaction::Embedded(tx) => Target::EmbeddedTransaction(tx),
            ClientTransaction::Remote(tx) => Target::RemoteTransaction(tx),
            ClientTransaction::Pooled(tx) => Target::PooledTransaction(tx),
        };
        let text = text.into();
        Statement {
            target,
            variables: Variables::new(),
            breaker: None,
            budget: self.budget,
            held: writes(&text).then_some(&self.held),
            text,
        }
    }

    /// Adds the size of what a statement writes beyond its parameters, such as the rest of a row it updates in part.
    pub(in crate::store) fn charge(&self, bytes: u64) -> surrealdb::Result<()> {
        let before = self.held.fetch_add(bytes, Ordering::AcqRel);
        self.budget.allow(before.saturating_add(bytes))
    }

    /// Whether this many more bytes fit.
    pub(in crate::store) fn has_room_for(&self, bytes: u64) -> bool {
        let held = self.held.load(Ordering::Acquire);
        self.budget.allow(held.saturating_add(bytes)).is_ok()
    }

    /// Commits durably.
    pub(in crate::store) async fn commit(self) -> surrealdb::Result<()> {
        // The transaction may have begun before the disk failed.
        self.breaker.allow()?;
        let commit = async {
            match self.transaction {
                ClientTransaction::Embedded(tx) => tx.commit().await.map(drop),
                ClientTransaction::Remote(tx) => tx.commit().await.map(drop),
                ClientTransaction::Pooled(tx) => tx.commit().await,
            }
        };
        self.breaker
            .watch(commit.instrument(traces::of_statement()).await)
    }

    /// Rolls back.
    pub(in crate::store) async fn cancel(self) -> surrealdb::Result<()> {
        match self.transaction {
            ClientTransaction::Embedded(tx) => tx.cancel().await.map(drop),
            ClientTransaction::Remote(tx) => tx.cancel().await.map(drop),
            ClientTransaction::Pooled(tx) => tx.cancel().await,
        }
    }
}

impl<'a> Statement<'a> {
    /// Runs one statement that reads, and hands over its rows as they are found.
    pub(in crate::store) fn stream(self) -> surrealdb::Result<ItemStream> {
        let Statement {
            target,
            text,
            variables,
            ..
        } = self;
        let text = text.into_owned();
        match target {
            Target::Embedded(db) => db.query(text).bind(variables).stream_items(),
            Target::Remote(db) => db.query(text).bind(variables).stream_items(),
            Target::EmbeddedTransaction(tx) => tx.query(text).bind(variables).stream_items(),
            Target::RemoteTransaction(tx) => tx.query(text).bind(variables).stream_items(),
            Target::Pool(_) | Target::PooledTransaction(_) => Err(surrealdb::Error::internal(
                "the sockets of a pool hand over no rows one by one".to_owned(),
            )),
        }
    }

    /// Binds a parameter.
    pub(in crate::store) fn bind<T: SurrealValue>(mut self, (name, value): (&str, T)) -> Self {
        self.variables.insert(name.to_owned(), value);
        self
    }
}

impl<'a> IntoFuture for Statement<'a> {
    type Output = surrealdb::Result<IndexedResults>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Statement {
            target,
            text,
            variables,
            breaker,
            budget,
            held,
        } = self;
        let run = async move {
            if let Some(breaker) = breaker {
                breaker.allow()?;
                budget.allow(size::of_variables(&variables))?;
            }
            if let Some(held) = held {
                let bytes = size::of_variables(&variables);
                let before = held.fetch_add(bytes, Ordering::AcqRel);
                budget.allow(before.saturating_add(bytes))?;
            }
            let answer = match target {
                Target::Embedded(db) => db.query(text).bind(variables).await,
                Target::Remote(db) => db.query(text).bind(variables).await,
                Target::Pool(pool) => pool.query(text, variables).await,
                Target::EmbeddedTransaction(tx) => tx.query(text).bind(variables).await,
                Target::RemoteTransaction(tx) => tx.query(text).bind(variables).await,
                Target::PooledTransaction(tx) => tx.query(text, variables).await,
            };
            match breaker {
                Some(breaker) => breaker.watch(answer.and_then(IndexedResults::check)),
                None => answer,
            }
        };
        Box::pin(run.instrument(traces::of_statement()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_no_failed_disk() {
        for (text, is_disk, is_files) in [
            ("IO error: No space left on device (os error 28)", true, false),
            ("WAL error: Input/output error (os error 5)", true, false),
            (
                "Database stopped: IO error: Input/output error (os error 5)",
                true,
                false,
            ),
            ("IO error: Too many open files (os error 24)", false, true),
            (
                "WAL error: Too many open files in system (os error 23)",
                false,
                true,
            ),
            (
                "Database stopped: IO error: Too many open files (os error 24)",
                true,
                true,
            ),
            ("There was a problem with a transaction", false, false),
        ] {
            assert_eq!(tells_disk_failure(text), is_disk, "{text}");
            assert_eq!(tells_too_many_files(text), is_files, "{text}");
        }
    }

    #[test]
    fn damage_is_told_with_its_place() {
        let text = "There was a problem with a transaction: Data corruption detected: Key+Value CRC32 mismatch \
                    (file_id=3, offset=71): expected 1, calculated 2";
        let place = "Key+Value CRC32 mismatch (file_id=3, offset=71)";
        assert_eq!(place_of_damage(text), Some(place));
        for text in ["IO error: No space left on device (os error 28)", ""] {
            assert_eq!(place_of_damage(text), None);
        }
    }
}
