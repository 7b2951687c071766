//! Readers and writers at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::process::Memory;
use crate::spread::Spread;
use crate::{Fallible, NOTES, SINGLE, WRITERS};

/// Pause between two queries of a reader, and before a refused writer retries.
const PAUSE: Duration = Duration::from_millis(50);
/// How long many readers are measured.
const LENGTH: Duration = Duration::from_secs(5);

/// Readers that query continuously, with a pause between queries, until they are stopped.
struct Readers {
    done: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Fallible<Vec<Duration>>>>,
}

impl Readers {
    fn start(service: &Arc<Memory>, count: usize) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let tasks = (0..count)
            .map(|mut number| {
                let (service, done) = (Arc::clone(service), Arc::clone(&done));
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        service.recall(number).await?;
                        times.push(begun.elapsed());
                        number += 1;
                        tokio::time::sleep(PAUSE).await;
                    }
                    Ok(times)
                })
            })
            .collect();
        Self { done, tasks }
    }

    /// Stops the readers and returns their latencies.
    async fn stop(self) -> Fallible<Spread> {
        self.done.store(true, Ordering::Relaxed);
        let mut waited = Vec::new();
        for task in self.tasks {
            waited.extend(task.await??);
        }
        Ok(Spread::of(waited))
    }
}

/// Stores notes until there are `NOTES`, while two readers query; returns the total time and the readers' latencies.
pub async fn load(service: &Arc<Memory>) -> Fallible<(Duration, Spread)> {
    let readers = Readers::start(service, 2);
    let begun = Instant::now();
    let each = (NOTES - SINGLE) / WRITERS;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let service = Arc::clone(service);
            tokio::spawn(async move {
                for number in 0..each {
                    service.remember(SINGLE + writer * each + number).await?;
                }
                Fallible::Ok(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    Ok((begun.elapsed(), readers.stop().await?))
}

/// Latencies of many readers, and what the writers beside them achieved.
pub struct Contention {
    pub alone: Spread,
    pub beside: Spread,
    pub written: usize,
    /// Writes answered with 429.
    pub refused: usize,
}

/// Many readers, alone and alongside as many writers of which two may write at a time.
pub async fn contention(service: &Arc<Memory>) -> Fallible<Contention> {
    let readers = Readers::start(service, WRITERS);
    tokio::time::sleep(LENGTH).await;
    let alone = readers.stop().await?;
    let (readers, end) = (Readers::start(service, WRITERS), Instant::now() + LENGTH);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(insist(Arc::clone(service), 2 * NOTES + writer * NOTES, end)))
        .collect();
    let (mut written, mut refused) = (0, 0);
    for writer in writers {
        let (more, again) = writer.await??;
        written += more;
        refused += again;
    }
    Ok(Contention {
        alone,
        beside: readers.stop().await?,
        written,
        refused,
    })
}

/// Writes notes until `end` and waits a moment after each refusal; returns the notes written and the refusals.
async fn insist(service: Arc<Memory>, first: usize, end: Instant) -> Fallible<(usize, usize)> {
    let (mut written, mut refused) = (0, 0);
    while Instant::now() < end {
        if service.try_remember(first + written).await? {
            written += 1;
        } else {
            refused += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok((written, refused))
}
