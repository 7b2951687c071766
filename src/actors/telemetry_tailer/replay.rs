//! What a client is given before the live lines: the part of the files between where it was and where the live lines
//! begin.
//!
//! The files are opened when the client comes, so that renaming or deleting them afterwards does no harm, and read
//! block by block as the client takes them, so that a replay costs little memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use chrono::NaiveDate;

use super::files::{Family, FileKey, Place};
use super::hub::Event;
use super::lines::{Budget, last_end, last_start, lines_between};
use super::tail::Tail;
use crate::blocking;

/// What a client is given again, at most; of more it gets the newest.
const MOST: Budget = Budget {
    lines: 10_000,
    bytes: 4 << 20,
};
/// Bytes read at a time.
const BLOCK: u64 = 64 * 1024;

/// What a client is given first when it does not say where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// So many of the last lines.
    Last(u64),
    /// Today's files from their start.
    Today,
}

#[derive(Debug)]
struct Segment {
    file: Arc<File>,
    key: FileKey,
    from: u64,
    to: u64,
}

/// The lines that are still to be replayed.
#[derive(Debug)]
pub(super) struct Replay {
    family: Family,
    segments: VecDeque<Segment>,
}

impl Replay {
    /// Everything from the place that `last_event_id` names up to where the tail is; from the opening when it names
    /// none that still exists. Blocks.
    pub(super) fn plan(tail: &Tail, today: NaiveDate, last_event_id: Option<&str>, opening: Opening) -> Self {
        let mut replay = Self {
            family: tail.family().clone(),
            segments: VecDeque::new(),
        };
        let known = last_event_id
            .and_then(|id| replay.family.place(id))
            .filter(|place| exists(tail, *place));
        let (floor, budget) = match (known, opening) {
            (Some(place), _) => (Some(place), MOST),
            (None, Opening::Today) => {
                let key = FileKey::first_of(today);
                (Some(Place { key, offset: 0 }), MOST)
            }
            (None, Opening::Last(lines)) => {
                let newest = tail.here().map(|(here, _)| Place { offset: 0, ..here });
                (newest, Budget { lines, ..MOST })
            }
        };
        if let Some(floor) = floor {
            replay.collect(tail, floor, budget);
        }
        replay
    }

    /// Collects segments from the newest file back to `floor`.
    fn collect(&mut self, tail: &Tail, floor: Place, mut budget: Budget) {
        let Some((here, cursor)) = tail.here() else { return };
        let keys = self.family.all().into_iter().filter(|key| *key < here.key);
        let keys: Vec<FileKey> = keys.filter(|key| *key >= floor.key).chain([here.key]).collect();
        for key in keys.into_iter().rev().filter(|key| *key >= floor.key) {
            let lowest = if key == floor.key { floor.offset } else { 0 };
            let opened = match key == here.key {
                // The open file is the followed one, whatever its name has become.
                true => cursor.file().try_clone().map(|file| (file, here.offset)),
                false => open_whole(&self.family, key),
            };
            let segment = opened.and_then(|(file, to)| {
                let from = last_start(&file, to, lowest, &mut budget)?;
                let file = Arc::new(file);
                Ok(Segment { file, key, from, to })
            });
            match segment {
                Ok(segment) => self.segments.push_front(segment),
                Err(error) => tracing::debug!(%error, "a file can't be replayed"),
            }
            if budget.lines == 0 || budget.bytes == 0 {
                return;
            }
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.segments.is_empty()
    }

    /// The next lines. Cancelling it loses none: the place moves when they are handed on.
    ///
    /// # Errors
    /// When the file can't be read.
    pub(super) async fn next_block(&mut self) -> io::Result<VecDeque<Event>> {
        let Some(segment) = self.segments.front_mut() else {
            return Ok(VecDeque::new());
        };
        let (file, from, to) = (Arc::clone(&segment.file), segment.from, segment.to);
        let reading = blocking::spawn(move || lines_between(&file, from, to, BLOCK));
        let (lines, reached) = reading.await.map_err(io::Error::other)??;
        let key = segment.key;
        segment.from = reached;
        // Nothing read: the file was cut meanwhile.
        if reached >= to || reached == from {
            self.segments.pop_front();
        }
        let events = lines.into_iter().map(|line| Event::of(&self.family, key, line));
        Ok(events.collect())
    }
}

/// Whether an event ended at this place of a file that is still there.
fn exists(tail: &Tail, place: Place) -> bool {
    use std::os::unix::fs::FileExt;
    let file = match tail.here() {
        Some((here, cursor)) if here.key == place.key => cursor.file().try_clone(),
        _ => File::open(tail.family().path(place.key)),
    };
    let mut feed = [b'\n'];
    let read = file.and_then(|file| match place.offset.checked_sub(1) {
        Some(before) => file.read_exact_at(&mut feed, before),
        None => Ok(()),
    });
    read.is_ok() && feed == [b'\n']
}

/// A file and the end of its last whole line.
fn open_whole(family: &Family, key: FileKey) -> io::Result<(File, u64)> {
    let file = File::open(family.path(key))?;
    let end = last_end(&file)?;
    Ok((file, end))
}
