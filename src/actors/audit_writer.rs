//! Owns the audit entries in flight: those waiting to be written and those waiting for their link in the chain.
//!
//! Group commit: entries that arrive while a write is in progress go into the next one. An append is acknowledged
//! once it is durable. The write gate bounds the queue: when it is full, appends are refused, never dropped. Entries
//! that share a transaction with what they record are written by the graph store, which then requests their link.

mod export;
mod messages;

use std::collections::{BTreeSet, HashMap};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, WrapFuture};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

pub use self::export::AuditExport;
pub use self::messages::{Append, AppendStored, Chain, ChainAll, Drain, ListEntries, VerifyChain};
use super::handle::{ActorHandle, InFlight, Job, Stateful};
use super::job::{self, TaskReply};
use crate::domain::audit::{AuditEntry, ChainReport};
use crate::domain::error::DomainError;
use crate::store::Store;

/// Maximum number of entries per statement.
const GROUP: usize = 500;
/// Longest an entry waits for its link, so that many can be linked in one write.
const LINK_DELAY: Duration = Duration::from_millis(100);
/// Pause before links that failed to be written are retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often to check for lost database replies, and how many rounds of searching follow each loss: the server may
/// still be executing the statement.
const DOUBT_INTERVAL: Duration = Duration::from_secs(5);
const DOUBT_ROUNDS: u32 = 3;

/// Handle to the audit log.
pub type AuditHandle = ActorHandle<AuditWriter>;

/// Entries waiting for their link, with their numbers, by workspace.
type Groups = HashMap<Uuid, Vec<(u64, AuditEntry)>>;

struct PendingLinks {
    number: u64,
    entry: AuditEntry,
    done: oneshot::Sender<Result<(), DomainError>>,
    _guard: InFlight,
}

/// The audit writer actor.
pub struct AuditWriter {
    store: Arc<Store>,
    runtime: Handle,
    appends: Vec<PendingLinks>,
    unchained: Groups,
    writing: bool,
    chaining: bool,
    linking_planned: bool,
    /// Number of the last entry; entries are numbered as they arrive.
    arrived: u64,
    /// Numbers of the entries that are not linked yet.
    open: BTreeSet<u64>,
    /// Callers waiting until everything up to a number is linked; later arrivals do not prolong the wait.
    waiting: Vec<(u64, oneshot::Sender<()>)>,
    /// Lost database replies known so far.
    losses: u64,
    /// Remaining rounds of searching for entries that reached the log without this process knowing.
    doubtful: u32,
}

impl AuditWriter {
    /// Creates the writer. On start it links the entries that an earlier process left unlinked.
    pub fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            runtime: Handle::current(),
            appends: Vec::new(),
            unchained: HashMap::new(),
            writing: false,
            chaining: false,
            linking_planned: false,
            arrived: 0,
            open: BTreeSet::new(),
            waiting: Vec::new(),
            losses: 0,
            doubtful: 0,
        }
    }

    fn write_next(&mut self, ctx: &mut Context<Self>) {
        if self.writing || self.appends.is_empty() {
            return;
        }
        self.writing = true;
        let group: Vec<PendingLinks> = self.appends.drain(..self.appends.len().min(GROUP)).collect();
        let entries: Vec<AuditEntry> = group.iter().map(|pending| pending.entry.clone()).collect();
        let store = Arc::clone(&self.store);
        let task = self
            .runtime
            .spawn(async move { store.append_audit_of_reads(&entries).await });
        ctx.spawn(task.into_actor(self).map(move |result, writer, ctx| {
            let result = result
                .unwrap_or_else(|error| Err(DomainError::internal("writing the audit log failed", error)));
            for pending in group {
                match result {
                    Ok(true) => writer.await_link(pending.number, pending.entry),
                    // What waits in the reserve is linked at the next start.
                    Ok(false) | Err(_) => writer.settle([pending.number]),
                }
                // The caller may have gone away; the entry is written anyway.
                pending.done.send(result.clone().map(drop)).ok();
            }
            writer.writing = false;
            writer.write_next(ctx);
            writer.chain_soon(ctx);
        }));
    }

    /// Links the waiting entries after a short delay, together with any that arrive in the meantime: one link per
    /// entry would cost every request a second write to disk.
    fn chain_soon(&mut self, ctx: &mut Context<Self>) {
        if !self.waiting.is_empty() {
            self.chain_next(ctx);
        } else if !self.linking_planned && !self.unchained.is_empty() {
            self.linking_planned = true;
            ctx.run_later(LINK_DELAY, |writer, ctx| {
                writer.linking_planned = false;
                writer.chain_next(ctx);
            });
        }
    }

    fn chain_next(&mut self, ctx: &mut Context<Self>) {
        if self.chaining || self.unchained.is_empty() {
            return;
        }
        self.chaining = true;
        let groups = std::mem::take(&mut self.unchained);
        let store = Arc::clone(&self.store);
        let task = self
            .runtime
            .spawn(async move { link_groups(&store, groups).await });
        ctx.spawn(task.into_actor(self).map(move |linked, writer, ctx| {
            // A panic there loses no entry: unlinked entries are linked at the next start.
            let (numbers, failed) = linked.unwrap_or_default();
            writer.settle(numbers);
            let failed = writer.give_up_unless_writable(failed);
            if failed.is_empty() {
                writer.chaining = false;
                writer.chain_soon(ctx);
                return;
            }
            ctx.run_later(RETRY_DELAY, |writer, ctx| {
                for (tenant, mut group) in failed {
                    // Failed entries go first: the chain keeps the order of the log.
                    group.append(writer.unchained.entry(tenant).or_default());
                    writer.unchained.insert(tenant, group);
                }
                writer.chaining = false;
                writer.chain_next(ctx);
            });
        }));
    }

    /// Those of the groups whose links are worth another try: none once the store takes no writes until the next start,
    /// which links what is in the log.
    fn give_up_unless_writable(&mut self, failed: Groups) -> Groups {
        if self.store.is_writable() {
            return failed;
        }
        let left = failed.into_values().flatten().map(|(number, _)| number);
        self.settle(left);
        Groups::new()
    }

    /// Links entries that are in the log without this process knowing: at the start those an earlier process left,
    /// later those whose database reply was lost.
    fn link_doubtful(&mut self, ctx: &mut Context<Self>) {
        let losses = self.store.losses();
        if losses != self.losses {
            self.losses = losses;
            self.doubtful = DOUBT_ROUNDS;
        }
        if self.doubtful == 0 || self.chaining {
            return;
        }
        self.doubtful -= 1;
        self.chaining = true;
        let leftovers = self.arrive();
        let store = Arc::clone(&self.store);
        let task = self.runtime.spawn(async move { link_unlinked(&store).await });
        ctx.spawn(task.into_actor(self).map(move |result, writer, ctx| {
            if let Ok(Err(error)) = result {
                tracing::error!(?error, "linking earlier audit entries failed; trying again");
                writer.doubtful = writer.doubtful.max(1);
            }
            writer.chaining = false;
            writer.settle([leftovers]);
            writer.chain_next(ctx);
        }));
    }

    fn append(
        &mut self,
        entry: AuditEntry,
        guard: InFlight,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<(), DomainError>> {
        let (done, wait) = oneshot::channel();
        let number = self.arrive();
        self.appends.push(PendingLinks {
            number,
            entry,
            done,
            _guard: guard,
        });
        self.write_next(ctx);
        Box::pin(async move {
            wait.await.unwrap_or(Err(DomainError::Busy {
                actor: "audit_writer",
            }))
        })
    }

    fn arrive(&mut self) -> u64 {
        self.arrived += 1;
        self.open.insert(self.arrived);
        self.arrived
    }

    fn await_link(&mut self, number: u64, entry: AuditEntry) {
        let group = self.unchained.entry(entry.tenant_id).or_default();
        group.push((number, entry));
    }

    /// Marks these entries as linked or abandoned, and wakes callers whose last entry is among them.
    fn settle(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.open.remove(&number);
        }
        let first = self.open.first().copied().unwrap_or(u64::MAX);
        for (_, done) in self.waiting.extract_if(.., |(last, _)| *last < first) {
            done.send(()).ok();
        }
    }

    /// Resolves once everything that has arrived so far is linked.
    fn when_settled(&mut self, ctx: &mut Context<Self>) -> oneshot::Receiver<()> {
        let (done, wait) = oneshot::channel();
        self.waiting.push((self.arrived, done));
        self.settle([]);
        self.chain_next(ctx);
        wait
    }
}

impl Stateful for AuditWriter {
    const NAME: &'static str = "audit_writer";
}

impl Actor for AuditWriter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.doubtful = 1;
        self.link_doubtful(ctx);
        // Not an interval of the context: that would keep the actor, and with it the store, alive.
        let writer = ctx.address().downgrade();
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(DOUBT_INTERVAL).await;
                let Some(writer) = writer.upgrade() else { return };
                writer.do_send(LinkDoubtful);
            }
        });
    }
}

/// Tick that checks for lost database replies.
#[derive(Message)]
#[rtype(result = "()")]
struct LinkDoubtful;

impl Handler<LinkDoubtful> for AuditWriter {
    type Result = ();

    fn handle(&mut self, _: LinkDoubtful, ctx: &mut Self::Context) {
        self.link_doubtful(ctx);
    }
}

/// Links entries; returns the numbers of those that are done, and the groups that failed.
async fn link_groups(store: &Store, groups: Groups) -> (Vec<u64>, Groups) {
    let (mut done, mut failed) = (Vec::new(), Groups::new());
    for (tenant, mut group) in groups {
        while !group.is_empty() {
            let part: Vec<AuditEntry> = group.iter().take(GROUP).map(|(_, entry)| entry.clone()).collect();
            if let Err(error) = store.chain_audit(tenant, &part).await {
                if store.is_writable() {
                    tracing::error!(%tenant, ?error, "linking audit entries failed; trying again");
                }
                failed.insert(tenant, group);
                break;
            }
            done.extend(group.drain(..part.len()).map(|(number, _)| number));
        }
    }
    (done, failed)
}

/// Links the entries that an interrupted process left unlinked.
async fn link_unlinked(store: &Store) -> Result<(), DomainError> {
    for tenant in store.workspace_ids().await? {
        let left = store.link_unlinked(tenant).await?;
        if left.linked > 0 {
            tracing::info!(%tenant, entries = left.linked, "linked audit entries that had no link yet");
        }
    }
    Ok(())
}

impl Handler<Job<Append>> for AuditWriter {
    type Result = ResponseFuture<Result<(), DomainError>>;

    fn handle(&mut self, job: Job<Append>, ctx: &mut Self::Context) -> Self::Result {
        let (Append(entry), guard, _span) = job.open();
        self.append(entry, guard, ctx)
    }
}

impl Handler<Job<AppendStored>> for AuditWriter {
    type Result = ResponseFuture<Result<(), DomainError>>;

    fn handle(&mut self, job: Job<AppendStored>, ctx: &mut Self::Context) -> Self::Result {
        let (AppendStored(entry), guard, _span) = job.open();
        match self.store.health().write_refusal() {
            Some(refusal) => Box::pin(ready(Err(refusal))),
            None => self.append(entry, guard, ctx),
        }
    }
}

impl Handler<Job<Chain>> for AuditWriter {
    type Result = Result<(), DomainError>;

    fn handle(&mut self, job: Job<Chain>, ctx: &mut Self::Context) -> Self::Result {
        let (Chain(entry), _guard, _span) = job.open();
        let number = self.arrive();
        self.await_link(number, entry);
        self.chain_soon(ctx);
        Ok(())
    }
}

impl Handler<Job<ChainAll>> for AuditWriter {
    type Result = Result<(), DomainError>;

    fn handle(&mut self, job: Job<ChainAll>, ctx: &mut Self::Context) -> Self::Result {
        let (ChainAll { entries, .. }, _guard, _span) = job.open();
        for entry in entries {
            let number = self.arrive();
            self.await_link(number, entry);
        }
        self.chain_soon(ctx);
        Ok(())
    }
}

impl Handler<Job<ListEntries>> for AuditWriter {
    type Result = TaskReply<Vec<AuditEntry>>;

    fn handle(&mut self, job: Job<ListEntries>, _: &mut Self::Context) -> Self::Result {
        let (ListEntries { tenant, filter }, guard, span) = job.open();
        let store = Arc::clone(&self.store);
        job::run(&self.runtime, guard, span, async move {
            store.list_audit(tenant, &filter).await
        })
    }
}

impl Handler<Job<VerifyChain>> for AuditWriter {
    type Result = TaskReply<ChainReport>;

    fn handle(&mut self, job: Job<VerifyChain>, ctx: &mut Self::Context) -> Self::Result {
        let (VerifyChain { tenant }, guard, span) = job.open();
        let store = Arc::clone(&self.store);
        let settled = self.when_settled(ctx);
        job::run(&self.runtime, guard, span, async move {
            settled.await.ok();
            store.verify_audit(tenant).await
        })
    }
}

impl Handler<Job<Drain>> for AuditWriter {
    type Result = ResponseFuture<Result<(), DomainError>>;

    fn handle(&mut self, job: Job<Drain>, ctx: &mut Self::Context) -> Self::Result {
        let (Drain, guard, _span) = job.open();
        let settled = self.when_settled(ctx);
        Box::pin(async move {
            let _guard = guard;
            settled.await.map_err(|_| DomainError::Busy {
                actor: "audit_writer",
            })
        })
    }
}

#[cfg(test)]
mod tests;
