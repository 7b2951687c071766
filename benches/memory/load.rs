//! Readers and writers at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::process::Memory;
use crate::{Fallible, NOTES, SINGLE, WRITERS, line, spread};

/// Pause between two queries of a reader, and before a refused writer retries.
const PAUSE: Duration = Duration::from_millis(50);

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
    async fn stop(self) -> Fallible<Vec<Duration>> {
        self.done.store(true, Ordering::Relaxed);
        let mut waited = Vec::new();
        for task in self.tasks {
            waited.extend(task.await??);
        }
        Ok(waited)
    }
}

/// Stores notes until there are `NOTES`, while two readers query; returns the total time and the readers' latencies.
pub async fn load(service: &Arc<Memory>) -> Fallible<(Duration, Vec<Duration>)> {
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

/// Many readers, alone and alongside as many writers of which two may write at a time.
pub async fn contention(service: &Arc<Memory>) -> Fallible<()> {
    let readers = Readers::start(service, WRITERS);
    tokio::time::sleep(Duration::from_secs(5)).await;
    line(
        "recall, 16 readers, nobody writes",
        &spread(readers.stop().await?),
    );
    let (readers, end) = (
        Readers::start(service, WRITERS),
        Instant::now() + Duration::from_secs(5),
    );
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(insist(Arc::clone(service), 2 * NOTES + writer * NOTES, end)))
        .collect();
    let (mut written, mut refused) = (0, 0);
    for writer in writers {
        let (more, again) = writer.await??;
        written += more;
        refused += again;
    }
    line(
        "recall, 16 readers, 16 writers, 2 at a time",
        &spread(readers.stop().await?),
    );
    line(
        "notes written, and refused with 429",
        &format!("{written}, {refused}"),
    );
    Ok(())
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
