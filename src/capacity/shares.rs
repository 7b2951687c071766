//! Places shared out among workspaces.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Party;

/// Places for work, and a line of those that wait for one.
///
/// A workspace alone may take all places but the reserve, so that the next one finds a place at once. With others
/// present (at work or waiting) it gets its fair share, at least one place; what it holds beyond that it keeps until
/// its work ends. A place that comes free goes to the waiting workspace that holds the fewest. The line is shared
/// out likewise. Work of no workspace may take every place.
#[derive(Debug, Clone)]
pub struct Shares {
    state: Arc<Mutex<State>>,
}

/// A place; given back when dropped.
#[derive(Debug)]
pub struct Share {
    /// `None` once it was taken back otherwise.
    state: Option<Arc<Mutex<State>>>,
    party: Party,
}

#[derive(Debug)]
struct State {
    capacity: usize,
    reserve: usize,
    line: usize,
    free: usize,
    waiting: usize,
    arrived: u64,
    /// Those that hold a place or wait for one.
    present: HashMap<Party, Presence>,
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
    /// `capacity` places, of which a workspace alone leaves `reserve` to others; `line` may wait.
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

    /// Takes a place, waiting for it if need be; `None` when the line is full.
    pub async fn take(&self, party: Party) -> Option<Share> {
        let (number, handed) = {
            let mut state = lock(&self.state);
            if let Some(share) = state.try_take(party, &self.state) {
                return Some(share);
            }
            state.queue(party)?
        };
        // Whoever goes away leaves the line.
        let _place = InLine {
            state: &self.state,
            party,
            number,
        };
        handed.await.ok()
    }

    /// Takes a place; waits for it only while others hold what is this workspace's share, `None` when it has its
    /// share already.
    pub async fn take_own(&self, party: Party) -> Option<Share> {
        {
            let mut state = lock(&self.state);
            if let Some(share) = state.try_take(party, &self.state) {
                return Some(share);
            }
            if state.claimed(party) >= state.most(party) {
                return None;
            }
        }
        self.take(party).await
    }

    /// Places that nobody holds.
    pub fn free(&self) -> usize {
        lock(&self.state).free
    }

    /// How many wait for a place.
    pub fn waiting(&self) -> usize {
        lock(&self.state).waiting
    }
}

impl State {
    /// The workspaces present, with this one.
    fn workspaces(&self, party: Party) -> usize {
        let others = self
            .present
            .keys()
            .filter(|other| other.is_some() && **other != party);
        others.count() + usize::from(party.is_some())
    }

    /// Most places that a party may hold.
    fn most(&self, party: Party) -> usize {
        share(party, self.workspaces(party), self.capacity, self.reserve)
    }

    /// Places that a party holds or waits for.
    fn claimed(&self, party: Party) -> usize {
        let presence = self.present.get(&party);
        presence.map_or(0, |presence| presence.held + presence.waiting.len())
    }

    fn try_take(&mut self, party: Party, own: &Arc<Mutex<State>>) -> Option<Share> {
        let held = self.present.get(&party).map_or(0, |presence| presence.held);
        (self.free > 0 && held < self.most(party)).then(|| self.grant(party, own))
    }

    fn grant(&mut self, party: Party, own: &Arc<Mutex<State>>) -> Share {
        self.free -= 1;
        self.present.entry(party).or_default().held += 1;
        Share {
            state: Some(Arc::clone(own)),
            party,
        }
    }

    /// A place in the line, if there is one.
    fn queue(&mut self, party: Party) -> Option<(u64, oneshot::Receiver<Share>)> {
        let own = self
            .present
            .get(&party)
            .map_or(0, |presence| presence.waiting.len());
        if own >= share(party, self.workspaces(party), self.line, 1) {
            return None;
        }
        if self.waiting >= self.line {
            self.send_away_longest(own)?;
        }
        let (hand, handed) = oneshot::channel();
        self.arrived += 1;
        self.waiting += 1;
        let number = self.arrived;
        let presence = self.present.entry(party).or_default();
        presence.waiting.push_back(Waiter { number, hand });
        Some((number, handed))
    }

    /// Makes room in a full line: the last one of the party with the longest line goes, if that is longer than `own`.
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

    /// Hands free places to those who wait and may have one.
    fn hand_on(&mut self, own: &Arc<Mutex<State>>) {
        while self.free > 0 {
            let workspaces = self.workspaces(None);
            let candidates = self.present.iter().filter_map(|(party, presence)| {
                let first = presence.waiting.front()?;
                let most = share(*party, workspaces, self.capacity, self.reserve);
                (presence.held < most).then_some((presence.held, first.number, *party))
            });
            let Some((.., party)) = candidates.min_by_key(|(held, number, _)| (*held, *number)) else {
                return;
            };
            let next = self
                .present
                .get_mut(&party)
                .and_then(|presence| presence.waiting.pop_front());
            let Some(Waiter { hand, .. }) = next else { return };
            self.waiting -= 1;
            let share = self.grant(party, own);
            if let Err(mut unwanted) = hand.send(share) {
                // Whoever waited has gone away. Dropped as it is, the place would ask for the lock that is held here.
                unwanted.state = None;
                self.give_back(party);
            }
        }
    }

    fn give_back(&mut self, party: Party) {
        self.free += 1;
        if let Some(presence) = self.present.get_mut(&party) {
            presence.held -= 1;
        }
        self.forget_if_gone(party);
    }

    fn forget_if_gone(&mut self, party: Party) {
        let gone = |presence: &Presence| presence.held == 0 && presence.waiting.is_empty();
        if self.present.get(&party).is_some_and(gone) {
            self.present.remove(&party);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(own) = self.state.take() else { return };
        let mut state = lock(&own);
        state.give_back(self.party);
        state.hand_on(&own);
    }
}

/// A place in the line.
struct InLine<'a> {
    state: &'a Arc<Mutex<State>>,
    party: Party,
    number: u64,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        let Some(presence) = state.present.get_mut(&self.party) else {
            return;
        };
        let before = presence.waiting.len();
        presence.waiting.retain(|waiter| waiter.number != self.number);
        let left = before - presence.waiting.len();
        state.waiting -= left;
        state.forget_if_gone(self.party);
        if left > 0 {
            // With one workspace fewer the others' shares are larger.
            state.hand_on(self.state);
        }
    }
}

/// The share of a party in `all` when so many workspaces are present.
fn share(party: Party, workspaces: usize, all: usize, reserve: usize) -> usize {
    let share = match (party, workspaces) {
        (None, _) => all,
        (Some(_), 0 | 1) => all.saturating_sub(reserve),
        (Some(_), present) => all / present,
    };
    share.max(1).min(all)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
