//! Opens the database, brings its schema up to date and signs in as the user without DDL rights.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use surrealdb::Surreal;
use surrealdb::engine::any::{Any, connect};
use surrealdb::engine::local::Db;
use surrealdb::opt::auth::{Database as DatabaseUser, Root};
use surrealdb_cnf::ConfigMap;
use surrealdb_engine_local::Datastore;
use uuid::Uuid;

use super::Store;
use super::archive::{Purpose, StoreTarget};
use super::connection::connector::{Connector, remote_config};
use super::connection::database::{Connection, Database};
use super::connection::error::StoreError;
use super::connection::marker::{StoreMarker, refuse_root};
use super::connection::pool::Pool;
use super::connection::size::SizeLimit;
use super::connection::temporary::TemporaryDir;
use super::identity::id_secret;
use super::migrations::migrate::{self, Hashing};
use crate::blocking;
use crate::domain::error::DomainError;
use crate::files;

/// Namespace and user of the service.
const NAMESPACE: &str = "threat_memory";
const APP_USER: &str = "service";
/// Scheme of an embedded, durable store.
const EMBEDDED: &str = "surrealkv://";
/// Scheme of a store that is discarded when the process ends.
const TEMPORARY: &str = "mem://";

/// Bytes of a block on disk. The engine copies a whole block for each row it reads; its default of 64 KiB makes a
/// point read several times as expensive.
const BLOCK_SIZE: usize = 8 << 10;

/// Least limit of a restore's transactions, whatever that of the service is: nothing runs beside it.
pub(in crate::store) const RESTORE_TRANSACTION: usize = 256 << 20;

/// Longest wait for a server at startup.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Connection to an external SurrealDB as its owner; embedded stores need none.
#[derive(Debug, Clone)]
pub struct StorageServer {
    pub username: String,
    pub password: SecretString,
    /// Maximum number of sockets.
    pub connections: usize,
    /// Time-out of one statement.
    pub timeout: Duration,
}

/// Memory limits of a store, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct StorageMemory {
    /// Largest transaction; applies to an external store too.
    pub transaction: usize,
    /// Writes buffered in memory until they are flushed to disk in sorted order.
    pub memtable: usize,
    /// Cache of blocks read from disk.
    pub block_cache: usize,
    /// Size of a value from which it lies in the value log. Large values are then not rewritten with the rows around them, but
    /// a deleted one stays until everything in its file is gone.
    pub value_log: usize,
}

impl StorageMemory {
    /// The engine's own size of a value in the value log.
    pub const VALUE_LOG: usize = 4 << 10;
}

impl Default for StorageMemory {
    fn default() -> Self {
        Self {
            transaction: 256 << 20,
            memtable: 128 << 20,
            block_cache: 128 << 20,
            value_log: Self::VALUE_LOG,
        }
    }
}

impl Store {
    /// Opens `url` (`surrealkv://PATH`, `mem://` for a store that is discarded when the process ends, `ws://HOST`,
    /// `wss://HOST`), migrates `database` and signs in as the service user. On a server its password is derived from
    /// `secret`, so that all processes of a service know it.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process holds the directory.
    pub async fn open(
        url: &str,
        database: &str,
        memory: StorageMemory,
        server: Option<&StorageServer>,
        secret: &SecretString,
    ) -> Result<Self, StoreError> {
        if url.starts_with(TEMPORARY) {
            let made = TemporaryDir::new().map_err(|error| open_error(url, error))?;
            return Self::open_temporary(made, database, memory).await;
        }
        if url.starts_with(EMBEDDED) {
            let engine = open_embedded(url, memory, CommitSync::Every, None).await?;
            return Self::of_engine(engine, database, memory, None).await;
        }
        let server = server.ok_or_else(|| open_error(url, "user and password are missing"))?;
        let user = app_user(database, app_password(secret, database));
        // The limit of an external server is unknown, so the limit of an embedded store applies to both.
        let budget = SizeLimit::new(memory.transaction);
        let pool = open_server(url, server, user, budget).await?;
        Self::over(Database::new(Connection::Pool(pool), budget), None).await
    }

    /// Opens the store of a service on a server beside that service, whose schema and whose user stay as they are.
    ///
    /// # Errors
    /// Those of [`Store::open`]; also when the secret is not the service's, or the schema is another one.
    pub async fn join(
        url: &str,
        database: &str,
        memory: StorageMemory,
        server: &StorageServer,
        secret: &SecretString,
    ) -> Result<Self, StoreError> {
        let dial = Connector {
            url: url.to_owned(),
            user: app_user(database, app_password(secret, database)),
        };
        let pool = Pool::open(dial, server.connections, server.timeout).await;
        let pool = pool.map_err(|error| {
            let rule = "there must be a service on this database, and its secret must be this one's";
            open_error(url, format!("{error}; {rule}"))
        })?;
        let db = Database::new(Connection::Pool(pool), SizeLimit::new(memory.transaction));
        migrate::require_known_version(&db).await?;
        Self::over(db, None).await
    }

    /// Opens an embedded store, whose commits the marker follows.
    ///
    /// # Errors
    /// Those of [`Store::open`], and [`StoreError::Behind`] when the store has lost commits.
    pub(crate) async fn open_marked(
        url: &str,
        database: &str,
        memory: StorageMemory,
        marker: &Arc<StoreMarker>,
    ) -> Result<Self, StoreError> {
        let engine = open_embedded(url, memory, CommitSync::Every, Some(marker)).await?;
        let mut store = Self::of_engine(engine, database, memory, None).await?;
        store.dir = embedded_dir(url).map(Path::to_owned);
        store.open_reserve(marker.data_dir()).await;
        Ok(store)
    }

    /// Opens a store in a directory that is removed after it. It may hold a store already.
    pub(in crate::store) async fn open_temporary(
        made: TemporaryDir,
        database: &str,
        memory: StorageMemory,
    ) -> Result<Self, StoreError> {
        let url = format!("{EMBEDDED}{}", made.store().display());
        let engine = open_embedded(&url, memory, CommitSync::Never, None).await?;
        Self::of_engine(engine, database, memory, Some(made)).await
    }

    /// Migrates an embedded database and signs in.
    async fn of_engine(
        engine: Surreal<Db>,
        database: &str,
        memory: StorageMemory,
        temporary: Option<TemporaryDir>,
    ) -> Result<Self, StoreError> {
        let admin = Database::new(Connection::Embedded(engine), SizeLimit::new(memory.transaction));
        let user = app_user(database, random_password());
        migrate::run(&admin, &user, Hashing::Quick).await?;
        let service = admin.clone();
        service.sign_in(user).await?;
        service.use_database(NAMESPACE, database).await?;
        Self::over(service, temporary).await
    }

    /// A store over a database whose schema is up to date.
    pub(in crate::store) async fn over(
        db: Database,
        temporary: Option<TemporaryDir>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            id_secret: id_secret::read(&db).await?,
            db,
            chains: Mutex::default(),
            opened: crate::clock::now(),
            reserve: None,
            unsaved: Mutex::default(),
            snapshots: Arc::default(),
            dir: temporary.as_ref().map(TemporaryDir::store),
            temporary,
        })
    }

    /// Rewrites the files of an embedded store, so that nothing is left in them of what was deleted or overwritten before.
    /// An external database has files of its own. Waits for a back-up, whose snapshot keeps what was deleted after it.
    pub async fn purge(&self) -> Result<(), DomainError> {
        let Some(dir) = self.dir.clone() else {
            return Ok(());
        };
        let _alone = self.snapshots.write().await;
        let purged = blocking::spawn(move || surrealkv::purge(&dir)).await;
        let failed = |error: &dyn std::fmt::Display| {
            DomainError::internal("rewriting the files of the store failed", error)
        };
        let purged = purged.map_err(|error| failed(&error))?;
        purged.map(drop).map_err(|error| failed(&error))
    }

    /// The directory of a temporary store.
    pub fn temporary_dir(&self) -> Option<&Path> {
        self.temporary.as_ref().map(TemporaryDir::dir)
    }
}

impl Database {
    /// Opens a store without a migration, as its owner; an embedded one with the marker that its commits follow.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub(in crate::store) async fn open_as_owner(
        target: &StoreTarget,
        purpose: Purpose,
    ) -> Result<(Self, Option<Arc<StoreMarker>>), StoreError> {
        let StoreTarget {
            url, memory, server, ..
        } = target;
        let least = match purpose {
            Purpose::Read => 0,
            Purpose::Restore => RESTORE_TRANSACTION,
        };
        let budget = SizeLimit::new(memory.transaction.max(least));
        let (connection, marker) = if let Some(dir) = embedded_dir(url) {
            // The files of a restored store must belong to who owns the directory.
            if let Some(data_dir) = dir.parent().filter(|_| purpose == Purpose::Restore) {
                refuse_root(data_dir, data_dir)?;
            }
            // A directory that has lost its store may get another one; a store that is there is refused later.
            let replaces_lost = purpose == Purpose::Restore && files::is_empty(dir);
            let marker = StoreMarker::begin(dir, replaces_lost)?;
            let engine = open_embedded(url, *memory, CommitSync::Every, Some(&marker)).await?;
            (Connection::Embedded(engine), Some(marker))
        } else {
            let server = server.as_ref();
            let server = server.ok_or_else(|| open_error(url, "user and password are missing"))?;
            (Connection::Remote(owner_session(url, server).await?), None)
        };
        let db = Self::new(connection, budget);
        let database = target.service.database();
        match purpose {
            Purpose::Read => db.use_database(NAMESPACE, database).await?,
            Purpose::Restore => migrate::make_database(&db, NAMESPACE, database).await?,
        }
        Ok((db, marker))
    }
}

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy)]
enum CommitSync {
    Every,
    Never,
}

fn open_error(url: &str, cause: impl std::fmt::Display) -> StoreError {
    StoreError::Open {
        url: url.to_owned(),
        cause: cause.to_string(),
    }
}

/// Migrates the schema of a server's database as its owner, closes that session, and connects as the service.
async fn open_server(
    url: &str,
    server: &StorageServer,
    user: DatabaseUser,
    budget: SizeLimit,
) -> Result<Arc<Pool>, StoreError> {
    let admin = owner_session(url, server).await?;
    let admin = Database::new(Connection::Remote(admin), budget);
    migrate::run(&admin, &user, Hashing::Slow).await?;
    let dial = Connector {
        url: url.to_owned(),
        user,
    };
    Ok(Pool::open(dial, server.connections, server.timeout).await?)
}

/// A session of a server as its owner.
async fn owner_session(url: &str, server: &StorageServer) -> Result<Surreal<Any>, StoreError> {
    let owner = Root {
        username: server.username.clone(),
        password: server.password.expose_secret().to_owned(),
    };
    let admin = async {
        let session = connect((url, remote_config()?)).await?;
        session.signin(owner).await?;
        Ok::<_, surrealdb::Error>(session)
    };
    let admin = tokio::time::timeout(CONNECT_LIMIT, admin).await;
    admin
        .map_err(|_| open_error(url, format!("no answer in {CONNECT_LIMIT:?}")))?
        .map_err(|error| open_error(url, error))
}

/// The directory of an embedded, durable store.
pub(crate) fn embedded_dir(url: &str) -> Option<&Path> {
    let rest = url.strip_prefix(EMBEDDED)?;
    Some(Path::new(rest.split_once('?').map_or(rest, |(path, _)| path)))
}

/// Opens an embedded store. A directory closed a moment ago may still be locked: the engine releases it in the
/// background.
async fn open_embedded(
    url: &str,
    memory: StorageMemory,
    sync: CommitSync,
    marker: Option<&Arc<StoreMarker>>,
) -> Result<Surreal<Db>, StoreError> {
    let dir = embedded_dir(url).unwrap_or(Path::new(url));
    files::private_dir(dir).map_err(|error| open_error(url, error))?;
    let mut tries = 0;
    loop {
        if let Some(marker) = marker {
            marker.watch();
        }
        match datastore(url, memory, sync).await {
            Ok(datastore) => return Ok(Surreal::<Db>::unstable_from_datastore(datastore, None).await?),
            Err(error) => {
                let locked = is_lock_error(&error);
                if locked && tries < 10 {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                let path = url.strip_prefix(EMBEDDED).unwrap_or(url).to_owned();
                return Err(if locked {
                    StoreError::InUse(path)
                } else {
                    let refusal = marker.and_then(|marker| marker.refusal());
                    refusal.unwrap_or_else(|| open_error(url, error))
                });
            }
        }
    }
}

/// The steps of the SDK's own `connect`, with our configuration.
async fn datastore(url: &str, memory: StorageMemory, sync: CommitSync) -> Result<Arc<Datastore>, String> {
    let mut config = ConfigMap::empty()
        .with_key_value("surrealkv_block_size", BLOCK_SIZE.to_string())
        .with_key_value("surrealkv_max_memtable_size", memory.memtable.to_string())
        .with_key_value("surrealkv_block_cache_capacity", memory.block_cache.to_string())
        .with_key_value("surrealkv_vlog_threshold", memory.value_log.to_string());
    if matches!(sync, CommitSync::Never) {
        config = config.with_key_value("datastore_sync", "never");
    }
    let builder = Datastore::builder()
        .with_config(config)
        .without_maintenance_tasks();
    let datastore = builder
        .build_with_path(url)
        .await
        .map_err(|error| error.to_string())?;
    // Maintenance writes, and nothing may be written before the version key exists.
    datastore
        .check_version()
        .await
        .map_err(|error| error.to_string())?;
    datastore.bootstrap().await.map_err(|error| error.to_string())?;
    datastore.start_maintenance_tasks();
    Ok(datastore)
}

/// The engine has no specific error for this; matching "lock" alone would also match "corrupted block".
fn is_lock_error(text: &str) -> bool {
    text.contains("already locked by another process")
}

fn app_user(database: &str, password: String) -> DatabaseUser {
    DatabaseUser {
        namespace: NAMESPACE.into(),
        database: database.into(),
        username: APP_USER.into(),
        password,
    }
}

/// Password of the service user of an embedded store, which only this process can reach: 244 random bits.
fn random_password() -> String {
    [Uuid::new_v4(), Uuid::new_v4()]
        .map(|part| part.simple().to_string())
        .concat()
}

/// Password of the service user, derived from the service's secret: only processes that share the secret can sign in.
fn app_password(secret: &SecretString, database: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"threat-memory storage user\0");
    hasher.update(database.as_bytes());
    hasher.update([0]);
    hasher.update(secret.expose_secret().as_bytes());
    hex::encode(hasher.finalize())
}
