//! Permits shared among workspaces.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Tenant;

/// Permits for work, with a queue of waiting tasks.
///
/// A single workspace may hold all permits but the reserve, so that another one gets a permit at once. While others are
/// present (working or waiting) it may hold its fair share, at least one permit; permits beyond that it keeps until
/// their work ends. A released permit goes to the waiting workspace that holds the fewest. The queue is shared in the
/// same way. Work of no workspace may take every permit.
#[derive(Debug, Clone)]
pub struct Shares {
    state: Arc<Mutex<State>>,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub struct Share {
    /// `None` once it has been released by other means.
    state: Option<Arc<Mutex<State>>>,
    tenant: Tenant,
}

/// What a tenant has of the permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantShare {
    pub tenant: Tenant,
    pub held: usize,
    /// Tasks that wait for a permit.
    pub waiting: usize,
}

#[derive(Debug)]
struct State {
    capacity: usize,
    reserve: usize,
    line: usize,
    free: usize,
    waiting: usize,
    arrived: u64,
    /// Parties that hold or wait for a permit.
    present: HashMap<Tenant, Presence>,
}

#[derive(Debug, Default)]
struct Presence {
    held: usize,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    hand: oneshot::Sender<Share>,
}

impl Shares {
    /// `capacity` permits, of which a single workspace leaves `reserve` to others; at most `line` tasks may wait.
    pub fn new(capacity: usize, reserve: usize, line: usize) -> Self {
        let state = State {
            capacity,
            reserve,
            line,
            free: capacity,
            waiting: 0,
            arrived: 0,
            present: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Takes a permit, waiting if necessary; `None` when the queue is full.
    pub async fn take(&self, tenant: Tenant) -> Option<Share> {
        let (number, handed) = {
            let mut state = self.state.lock();
            if let Some(share) = state.try_take(tenant, &self.state) {
                return Some(share);
            }
            state.queue(tenant)?
        };
        // A cancelled waiter leaves the queue.
        let _place = QueuedWaiter {
            state: &self.state,
            tenant,
            number,
        };
        handed.await.ok()
    }

    /// Takes a permit. Waits only while others hold part of this workspace's share; `None` if it already has its full
    /// share.
    pub async fn take_own(&self, tenant: Tenant) -> Option<Share> {
        {
            let mut state = self.state.lock();
            if let Some(share) = state.try_take(tenant, &self.state) {
                return Some(share);
            }
            if state.claims_of(tenant) >= state.most(tenant) {
                return None;
            }
        }
        self.take(tenant).await
    }

    /// Number of permits in use.
    pub fn held(&self) -> usize {
        let state = self.state.lock();
        state.capacity - state.free
    }

    /// Who holds permits or waits for one, those with the most first.
    pub fn shares(&self) -> Vec<TenantShare> {
        let state = self.state.lock();
        let shares = state.present.iter().map(|(tenant, presence)| TenantShare {
            tenant: *tenant,
            held: presence.held,
            waiting: presence.waiting.len(),
        });
        let mut shares: Vec<TenantShare> = shares.collect();
        shares.sort_by_key(|share| (std::cmp::Reverse(share.held + share.waiting), share.tenant));
        shares
    }

    /// Number of free permits.
    pub fn free(&self) -> usize {
        self.state.lock().free
    }

    /// Number of waiting tasks.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting
    }
}

impl State {
    /// Number of workspaces present, including this one.
    fn workspaces(&self, tenant: Tenant) -> usize {
        let others = self
            .present
            .keys()
            .filter(|other| other.is_some() && **other != tenant);
        others.count() + usize::from(tenant.is_some())
    }

    /// Most permits that a tenant may hold.
    fn most(&self, tenant: Tenant) -> usize {
        share(tenant, self.workspaces(tenant), self.capacity, self.reserve)
    }

    /// Permits that a tenant holds or waits for.
    fn claims_of(&self, tenant: Tenant) -> usize {
        let presence = self.present.get(&tenant);
        presence.map_or(0, |presence| presence.held + presence.waiting.len())
    }

    fn try_take(&mut self, tenant: Tenant, own: &Arc<Mutex<State>>) -> Option<Share> {
        let held = self.present.get(&tenant).map_or(0, |presence| presence.held);
        (self.free > 0 && held < self.most(tenant)).then(|| self.grant(tenant, own))
    }

    fn grant(&mut self, tenant: Tenant, own: &Arc<Mutex<State>>) -> Share {
        self.free -= 1;
        self.present.entry(tenant).or_default().held += 1;
        Share {
            state: Some(Arc::clone(own)),
            tenant,
        }
    }

    /// Adds a waiter to the queue, if there is room.
    fn queue(&mut self, tenant: Tenant) -> Option<(u64, oneshot::Receiver<Share>)> {
        let own = self
            .present
            .get(&tenant)
            .map_or(0, |presence| presence.waiting.len());
        if own >= share(tenant, self.workspaces(tenant), self.line, 1) {
            return None;
        }
        if self.waiting >= self.line {
            self.send_away_longest(own)?;
        }
        let (hand, handed) = oneshot::channel();
        self.arrived += 1;
        self.waiting += 1;
        let number = self.arrived;
        let presence = self.present.entry(tenant).or_default();
        presence.waiting.push_back(Waiter { number, hand });
        Some((number, handed))
    }

    /// Makes room in a full queue: removes the last waiter of the tenant with the most waiters, if it has at least two
    /// more than `own`.
    fn send_away_longest(&mut self, own: usize) -> Option<()> {
        let lines = self.present.values_mut().map(|presence| &mut presence.waiting);
        let longest = lines.max_by_key(|line| line.len())?;
        if longest.len() <= own + 1 {
            return None;
        }
        longest.pop_back()?;
        self.waiting -= 1;
        Some(())
    }

    /// Hands free permits to waiters that are entitled to one.
    fn hand_on(&mut self, own: &Arc<Mutex<State>>) {
        while self.free > 0 {
            let workspaces = self.workspaces(None);
            let candidates = self.present.iter().filter_map(|(tenant, presence)| {
                let first = presence.waiting.front()?;
                let most = share(*tenant, workspaces, self.capacity, self.reserve);
                (presence.held < most).then_some((presence.held, first.number, *tenant))
            });
            let Some((.., tenant)) = candidates.min_by_key(|(held, number, _)| (*held, *number)) else {
                return;
            };
            let next = self
                .present
                .get_mut(&tenant)
                .and_then(|presence| presence.waiting.pop_front());
            let Some(Waiter { hand, .. }) = next else { return };
            self.waiting -= 1;
            let share = self.grant(tenant, own);
            if let Err(mut unwanted) = hand.send(share) {
                // The waiter is gone. Dropping its permit would try to take the lock that is held here.
                unwanted.state = None;
                self.give_back(tenant);
            }
        }
    }

    fn give_back(&mut self, tenant: Tenant) {
        self.free += 1;
        if let Some(presence) = self.present.get_mut(&tenant) {
            presence.held -= 1;
        }
        self.forget_if_gone(tenant);
    }

    fn forget_if_gone(&mut self, tenant: Tenant) {
        let gone = |presence: &Presence| presence.held == 0 && presence.waiting.is_empty();
        if self.present.get(&tenant).is_some_and(gone) {
            self.present.remove(&tenant);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(own) = self.state.take() else { return };
        let mut state = own.lock();
        state.give_back(self.tenant);
        state.hand_on(&own);
    }
}

/// A waiter's position in the queue.
struct QueuedWaiter<'a> {
    state: &'a Arc<Mutex<State>>,
    tenant: Tenant,
    number: u64,
}

impl Drop for QueuedWaiter<'_> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let Some(presence) = state.present.get_mut(&self.tenant) else {
            return;
        };
        let before = presence.waiting.len();
        presence.waiting.retain(|waiter| waiter.number != self.number);
        let left = before - presence.waiting.len();
        state.waiting -= left;
        state.forget_if_gone(self.tenant);
        if left > 0 {
            // With one workspace fewer, the shares of the others grow.
            state.hand_on(self.state);
        }
    }
}

/// The share of a tenant in `all` when this many workspaces are present.
fn share(tenant: Tenant, workspaces: usize, all: usize, reserve: usize) -> usize {
    let share = match (tenant, workspaces) {
        (None, _) => all,
        (Some(_), 0 | 1) => all.saturating_sub(reserve),
        (Some(_), present) => all / present,
    };
    share.max(1).min(all)
}

#[cfg(test)]
mod tests;
