//! Bytes of request bodies in flight.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::gauge;
use parking_lot::Mutex;

use super::{Share, Tenant};
use crate::domain::error::DomainError;

/// Fraction of the budget (1 in 64) up to which a tenant is never refused because of what others hold.
const LITTLE: usize = 64;

/// Limits the bytes of request bodies in flight in the process.
///
/// A workspace gets at most the part set at creation. Once half of all bytes are in use it gets no more than its fair
/// share. The first 64th of the budget is granted whatever the others hold.
#[derive(Debug, Clone)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    total: usize,
    most: usize,
    held: Mutex<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    all: usize,
    by: HashMap<Tenant, usize>,
}

/// The bytes of one body, and its large-body permit if it holds one. Released when dropped, so it must live as long as
/// whatever was made from the body.
#[derive(Debug)]
pub struct Load {
    inner: Arc<Inner>,
    tenant: Tenant,
    bytes: usize,
    place: Option<Share>,
}

impl Budget {
    /// A budget of `total` bytes, of which one tenant gets at most `most`.
    pub fn new(total: usize, most: usize) -> Self {
        gauge!("body_bytes_in_flight").set(0.0);
        Self {
            inner: Arc::new(Inner {
                total,
                most,
                held: Mutex::default(),
            }),
        }
    }

    /// The load of a body of which nothing has been read yet.
    pub fn load(&self, tenant: Tenant) -> Load {
        Load {
            inner: Arc::clone(&self.inner),
            tenant,
            bytes: 0,
            place: None,
        }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.inner.held.lock().all
    }
}

impl Load {
    /// Counts more bytes of the body.
    ///
    /// # Errors
    /// `Busy` when the budget or the tenant's part of it is exhausted; nothing is counted then.
    pub fn grow(&mut self, bytes: usize) -> Result<(), DomainError> {
        let (total, most) = (self.inner.total, self.inner.most);
        let mut held = self.inner.held.lock();
        let own = held.by.get(&self.tenant).copied().unwrap_or(0) + bytes;
        let all = held.all + bytes;
        let present = held.by.len() + usize::from(!held.by.contains_key(&self.tenant));
        let fits = own <= most && all <= total && (all <= total / 2 || own <= total / present);
        if !fits && own > (total / LITTLE).min(most) {
            return Err(DomainError::Busy { actor: "body reader" });
        }
        held.all = all;
        held.by.insert(self.tenant, own);
        self.bytes += bytes;
        gauge!("body_bytes_in_flight").set(all as f64);
        Ok(())
    }

    /// Bytes of the body counted so far; all of it once it has been read.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds a large-body permit for as long as the bytes.
    pub fn keep(&mut self, place: Share) {
        self.place = Some(place);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let mut held = self.inner.held.lock();
        held.all -= self.bytes;
        if let Some(own) = held.by.get_mut(&self.tenant) {
            *own -= self.bytes;
            if *own == 0 {
                held.by.remove(&self.tenant);
            }
        }
        gauge!("body_bytes_in_flight").set(held.all as f64);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn tenant() -> Tenant {
        Some(Uuid::new_v4())
    }

    #[test]
    fn a_party_gets_at_most_its_part_and_gives_it_back_with_its_load() {
        let budget = Budget::new(1000, 500);
        let mut one = budget.load(tenant());
        one.grow(500).unwrap();
        assert!(matches!(one.grow(1), Err(DomainError::Busy { .. })));
        assert_eq!(budget.used_bytes(), 500, "a refused byte is not counted");
        let mut same = budget.load(one.tenant);
        assert!(same.grow(400).is_err(), "all loads of a tenant count together");
        drop(one);
        same.grow(500).unwrap();
        drop(same);
        assert_eq!(budget.used_bytes(), 0);
        assert!(
            budget.inner.held.lock().by.is_empty(),
            "nobody is remembered for ever"
        );
    }

    #[test]
    fn once_half_is_in_use_nobody_gets_more_than_the_fair_share() {
        let budget = Budget::new(1200, 600);
        let (mut loud, mut second, mut third) = (
            budget.load(tenant()),
            budget.load(tenant()),
            budget.load(tenant()),
        );
        loud.grow(600).unwrap();
        second.grow(100).unwrap();
        third.grow(100).unwrap();
        second.grow(300).unwrap();
        assert!(second.grow(1).is_err(), "a third of 1200 is 400");
        third.grow(100).unwrap();
        drop(loud);
        second.grow(200).unwrap();
    }

    #[test]
    fn a_little_is_there_for_everybody_whatever_the_others_hold() {
        let budget = Budget::new(6400, 3200);
        let mut loud = [budget.load(tenant()), budget.load(tenant())];
        for load in &mut loud {
            load.grow(3200).unwrap();
        }
        let mut quiet = budget.load(tenant());
        quiet.grow(100).unwrap();
        assert!(quiet.grow(1).is_err());
    }

    #[test]
    fn a_load_of_nothing_needs_no_budget() {
        let budget = Budget::new(10, 10);
        let mut load = budget.load(None);
        load.grow(0).unwrap();
        drop(load);
        assert_eq!(budget.used_bytes(), 0);
    }
}
