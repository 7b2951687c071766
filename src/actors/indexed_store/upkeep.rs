//! Background tasks of a store with an index: following the writes of other processes, filling in vectors, and closing
//! idle index writers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{IndexedStore, Source};
use crate::actors::worker::every;

/// Polling interval for the writes of other processes, where the database is shared.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// The tasks of the store that `of` finds in an actor's core.
pub(in crate::actors) fn upkeep<C: Send + Sync + 'static, S: Source>(
    core: &Arc<C>,
    of: fn(&C) -> &IndexedStore<S>,
) -> Vec<BoxFuture<'static, ()>> {
    let environment = of(core).environment;
    let (following, filling, closing) = (Arc::clone(core), Arc::clone(core), Arc::clone(core));
    let idle = environment.idle_writer;
    vec![
        every(FOLLOW_INTERVAL, move || {
            let core = Arc::clone(&following);
            async move {
                of(&core).follow().await;
                of(&core).keep_up_indexes(FOLLOW_INTERVAL).await;
            }
        }),
        every(environment.fill_interval, move || {
            let core = Arc::clone(&filling);
            async move { of(&core).fill_vectors().await }
        }),
        every(idle, move || {
            let core = Arc::clone(&closing);
            async move { of(&core).close_idle_indexes(idle).await }
        }),
    ]
}
