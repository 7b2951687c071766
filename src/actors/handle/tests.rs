//! What a handle guarantees, tested with an actor that obeys instructions.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use test_support::{eventually, until};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::*;
use crate::actors::job::{self, TaskReply};
use crate::actors::keeper;
use crate::capacity::Tenant;

/// What the actor is told to do.
#[derive(Debug, Clone)]
enum Task {
    Echo(u32),
    PanicInHandler,
    PanicInWork,
    /// Runs until the semaphore is closed.
    HoldUntilClosed(Arc<Semaphore>),
}

#[derive(Debug)]
struct Look(Task);

impl Request for Look {
    type Reply = u32;
    const NAME: &'static str = "look";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Tenant {
        None
    }
}

#[derive(Debug)]
struct Change(Task);

impl Request for Change {
    type Reply = u32;
    const NAME: &'static str = "change";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        None
    }
}

/// A write on behalf of a workspace.
#[derive(Debug)]
struct ChangeOf(Uuid, Task);

impl Request for ChangeOf {
    type Reply = u32;
    const NAME: &'static str = "change_of";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) -> Tenant {
        Some(self.0)
    }
}

struct Probe {
    runtime: Handle,
}

impl Actor for Probe {
    type Context = Context<Self>;
}

impl Probe {
    fn obey(&self, task: Task, guard: InFlight, span: Span) -> TaskReply<u32> {
        assert!(
            !matches!(task, Task::PanicInHandler),
            "told to panic in the handler"
        );
        job::run(&self.runtime, guard, span, async move {
            match task {
                Task::Echo(n) => Ok(n),
                Task::HoldUntilClosed(gate) => {
                    // Its second reference tells the test that the work has begun.
                    let held = Arc::clone(&gate);
                    held.acquire().await.ok();
                    Ok(0)
                }
                Task::PanicInWork | Task::PanicInHandler => panic!("told to panic in the work"),
            }
        })
    }
}

impl Handler<Job<Look>> for Probe {
    type Result = TaskReply<u32>;

    fn handle(&mut self, job: Job<Look>, _: &mut Self::Context) -> Self::Result {
        let (Look(task), guard, span) = job.open();
        self.obey(task, guard, span)
    }
}

impl Handler<Job<Change>> for Probe {
    type Result = TaskReply<u32>;

    fn handle(&mut self, job: Job<Change>, _: &mut Self::Context) -> Self::Result {
        let (Change(task), guard, span) = job.open();
        self.obey(task, guard, span)
    }
}

impl Handler<Job<ChangeOf>> for Probe {
    type Result = TaskReply<u32>;

    fn handle(&mut self, job: Job<ChangeOf>, _: &mut Self::Context) -> Self::Result {
        let (ChangeOf(_, task), guard, span) = job.open();
        self.obey(task, guard, span)
    }
}

/// One read and one write at a time, one more read may wait.
const NARROW: ActorSettings = ActorSettings {
    mailbox: 1,
    gate: 1,
    write_gate: 1,
    timeout_ms: 10_000,
    write_timeout_ms: 10_000,
};

fn start(settings: ActorSettings) -> ActorHandle<Probe> {
    let (arbiter, runtime) = (actix::Arbiter::current(), Handle::current());
    ActorHandle::start(
        "probe",
        settings,
        Box::new(move || {
            let runtime = runtime.clone();
            Probe::start_in_arbiter(&arbiter, move |_| Probe { runtime })
        }),
    )
}

/// Runs a test as production does: an actix system on a multi-thread runtime.
fn run<F: Future<Output = ()>>(test: F) {
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
    });
    system.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), test)
            .await
            .expect("the test hangs");
    });
}

/// A task that holds its permit until `release`.
fn hold() -> (Task, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    (Task::HoldUntilClosed(Arc::clone(&gate)), gate)
}

fn is_busy(result: &Result<u32, DomainError>) -> bool {
    matches!(result, Err(DomainError::Busy { actor: "probe" }))
}

#[test]
fn a_panic_in_the_handler_costs_one_request_and_revive_brings_the_actor_back() {
    run(async {
        let handle = start(NARROW);
        for round in 0..3 {
            assert_eq!(handle.call(Look(Task::Echo(round))).await.unwrap(), round);
            assert!(!handle.revive(), "a living actor is left alone");
            let result = if round % 2 == 0 {
                handle.call(Look(Task::PanicInHandler)).await
            } else {
                handle.call(Change(Task::PanicInHandler)).await
            };
            assert!(is_busy(&result), "{result:?}");
            until(|| !handle.addr().connected()).await;
            assert!(
                is_busy(&handle.call(Look(Task::Echo(1))).await),
                "a dead actor refuses"
            );
            assert!(handle.revive());
            assert!(!handle.revive());
            // The permits held by the dead actor are free again: both gates let one request through.
            assert_eq!(handle.call(Change(Task::Echo(7))).await.unwrap(), 7);
        }
    });
}

#[test]
fn a_panic_in_the_work_costs_only_its_own_reply() {
    run(async {
        let handle = start(NARROW);
        for _ in 0..3 {
            for result in [
                handle.call(Look(Task::PanicInWork)).await,
                handle.call(Change(Task::PanicInWork)).await,
            ] {
                assert!(matches!(result, Err(DomainError::Internal { .. })), "{result:?}");
            }
            assert!(!handle.revive(), "the actor lives on");
            assert_eq!(handle.call(Change(Task::Echo(2))).await.unwrap(), 2);
        }
    });
}

#[test]
fn a_reply_does_not_wait_for_the_thread_of_the_actor() {
    run(async {
        let handle = start(NARROW);
        let (task, release) = hold();
        let caller = tokio::spawn({
            let handle = handle.clone();
            async move { handle.call(Look(task)).await }
        });
        until(|| Arc::strong_count(&release) == 3).await;
        release.close();
        let (done, wait) = std::sync::mpsc::channel();
        tokio::spawn(async move { done.send(caller.await) });
        // This is the actor's thread, which polls nothing until the reply has arrived.
        let reply = wait.recv_timeout(Duration::from_secs(10));
        assert_eq!(reply.unwrap().unwrap().unwrap(), 0);
    });
}

#[test]
fn a_full_write_gate_refuses_at_once_and_reads_go_on() {
    run(async {
        let handle = start(NARROW);
        let (task, release) = hold();
        let holder = tokio::spawn({
            let handle = handle.clone();
            async move { handle.call(Change(task)).await }
        });
        until(|| handle.inner.writes.permits.free() == 0).await;
        let since = Instant::now();
        assert!(is_busy(&handle.call(Change(Task::Echo(1))).await));
        assert!(since.elapsed() < Duration::from_secs(10));
        assert_eq!(handle.call(Look(Task::Echo(2))).await.unwrap(), 2);
        release.close();
        assert_eq!(holder.await.unwrap().unwrap(), 0);
        assert_eq!(handle.call(Change(Task::Echo(3))).await.unwrap(), 3);
    });
}

#[test]
fn reads_wait_their_turn_and_the_line_is_bounded() {
    run(async {
        let handle = start(ActorSettings { mailbox: 3, ..NARROW });
        let (task, release) = hold();
        let call = |task: Task| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.call(Look(task)).await })
        };
        let holder = call(task);
        until(|| handle.inner.reads.permits.free() == 0).await;
        let waiting: Vec<_> = (1..=3).map(|n| call(Task::Echo(n))).collect();
        until(|| handle.inner.reads.permits.waiting() == 3).await;
        assert!(
            is_busy(&handle.call(Look(Task::Echo(9))).await),
            "the line is full"
        );
        assert_eq!(
            handle.call(Change(Task::Echo(4))).await.unwrap(),
            4,
            "writes have a gate of their own"
        );
        release.close();
        holder.await.unwrap().unwrap();
        for (n, waiting) in (1..).zip(waiting) {
            assert_eq!(waiting.await.unwrap().unwrap(), n);
        }
        assert_eq!(handle.inner.reads.permits.waiting(), 0);
    });
}

#[test]
fn a_caller_that_goes_away_gives_its_place_and_its_permit_back() {
    run(async {
        let handle = start(NARROW);
        let (task, release) = hold();
        let call = |task: Task| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.call(Look(task)).await })
        };
        let holder = call(task);
        until(|| handle.inner.reads.permits.free() == 0).await;
        let waiting = call(Task::Echo(1));
        until(|| handle.inner.reads.permits.waiting() == 1).await;
        waiting.abort();
        until(|| handle.inner.reads.permits.waiting() == 0).await;
        // The work continues without its caller and keeps its permit until it ends.
        holder.abort();
        assert!(holder.await.unwrap_err().is_cancelled());
        assert_eq!(handle.inner.reads.permits.free(), 0);
        release.close();
        until(|| handle.inner.reads.permits.free() == 1).await;
        assert_eq!(handle.call(Look(Task::Echo(5))).await.unwrap(), 5);
    });
}

#[test]
fn what_takes_too_long_is_a_timeout_and_its_permit_comes_back_when_the_work_ends() {
    run(async {
        let handle = start(ActorSettings {
            timeout_ms: 20,
            write_timeout_ms: 20,
            ..NARROW
        });
        let (task, release) = hold();
        for result in [
            handle.call(Look(task.clone())).await,
            handle.call(Change(task)).await,
            // This request spends its time in the queue.
            handle.call(Look(Task::Echo(1))).await,
        ] {
            assert!(
                matches!(result, Err(DomainError::Timeout { actor: "probe" })),
                "{result:?}"
            );
        }
        assert_eq!(handle.inner.reads.permits.waiting(), 0);
        assert!(
            is_busy(&handle.call(Change(Task::Echo(1))).await),
            "the work still holds the gate"
        );
        release.close();
        until(|| handle.inner.reads.permits.free() == 1 && handle.inner.writes.permits.free() == 1).await;
        assert_eq!(handle.call(Change(Task::Echo(6))).await.unwrap(), 6);
    });
}

#[test]
fn the_keeper_revives_a_dead_actor_and_gives_up_on_one_that_dies_too_often() {
    run(async {
        let handle = start(NARROW);
        let given_up = Arc::new(AtomicU32::new(0));
        let gave = Arc::clone(&given_up);
        let keeper = tokio::spawn(keeper::watch(vec![Arc::new(handle.clone())], 2, move |name| {
            assert_eq!(name, "probe");
            gave.fetch_add(1, Ordering::AcqRel);
        }));
        for death in 1..=3u32 {
            assert_eq!(given_up.load(Ordering::Acquire), 0, "before death {death}");
            assert!(is_busy(&handle.call(Look(Task::PanicInHandler)).await));
            eventually(|| handle.call(Look(Task::Echo(death)))).await;
        }
        until(|| given_up.load(Ordering::Acquire) == 1).await;
        keeper.abort();
    });
}

#[test]
fn a_crowd_of_callers_is_answered_or_refused_and_leaves_every_permit_free() {
    run(async {
        let handle = start(ActorSettings {
            mailbox: 20,
            gate: 4,
            write_gate: 4,
            ..NARROW
        });
        let calls = (0..200u32).map(|n| {
            let handle = handle.clone();
            async move {
                let task = if n % 7 == 0 {
                    Task::PanicInWork
                } else {
                    Task::Echo(n)
                };
                let result = if n % 2 == 0 {
                    handle.call(Look(task)).await
                } else {
                    handle.call(Change(task)).await
                };
                match result {
                    Ok(answer) => assert_eq!(answer, n),
                    Err(error) => assert!(
                        matches!(error, DomainError::Busy { .. } | DomainError::Internal { .. }),
                        "{error}"
                    ),
                }
            }
        });
        join_all(calls.map(tokio::spawn))
            .await
            .into_iter()
            .for_each(|call| call.unwrap());
        until(|| handle.inner.reads.permits.free() == 4 && handle.inner.writes.permits.free() == 4).await;
        assert_eq!(handle.inner.reads.permits.waiting(), 0);
    });
}

#[test]
fn a_workspace_that_fills_its_part_of_the_write_gate_is_refused_and_another_one_is_not() {
    run(async {
        let handle = start(ActorSettings {
            write_gate: 4,
            ..NARROW
        });
        let (loud, quiet) = (Uuid::new_v4(), Uuid::new_v4());
        let (task, release) = hold();
        let held: Vec<_> = (0..3)
            .map(|_| {
                let (handle, task) = (handle.clone(), task.clone());
                tokio::spawn(async move { handle.call(ChangeOf(loud, task)).await })
            })
            .collect();
        until(|| handle.inner.writes.permits.free() == 1).await;
        assert!(is_busy(&handle.call(ChangeOf(loud, Task::Echo(1))).await));
        for n in 0..5 {
            assert_eq!(handle.call(ChangeOf(quiet, Task::Echo(n))).await.unwrap(), n);
        }
        release.close();
        for call in held {
            call.await.unwrap().unwrap();
        }
        assert_eq!(handle.call(ChangeOf(loud, Task::Echo(2))).await.unwrap(), 2);
    });
}

#[test]
fn a_write_waits_for_its_share_while_others_hold_it_and_then_is_refused() {
    run(async {
        let handle = start(ActorSettings {
            write_gate: 1,
            timeout_ms: 300,
            ..NARROW
        });
        let (loud, quiet) = (Uuid::new_v4(), Uuid::new_v4());
        let (task, release) = hold();
        let holder = {
            let handle = handle.clone();
            tokio::spawn(async move { handle.call(ChangeOf(loud, task)).await })
        };
        until(|| handle.inner.writes.permits.free() == 0).await;
        assert!(is_busy(&handle.call(ChangeOf(quiet, Task::Echo(1))).await));
        let waits = {
            let handle = handle.clone();
            tokio::spawn(async move { handle.call(ChangeOf(quiet, Task::Echo(2))).await })
        };
        until(|| handle.inner.writes.permits.waiting() == 1).await;
        release.close();
        assert_eq!(waits.await.unwrap().unwrap(), 2);
        holder.await.unwrap().unwrap();
    });
}

#[test]
fn the_load_of_a_request_is_given_back_when_its_work_ends_also_without_its_caller() {
    run(async {
        let handle = start(NARROW);
        let budget = crate::capacity::Budget::new(100, 100);
        let (task, release) = hold();
        let mut load = budget.load(None);
        load.grow(70).unwrap();
        let caller = {
            let handle = handle.clone();
            tokio::spawn(async move { handle.call_with(Change(task), load).await })
        };
        until(|| Arc::strong_count(&release) == 3).await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(budget.used_bytes(), 70, "the work goes on");
        release.close();
        until(|| budget.used_bytes() == 0).await;
        // A refused request releases its load too.
        let (task, release) = hold();
        let holder = {
            let handle = handle.clone();
            tokio::spawn(async move { handle.call(Change(task)).await })
        };
        until(|| handle.inner.writes.permits.free() == 0).await;
        let mut load = budget.load(None);
        load.grow(70).unwrap();
        assert!(is_busy(&handle.call_with(Change(Task::Echo(1)), load).await));
        assert_eq!(budget.used_bytes(), 0);
        release.close();
        holder.await.unwrap().unwrap();
    });
}
