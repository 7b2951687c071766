//! Replay for a new client: from its last position to where the live lines begin.
//!
//! The files are opened when the client connects, so that renaming or deleting them later does no harm. They are read
//! block by block as the client takes the lines, so that a replay needs little memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use chrono::NaiveDate;

use super::files::{FileKey, FilePosition};
use super::lines::{Line, ReadLimit, last_end, last_start, lines_between};
use super::tail::Tail;
use crate::blocking;

/// Maximum replay; beyond that only the newest lines are sent.
const MAX_REPLAY: ReadLimit = ReadLimit {
    lines: 10_000,
    bytes: 4 << 20,
};
/// Bytes read at a time.
const BLOCK: u64 = 64 * 1024;

/// What a client gets first if it does not name its last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// This many of the last lines.
    Last(u64),
    /// Today's files from their start.
    Today,
}

/// A range of complete lines in one file.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) key: FileKey,
    file: Arc<File>,
    from: u64,
    to: u64,
}

impl Segment {
    /// The last lines of a file that the budget allows, none before `floor`; without `end`, up to the last complete
    /// line.
    fn open(
        tail: &Tail,
        key: FileKey,
        floor: u64,
        end: Option<u64>,
        budget: &mut ReadLimit,
    ) -> io::Result<Self> {
        let file = Arc::new(tail.file(key)?);
        let to = end.map_or_else(|| last_end(&file), Ok)?;
        let from = last_start(&file, to, floor, budget)?;
        Ok(Self { key, file, from, to })
    }

    /// The next lines. Cancel-safe: the position advances only when the lines are returned.
    pub(super) async fn read(&mut self) -> io::Result<Vec<Line>> {
        let (file, from, to) = (Arc::clone(&self.file), self.from, self.to);
        let reading = blocking::spawn(move || lines_between(&file, from, to, BLOCK));
        let (lines, reached) = reading.await.map_err(io::Error::other)??;
        // If nothing more could be read, the file has been truncated in the meantime.
        self.from = if reached > from { reached } else { to };
        Ok(lines)
    }

    pub(super) fn is_done(&self) -> bool {
        self.from >= self.to
    }
}

/// Everything from the position that `last_event_id` names to the tail's position; if that position no longer exists,
/// as much as `opening` says. Blocks.
pub(super) fn plan(
    tail: &Tail,
    today: NaiveDate,
    last_event_id: Option<&str>,
    opening: Opening,
) -> VecDeque<Segment> {
    let mut segments = VecDeque::new();
    let Some(here) = tail.here() else {
        return segments;
    };
    let known = last_event_id.and_then(|id| tail.family.place(id));
    let (floor, mut budget) = match (known.filter(|place| exists(tail, *place)), opening) {
        (Some(place), _) => (place, MAX_REPLAY),
        (None, Opening::Today) => {
            let (key, offset) = (FileKey { day: today, part: 0 }, 0);
            (FilePosition { key, offset }, MAX_REPLAY)
        }
        (None, Opening::Last(lines)) => (
            FilePosition { offset: 0, ..here },
            ReadLimit { lines, ..MAX_REPLAY },
        ),
    };
    let older = tail.family.all().into_iter().rev().filter(|key| *key < here.key);
    let keys = [here.key].into_iter().chain(older);
    for key in keys.take_while(|key| *key >= floor.key) {
        let to = (key == here.key).then_some(here.offset);
        let from = if key == floor.key { floor.offset } else { 0 };
        match Segment::open(tail, key, from, to, &mut budget) {
            Ok(segment) => segments.push_front(segment),
            Err(error) => tracing::debug!(%error, "a file can't be replayed"),
        }
        if budget.is_spent() {
            break;
        }
    }
    segments
}

/// Whether an event ended at this position of a file that still exists.
fn exists(tail: &Tail, place: FilePosition) -> bool {
    let Some(before) = place.offset.checked_sub(1) else {
        return tail.file(place.key).is_ok();
    };
    let mut feed = [0];
    let read = tail
        .file(place.key)
        .and_then(|file| file.read_exact_at(&mut feed, before));
    read.is_ok() && feed == [b'\n']
}
