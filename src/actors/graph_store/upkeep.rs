//! Background tasks of the graph: following the writes of other processes, filling in vectors, and closing idle index
//! writers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::core::GraphCore;
use crate::actors::worker::{ActorCore, every};

/// Polling interval for the writes of other processes, where the database is shared.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

impl ActorCore for GraphCore {
    const NAME: &'static str = "graph_store";

    fn upkeep(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let (warm, following, filling, closing) = (
            Arc::clone(self),
            Arc::clone(self),
            Arc::clone(self),
            Arc::clone(self),
        );
        let (fill, idle) = (self.surroundings.fill_interval, self.surroundings.idle_writer);
        vec![
            Box::pin(async move { warm.warm_up().await }),
            every(FOLLOW_INTERVAL, move || {
                let core = Arc::clone(&following);
                async move {
                    core.follow().await;
                    core.keep_up_indexes(FOLLOW_INTERVAL).await;
                }
            }),
            every(fill, move || {
                let core = Arc::clone(&filling);
                async move { core.fill_vectors().await }
            }),
            every(idle, move || {
                let core = Arc::clone(&closing);
                async move { core.close_idle_indexes(idle).await }
            }),
        ]
    }
}
