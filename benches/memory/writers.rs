//! Sixteen writers, each on a thread and a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::notes::prose_note;
use crate::prose::Prose;
use crate::spread::Spread;
use crate::wire::Wire;
use crate::{Fallible, WRITERS};

/// Writers at work.
pub struct Writers {
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Fallible<Vec<Done>>>>,
}

/// When a note was acknowledged, since the beginning, and how long that took.
type Done = (Duration, Duration);

/// What the writers achieved, in notes per second.
pub struct Pace {
    pub notes: usize,
    pub time: Duration,
    pub overall: f64,
    pub last_tenth: f64,
    pub spread: Spread,
    done: Vec<Done>,
}

impl Writers {
    /// Writes the notes of these numbers, or as many as there is time for until it is stopped.
    pub fn start(base: &str, prose: &Arc<Prose>, from: usize, until: usize) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let (next, begun) = (Arc::new(AtomicUsize::new(from)), Instant::now());
        let threads = (0..WRITERS)
            .map(|_| {
                let (stopped, next) = (Arc::clone(&stopped), Arc::clone(&next));
                let (base, prose) = (base.to_owned(), Arc::clone(prose));
                std::thread::spawn(move || {
                    let mut wire = Wire::open(&base)?;
                    let mut done = Vec::new();
                    while !stopped.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= until {
                            break;
                        }
                        let took = remember(&mut wire, &prose, number)?;
                        done.push((begun.elapsed(), took));
                    }
                    Ok(done)
                })
            })
            .collect();
        Self { stopped, threads }
    }

    /// Lets each writer finish its note.
    pub fn stop(self) -> Fallible<Pace> {
        self.stopped.store(true, Ordering::Relaxed);
        self.finish()
    }

    /// Waits until everything is written.
    pub fn finish(self) -> Fallible<Pace> {
        let mut done = Vec::new();
        for thread in self.threads {
            done.extend(thread.join().map_err(|_| "a writer failed")??);
        }
        done.sort_unstable();
        Ok(Pace::of(done))
    }
}

impl Pace {
    /// The rates of notes in the order in which they were acknowledged.
    fn of(done: Vec<Done>) -> Self {
        let time = done.last().map_or(Duration::ZERO, |(at, _)| *at);
        let last = done.len().div_ceil(10);
        let before = done.iter().rev().nth(last).map_or(Duration::ZERO, |(at, _)| *at);
        Self {
            notes: done.len(),
            time,
            overall: done.len() as f64 / time.as_secs_f64(),
            last_tenth: last as f64 / (time - before).as_secs_f64(),
            spread: Spread::of(done.iter().map(|(_, took)| *took).collect()),
            done,
        }
    }

    /// The pace of what was written in two parts, without the time between them.
    pub fn and(mut self, next: Self) -> Self {
        let later = next.done.into_iter().map(|(at, took)| (self.time + at, took));
        self.done.extend(later);
        Self::of(self.done)
    }
}

fn remember(wire: &mut Wire, prose: &Prose, number: usize) -> Fallible<Duration> {
    let body = json!({"content": prose_note(prose, number)}).to_string();
    let begun = Instant::now();
    let told = wire.post("/api/remember", &body)?;
    if told.contains("\"status\":\"created\"") {
        Ok(begun.elapsed())
    } else {
        Err(format!("note {number}: {told}").into())
    }
}
