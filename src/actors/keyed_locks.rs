//! Turns at things that are worked on one after the other, such as the rows of one batch.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

/// One queue per id that is being worked on. Whoever waited longest is next.
#[derive(Debug, Default)]
pub struct KeyedLocks(parking_lot::Mutex<HashMap<Uuid, Weak<Mutex<()>>>>);

impl KeyedLocks {
    /// Waits for the turn at `id`; it ends when the guard is dropped.
    pub async fn take(&self, id: Uuid) -> OwnedMutexGuard<()> {
        self.queue(id).lock_owned().await
    }

    fn queue(&self, id: Uuid) -> Arc<Mutex<()>> {
        let mut queues = self.0.lock();
        queues.retain(|_, queue| queue.strong_count() > 0);
        if let Some(queue) = queues.get(&id).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(Mutex::new(()));
        queues.insert(id, Arc::downgrade(&queue));
        queue
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_at_a_time_for_each_id() {
        let (turns, one, other) = (KeyedLocks::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        let first = turns.take(one).await;
        let mut second = Box::pin(turns.take(one));
        assert!(second.as_mut().now_or_never().is_none());
        let elsewhere = turns.take(other).await;
        drop(first);
        let second = second.await;
        assert!(turns.take(one).now_or_never().is_none());
        drop((second, elsewhere));
        turns.take(one).await;
        assert_eq!(turns.0.lock().len(), 1, "ids that nobody works on are forgotten");
    }
}
