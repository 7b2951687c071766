//! Follows one family of files: new lines go to everybody who listens, whatever happens to the files.
//!
//! A file that grows is read on; one that shrinks or is replaced is read from its beginning; a newer one is followed
//! after the rest of the older one was read. Ids name file and offset, so that a client goes on where it was.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::broadcast;

use super::files::{Line, Place, files, lines_from, name_of, order};

/// What a client that comes back is given again, at most.
const MOST_REPLAYED: usize = 10_000;
const MOST_REPLAYED_BYTES: usize = 4 << 20;

/// One line on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub line: Arc<str>,
}

/// What a new listener is given first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// So many of the last lines.
    Last(usize),
    /// The newest day's files from their start.
    Today,
}

/// The file that is being read.
struct Current {
    file: File,
    name: String,
    inode: u64,
    offset: u64,
}

/// The follower of one family of files.
pub(super) struct Tail {
    dir: PathBuf,
    prefix: &'static str,
    suffix: &'static str,
    current: Option<Current>,
    /// There was no file at all when somebody began to listen: the first one is new from its first line.
    none_yet: bool,
    sender: broadcast::Sender<Event>,
}

impl Tail {
    pub(super) fn new(dir: PathBuf, prefix: &'static str, suffix: &'static str, buffer: usize) -> Self {
        Self {
            dir,
            prefix,
            suffix,
            current: None,
            none_yet: false,
            sender: broadcast::channel(buffer.max(1)).0,
        }
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        files(&self.dir, self.prefix, self.suffix)
    }

    /// Reads what is new and sends it; blocks.
    pub(super) fn poll(&mut self) {
        for event in self.read_new() {
            // Without listeners there is nobody to miss it.
            self.sender.send(event).ok();
        }
    }

    /// Forgets where it was, so that the next listener begins with what is there then.
    pub(super) fn rest(&mut self) {
        self.current = None;
        self.none_yet = false;
    }

    fn read_new(&mut self) -> Vec<Event> {
        let all = self.files();
        let mut events = Vec::new();
        let newest = all.last().and_then(|path| inode_of(path));
        let replaced = self
            .current
            .as_ref()
            .is_some_and(|current| newest != Some(current.inode));
        if let Some(current) = &mut self.current {
            current.read(replaced, &mut events);
        }
        if self.current.is_none() {
            // From here on only what is written later.
            self.current = all.last().and_then(|path| Current::open(path, !self.none_yet));
            self.none_yet = self.current.is_none();
            if let Some(current) = &mut self.current {
                current.read(false, &mut events);
            }
        } else if replaced {
            let followed = self
                .current
                .as_ref()
                .map(|current| (current.name.clone(), current.inode));
            let place = |name: &str| order(name, self.prefix, self.suffix);
            let newer = all.iter().filter(|path| {
                followed.as_ref().is_none_or(|(name, inode)| {
                    inode_of(path) != Some(*inode) && place(name_of(path)) >= place(name)
                })
            });
            for path in newer {
                if let Some(mut next) = Current::open(path, false) {
                    next.read(false, &mut events);
                    self.current = Some(next);
                }
            }
        }
        events
    }

    /// Begins to listen: what comes before, and where everything later arrives. Nothing is lost or doubled in
    /// between. Blocks.
    pub(super) fn listen(
        &mut self,
        from: Option<&str>,
        beginning: Beginning,
    ) -> (Vec<Event>, broadcast::Receiver<Event>) {
        // Those who listen already get what is new before the newcomer is among them.
        self.poll();
        let receiver = self.sender.subscribe();
        let known = from
            .and_then(Place::parse)
            .and_then(|place| self.replay_from(&place));
        (known.unwrap_or_else(|| self.beginning(beginning)), receiver)
    }

    /// How many listen.
    pub(super) fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    fn here(&self) -> Option<Place> {
        let current = self.current.as_ref()?;
        Some(Place {
            file: current.name.clone(),
            offset: current.offset,
        })
    }

    /// The lines between a place and here; none when the place is not known any more.
    fn replay_from(&self, place: &Place) -> Option<Vec<Event>> {
        let all = self.files();
        let at = all.iter().position(|path| name_of(path) == place.file)?;
        let size = std::fs::metadata(all.get(at)?).ok()?.len();
        if place.offset > size {
            return None;
        }
        Some(self.lines_between(all.get(at..)?, place.offset))
    }

    fn lines_between(&self, paths: &[PathBuf], first_offset: u64) -> Vec<Event> {
        let here = self.here();
        let mut events = Vec::new();
        for (place, path) in paths.iter().enumerate() {
            let offset = if place == 0 { first_offset } else { 0 };
            let Ok(mut file) = File::open(path) else { continue };
            let Ok(lines) = lines_from(&mut file, offset, false) else {
                continue;
            };
            let name = name_of(path);
            let until = here
                .as_ref()
                .filter(|here| here.file == name)
                .map(|here| here.offset);
            let lines = lines
                .into_iter()
                .take_while(|line| until.is_none_or(|until| line.end <= until));
            events.extend(lines.map(|line| event(name, line)));
            if until.is_some() {
                break;
            }
        }
        bounded(events)
    }

    fn beginning(&self, beginning: Beginning) -> Vec<Event> {
        let all = self.files();
        let Some(newest) = all.last() else {
            return Vec::new();
        };
        match beginning {
            Beginning::Today => {
                let day = |path: &Path| day_of(name_of(path), self.prefix).to_owned();
                let today = day(newest);
                let first = all.iter().position(|path| day(path) == today).unwrap_or(0);
                self.lines_between(all.get(first..).unwrap_or_default(), 0)
            }
            Beginning::Last(count) => {
                let mut events = self.lines_between(std::slice::from_ref(newest), 0);
                events.drain(..events.len().saturating_sub(count));
                events
            }
        }
    }
}

impl Current {
    fn open(path: &Path, at_end: bool) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let mut offset = 0;
        if at_end {
            // Behind the last whole line: the rest of a line that is being written belongs to it.
            let lines = lines_from(&mut file, 0, false).ok()?;
            offset = lines.last().map_or(0, |line| line.end);
        }
        Some(Self {
            name: name_of(path).to_owned(),
            inode: metadata.ino(),
            offset,
            file,
        })
    }

    /// Reads on; `last` when nothing more will be written to the file.
    fn read(&mut self, last: bool, events: &mut Vec<Event>) {
        let size = self.file.metadata().map_or(0, |metadata| metadata.len());
        if size < self.offset {
            self.offset = 0;
        }
        match lines_from(&mut self.file, self.offset, last) {
            Ok(lines) => {
                for line in lines {
                    self.offset = line.end;
                    events.push(event(&self.name, line));
                }
            }
            Err(error) => tracing::warn!(%error, file = self.name, "reading a followed file failed"),
        }
    }
}

fn event(file: &str, line: Line) -> Event {
    let place = Place {
        file: file.to_owned(),
        offset: line.end,
    };
    Event {
        id: place.id(),
        line: line.text.into(),
    }
}

fn bounded(mut events: Vec<Event>) -> Vec<Event> {
    let mut bytes = 0;
    let kept = events.iter().rev().take(MOST_REPLAYED).take_while(|event| {
        bytes += event.line.len();
        bytes <= MOST_REPLAYED_BYTES
    });
    let kept = kept.count();
    events.drain(..events.len() - kept);
    events
}

fn inode_of(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|metadata| metadata.ino())
}

fn day_of<'a>(name: &'a str, prefix: &str) -> &'a str {
    name.strip_prefix(prefix)
        .and_then(|rest| rest.split('.').next())
        .unwrap_or(name)
}
