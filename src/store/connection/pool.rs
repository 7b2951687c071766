//! Pool of sockets to a SurrealDB server, each reopened after it is lost.
//!
//! The SDK (3.3.5) reconnects by itself. But requests made meanwhile wait for as long as that takes, a server that
//! has gone silent is never noticed, and a sign-in that fails on reconnect disables the handle for good. So this pool
//! gives up a lost or silent socket and fails its pending requests at once; the next request opens a new socket.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use surrealdb::engine::any::Any;
use surrealdb::method::Transaction;
use surrealdb::types::{ConnectionError, NotFoundError, QueryError, Variables};
use surrealdb::{IndexedResults, Surreal};
use tokio::sync::watch;

use super::connector::Connector;

/// Interval between probes of each socket.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Longest silence of a socket; a large reply on a slow link delays the replies behind it.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// How long a failed attempt to open a socket makes further attempts fail at once.
const REFUSED_FOR: Duration = Duration::from_millis(500);
/// Idle sessions kept per socket for later transactions; a server allows 256 per socket.
const MAX_SPARE: usize = 16;
/// The server's error for a transaction that ended with its socket.
const NO_TRANSACTION: &str = "Transaction not found";

/// The sockets of one store.
#[derive(Debug)]
pub(in crate::store) struct Pool {
    dial: Connector,
    /// Time-out of one statement.
    timeout: Duration,
    places: Vec<SocketSlot>,
    /// Serialises opening sockets; holds the time and the error of the last failed attempt.
    opening: tokio::sync::Mutex<Option<(Instant, surrealdb::Error)>>,
    turn: AtomicUsize,
    losses: AtomicU64,
}

/// Slot of a socket, which may not be open yet.
#[derive(Debug, Default)]
struct SocketSlot {
    socket: Mutex<Option<Arc<Socket>>>,
    /// Statements and transactions in progress.
    load: AtomicUsize,
}

#[derive(Debug)]
struct Socket {
    session: Surreal<Any>,
    /// Idle sessions: a new one costs the server a sign-in.
    spare: Mutex<Vec<Surreal<Any>>>,
    lost: watch::Sender<bool>,
}

/// The use of a socket for one statement or transaction.
#[derive(Debug)]
struct Lease {
    pool: Arc<Pool>,
    place: usize,
    socket: Arc<Socket>,
}

/// A transaction; it ends when its socket is lost.
#[derive(Debug)]
pub(super) struct PooledTransaction {
    transaction: Transaction<Any>,
    lease: Lease,
    /// Whether a reply was lost: the server then ends the transaction with its session.
    severed: AtomicBool,
}

/// Whether the server could not be reached or its reply was lost: the statement may have taken effect.
pub(in crate::store) fn is_unreachable(error: &surrealdb::Error) -> bool {
    error.is_connection()
        || matches!(error.not_found_details(), Some(NotFoundError::Session { .. }))
        || matches!(error.query_details(), Some(QueryError::Cancelled))
}

fn unreachable(text: String) -> surrealdb::Error {
    surrealdb::Error::connection(text, ConnectionError::ConnectionFailed)
}

impl Pool {
    /// Opens the first of at most `connections` sockets; the others are opened on demand.
    pub(in crate::store) async fn open(
        dial: Connector,
        connections: usize,
        timeout: Duration,
    ) -> surrealdb::Result<Arc<Self>> {
        let pool = Arc::new(Self {
            dial,
            timeout,
            places: (0..connections.max(1)).map(|_| SocketSlot::default()).collect(),
            opening: tokio::sync::Mutex::default(),
            turn: AtomicUsize::new(0),
            losses: AtomicU64::new(0),
        });
        pool.socket(0).await?;
        tokio::spawn(watch_over(Arc::downgrade(&pool)));
        Ok(pool)
    }

    /// A socket beside the pool's, signed in as they are.
    pub(super) async fn own_session(&self) -> surrealdb::Result<Surreal<Any>> {
        self.dial.session().await
    }

    /// Number of replies lost so far.
    pub(in crate::store) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Runs statements outside a client transaction.
    pub(in crate::store) async fn query(
        self: &Arc<Self>,
        text: Cow<'_, str>,
        variables: Variables,
    ) -> surrealdb::Result<IndexedResults> {
        let lease = self.lease().await?;
        let query = lease.socket.session.query(text).bind(variables);
        lease.ask(query.into_future()).await
    }

    /// Begins a transaction on the least busy socket.
    pub(super) async fn begin(self: &Arc<Self>) -> surrealdb::Result<PooledTransaction> {
        let lease = self.lease().await?;
        let spare = lease.socket.spare.lock().pop();
        let mut begun = None;
        if let Some(session) = spare {
            // A session that is no longer usable is replaced by a new one.
            begun = lease.ask(session.begin().into_future()).await.ok();
        }
        let transaction = match begun {
            Some(transaction) => transaction,
            None => {
                let session = lease.socket.session.clone();
                lease.ask(session.begin().into_future()).await?
            }
        };
        Ok(PooledTransaction {
            transaction,
            lease,
            severed: AtomicBool::new(false),
        })
    }

    /// The least busy socket available; equally busy ones take turns.
    async fn lease(self: &Arc<Self>) -> surrealdb::Result<Lease> {
        let places = self.places.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % places;
        let mut order: Vec<usize> = (0..places).map(|at| (at + turn) % places).collect();
        order.sort_by_key(|at| self.places[*at].load.load(Ordering::Relaxed));
        let mut refusal = None;
        for place in order {
            match self.socket(place).await {
                Ok(socket) => {
                    self.places[place].load.fetch_add(1, Ordering::Relaxed);
                    return Ok(Lease {
                        pool: Arc::clone(self),
                        place,
                        socket,
                    });
                }
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or_else(|| unreachable("no socket".into())))
    }

    /// The socket of a slot, opened if necessary.
    async fn socket(&self, place: usize) -> surrealdb::Result<Arc<Socket>> {
        let place = &self.places[place];
        if let Some(socket) = place.open_socket() {
            return Ok(socket);
        }
        let mut refused = self.opening.lock().await;
        if let Some(socket) = place.open_socket() {
            return Ok(socket);
        }
        if let Some((at, error)) = refused.as_ref()
            && at.elapsed() < REFUSED_FOR
        {
            return Err(error.clone());
        }
        let limit = self.timeout.min(MAX_SILENCE);
        let opened = tokio::time::timeout(limit, self.dial.session()).await;
        match opened.unwrap_or_else(|_| Err(unreachable(format!("no answer in {limit:?}")))) {
            Ok(session) => {
                *refused = None;
                let socket = Arc::new(Socket {
                    session,
                    spare: Mutex::default(),
                    lost: watch::Sender::new(false),
                });
                *place.socket.lock() = Some(Arc::clone(&socket));
                metrics::counter!("storage_connections_opened").increment(1);
                Ok(socket)
            }
            Err(error) => {
                tracing::warn!(%error, "the database can't be reached");
                // To the caller, a refused sign-in is an outage too.
                let error = unreachable(error.to_string());
                *refused = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Gives up a socket and fails its pending requests.
    fn lose(&self, socket: &Arc<Socket>, reason: &surrealdb::Error) {
        for place in &self.places {
            let mut open = place.socket.lock();
            if open.as_ref().is_some_and(|open| Arc::ptr_eq(open, socket)) {
                *open = None;
            }
        }
        // Once its sessions are dropped, the SDK sends nothing that is still in its queue.
        socket.spare.lock().clear();
        if !socket.lost.send_replace(true) {
            tracing::warn!(%reason, "a connection to the database is lost");
            metrics::counter!("storage_connections_lost").increment(1);
        }
    }

    async fn probe(&self, socket: Arc<Socket>) {
        let limit = self.timeout.min(MAX_SILENCE);
        let answer = tokio::time::timeout(limit, socket.session.query("RETURN true")).await;
        let answer = answer.unwrap_or_else(|_| Err(unreachable(format!("silent for {limit:?}"))));
        if let Err(error) = answer.and_then(IndexedResults::check) {
            self.lose(&socket, &error);
        }
    }
}

/// Gives up sockets that no longer answer, for as long as the pool exists.
async fn watch_over(pool: Weak<Pool>) {
    let mut ticks = tokio::time::interval(PROBE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let open: Vec<_> = pool.places.iter().filter_map(SocketSlot::open_socket).collect();
        metrics::gauge!("storage_connections").set(open.len() as f64);
        join_all(open.into_iter().map(|socket| pool.probe(socket))).await;
    }
}

impl SocketSlot {
    fn open_socket(&self) -> Option<Arc<Socket>> {
        self.socket
            .lock()
            .as_ref()
            .filter(|socket| !*socket.lost.borrow())
            .map(Arc::clone)
    }
}

impl Lease {
    /// Waits for a reply until the socket is lost or the time-out expires.
    async fn ask<T>(&self, work: impl Future<Output = surrealdb::Result<T>>) -> surrealdb::Result<T> {
        let limit = self.pool.timeout;
        let mut lost = self.socket.lost.subscribe();
        let answer = tokio::select! {
            answer = tokio::time::timeout(limit, work) => match answer {
                Ok(answer) => answer.inspect_err(|error| {
                    if is_unreachable(error) {
                        self.pool.lose(&self.socket, error);
                    }
                }),
                Err(_) => Err(unreachable(format!("no answer in {limit:?}"))),
            },
            _ = lost.wait_for(|lost| *lost) => Err(unreachable("the connection is lost".into())),
        };
        answer.map_err(|error| {
            let error = if error.message().contains(NO_TRANSACTION) {
                unreachable("the transaction ended with its connection".into())
            } else {
                error
            };
            if is_unreachable(&error) {
                self.pool.losses.fetch_add(1, Ordering::AcqRel);
            }
            error
        })
    }

    fn give_back(&self, session: Surreal<Any>) {
        let mut spare = self.socket.spare.lock();
        if spare.len() < MAX_SPARE && !*self.socket.lost.borrow() {
            spare.push(session);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.places[self.place].load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PooledTransaction {
    pub(in crate::store) async fn query(
        &self,
        text: Cow<'_, str>,
        variables: Variables,
    ) -> surrealdb::Result<IndexedResults> {
        let query = self.transaction.query(text).bind(variables);
        let answer = self.lease.ask(query.into_future()).await;
        if answer.as_ref().is_err_and(is_unreachable) {
            self.severed.store(true, Ordering::Release);
        }
        answer
    }

    pub(in crate::store) async fn commit(self) -> surrealdb::Result<()> {
        let session = self.lease.ask(self.transaction.commit().into_future()).await?;
        self.lease.give_back(session);
        Ok(())
    }

    pub(super) async fn cancel(self) -> surrealdb::Result<()> {
        if self.severed.into_inner() {
            return Ok(());
        }
        let session = self.lease.ask(self.transaction.cancel().into_future()).await?;
        self.lease.give_back(session);
        Ok(())
    }
}
