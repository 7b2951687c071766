//! Supervises the actors: restarts one that died, and gives up when one dies too often.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::handle::Restartable;

const INTERVAL: Duration = Duration::from_millis(50);
const WINDOW: Duration = Duration::from_secs(60);

/// Supervises until dropped; calls `give_up` when one actor dies more than `most` times a minute.
pub async fn watch(kept: Vec<Arc<dyn Restartable>>, most: u32, give_up: impl Fn(&'static str)) {
    let mut deaths: HashMap<&'static str, Vec<Instant>> = HashMap::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        for actor in &kept {
            if !actor.revive() {
                continue;
            }
            let name = actor.name();
            tracing::error!(actor = name, "actor died and was started again");
            let times = deaths.entry(name).or_default();
            times.push(Instant::now());
            times.retain(|time| time.elapsed() < WINDOW);
            if times.len() > most as usize {
                give_up(name);
            }
        }
    }
}
