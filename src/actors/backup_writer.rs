//! Owns back-ups: one is written at a time, from a snapshot, beside the requests.
//!
//! The archive goes through a short queue to whoever takes it, so a slow taker slows the back-up down and costs no memory. One
//! that takes nothing for a while ends it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use secrecy::SecretString;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::audit_writer::{Append, AuditHandle};
use super::worker::{Access, ActorCore, Tenant, Work, WorkerHandle};
use crate::archive::{Header, Manifest, ServiceKind, Since};
use crate::capacity::bulk_runtime_or;
use crate::clock;
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;
use crate::domain::permission::{Permission, Role};
use crate::store::{BackUp, BackUpError, Snapshot, Store};

/// Bytes of a piece of the archive on its way, and pieces that may wait.
const PIECE: usize = 256 << 10;
const QUEUE: usize = 4;
/// Longest time in which a piece must be taken.
const STALL: Duration = Duration::from_secs(120);

/// Handle to the writer of back-ups.
pub type BackupHandle = WorkerHandle<BackupCore>;

/// State shared by all requests to the writer of back-ups.
pub struct BackupCore {
    store: Arc<Store>,
    audit: AuditHandle,
    service: ServiceKind,
    running: Arc<Semaphore>,
}

/// Begins a back-up.
#[derive(Debug)]
pub struct BeginBackUp {
    /// The audit entry of whoever asks; absent where the log is off.
    pub entry: Option<AuditEntry>,
    /// What the archive goes on from; empty for a whole one.
    pub since: Since,
    /// Encrypts passwords and API keys, which are left out without one.
    pub passphrase: Option<SecretString>,
}

/// An archive while it is written.
pub struct ArchiveStream {
    pub header: Header,
    pieces: Receiver<io::Result<Bytes>>,
}

impl ActorCore for BackupCore {
    type Tenant = Tenant;

    const NAME: &'static str = "backup_writer";
}

impl BackupCore {
    /// The writer of a service's back-ups.
    pub fn new(store: Arc<Store>, audit: AuditHandle, service: ServiceKind) -> Self {
        metrics::gauge!("backup_last_success_seconds").set(0.0);
        // A counter that begins with its first event shows no increase.
        for outcome in ["success", "failure"] {
            metrics::counter!("backups_total", "outcome" => outcome).increment(0);
        }
        Self {
            store,
            audit,
            service,
            running: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Work for BeginBackUp {
    type Core = BackupCore;
    type Reply = ArchiveStream;
    const NAME: &'static str = "begin_back_up";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        self.entry.as_ref().map(|entry| entry.tenant_id)
    }

    /// Replies once the snapshot is taken; the archive is written afterwards.
    async fn run(self, core: Arc<BackupCore>) -> Result<Self::Reply, DomainError> {
        let running = Arc::clone(&core.running).try_acquire_owned();
        let running = running.map_err(|_| DomainError::Busy {
            actor: "another back-up",
        })?;
        // Whoever asks may have lost the role since the request began.
        if let Some(user) = self.entry.as_ref().and_then(|entry| entry.user_id) {
            let asks = core.store.user(user).await?;
            if !asks.is_some_and(|user| user.role == Role::Admin && !user.disabled) {
                let refused = format!("permission {} required", Permission::Admin);
                return Err(DomainError::Forbidden(refused));
            }
        }
        let failed = |error| DomainError::internal("the back-up could not begin", error);
        let work = BackUp {
            service: core.service,
            made_at: clock::now(),
            since: self.since,
            passphrase: self.passphrase,
        };
        let snapshot = core.store.snapshot().await.map_err(failed)?;
        let header = work.header(&snapshot);
        if let Some(entry) = self.entry {
            let entry = entry
                .on(header.id)
                .with("secrets", work.passphrase.is_some())
                .with("increment", header.archives.len() > 1);
            core.audit.call(Append(entry)).await?;
        }
        let (sender, pieces) = channel(QUEUE);
        let writing = write(work, snapshot, header.clone(), sender, running);
        bulk_runtime_or(&Handle::current()).spawn(writing);
        Ok(ArchiveStream { header, pieces })
    }
}

/// Writes the archive into the queue, and logs how it ended.
async fn write(
    work: BackUp,
    snapshot: Snapshot,
    header: Header,
    sender: Sender<io::Result<Bytes>>,
    _running: OwnedSemaphorePermit,
) {
    let (id, since) = (header.id, Instant::now());
    let out = PieceWriter {
        handle: Handle::current(),
        sender: sender.clone(),
        piece: BytesMut::new(),
    };
    let written = work.write(snapshot, header, out).await;
    report(&written, since.elapsed());
    if let Err(error) = written {
        tracing::warn!(archive = %id, %error, "a back-up was not finished");
        let broken = io::Error::other("the back-up was not finished");
        sender.send_timeout(Err(broken), STALL).await.ok();
    }
}

fn report(written: &Result<(PieceWriter, Manifest), BackUpError>, took: Duration) {
    let outcome = match written {
        Ok((_, manifest)) => {
            tracing::info!(
                archive = %manifest.id,
                rows = manifest.rows(),
                seconds = took.as_secs_f64(),
                "a back-up was written"
            );
            metrics::gauge!("backup_last_success_seconds").set(clock::now().timestamp() as f64);
            "success"
        }
        Err(_) => "failure",
    };
    metrics::counter!("backups_total", "outcome" => outcome).increment(1);
}

impl ArchiveStream {
    /// Name of its file.
    pub fn file_name(&self) -> String {
        let at = self.header.made_at.format("%Y%m%dT%H%M%SZ");
        format!("threat-memory-{at}.tar.zst")
    }

    /// Its bytes. An error ends the transfer, so that the client notices that it is incomplete.
    pub fn into_bytes(self) -> impl Stream<Item = io::Result<Bytes>> {
        futures_util::stream::unfold(self.pieces, |mut pieces| async {
            pieces.recv().await.map(|piece| (piece, pieces))
        })
        .fuse()
    }
}

/// Collects what is written into pieces and hands them over.
struct PieceWriter {
    handle: Handle,
    sender: Sender<io::Result<Bytes>>,
    piece: BytesMut,
}

impl PieceWriter {
    fn hand_over(&mut self) -> io::Result<()> {
        let piece = self.piece.split().freeze();
        let sent = self.handle.block_on(self.sender.send_timeout(Ok(piece), STALL));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody takes the archive"))
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.hand_over()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.piece.is_empty() {
            true => Ok(()),
            false => self.hand_over(),
        }
    }
}
