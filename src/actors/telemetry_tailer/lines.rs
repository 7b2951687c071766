//! Lines of a file: forwards from a place, what was appended since the last look, and backwards from the end.
//!
//! Only whole lines count; one that is still being written waits for its end. Memory is bounded whatever the file
//! holds: reading goes block by block, and of an overlong line only the beginning is kept.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Of a longer line only so many bytes are kept.
pub(super) const LONGEST_LINE: usize = 1 << 20;
const CUT_MARK: &str = " [cut]";
const BLOCK: usize = 64 * 1024;
/// So many bytes before the offset tell whether the file is still the same one.
const MARK: usize = 64;

/// A line and the offset after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) end: u64,
}

/// How much one look may read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// A line whose end was not read yet.
#[derive(Debug, Default)]
struct Beginning {
    kept: Vec<u8>,
    length: u64,
}

impl Beginning {
    fn push(&mut self, bytes: &[u8]) {
        let room = (LONGEST_LINE + 1).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        self.length += bytes.len() as u64;
    }

    fn take(&mut self) -> String {
        let text = text_of(&self.kept);
        // An overlong line must not keep its memory.
        self.kept = Vec::new();
        self.length = 0;
        text
    }
}

/// The text of a line without its end; overlong ones are cut, and what is not UTF-8 is replaced.
fn text_of(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.get(..LONGEST_LINE) {
        Some(beginning) if line.len() > LONGEST_LINE => {
            String::from_utf8_lossy(beginning).into_owned() + CUT_MARK
        }
        _ => String::from_utf8_lossy(line).into_owned(),
    }
}

/// Hands on the whole lines of `bytes`, empty ones left out, and keeps the beginning of the last one; returns how many
/// bytes were used before the budget ended. `offset` is where the bytes stand in the file.
fn split(
    bytes: &[u8],
    offset: u64,
    beginning: &mut Beginning,
    budget: &mut Budget,
    take: &mut impl FnMut(Line),
) -> usize {
    let mut used = 0;
    while budget.lines > 0 && budget.bytes > 0 {
        let rest = bytes.get(used..).unwrap_or_default();
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            beginning.push(rest);
            return bytes.len();
        };
        beginning.push(rest.get(..at).unwrap_or_default());
        used += at + 1;
        budget.bytes = budget.bytes.saturating_sub(beginning.length + 1);
        let text = beginning.take();
        if !text.is_empty() {
            budget.lines -= 1;
            let end = offset + used as u64;
            take(Line { text, end });
        }
    }
    used
}

/// The whole lines of `from..to`, about `bytes` of them, and where to go on; both ends are ends of lines.
pub(super) fn lines_between(file: &File, from: u64, to: u64, bytes: u64) -> io::Result<(Vec<Line>, u64)> {
    let mut budget = Budget {
        lines: u64::MAX,
        bytes,
    };
    let mut beginning = Beginning::default();
    let mut lines = Vec::new();
    let mut block = vec![0; BLOCK];
    let mut reached = from;
    while reached < to && budget.bytes > 0 {
        let size = usize::try_from(to - reached).map_or(BLOCK, |rest| rest.min(BLOCK));
        let read = file.read_at(block.get_mut(..size).unwrap_or_default(), reached)?;
        if read == 0 {
            break;
        }
        let fresh = block.get(..read).unwrap_or_default();
        let used = split(fresh, reached, &mut beginning, &mut budget, &mut |line| {
            lines.push(line)
        });
        reached += used as u64;
    }
    Ok((lines, reached))
}

/// Reads what is appended to one open file.
#[derive(Debug)]
pub(super) struct Cursor {
    file: File,
    inode: u64,
    /// How far the file was read.
    offset: u64,
    beginning: Beginning,
    /// The bytes before the offset.
    mark: Vec<u8>,
}

impl Cursor {
    /// Begins with the first line.
    pub(super) fn at_start(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            inode: file.metadata()?.ino(),
            file,
            offset: 0,
            beginning: Beginning::default(),
            mark: Vec::new(),
        })
    }

    /// Begins after the last whole line.
    pub(super) fn at_end(path: &Path) -> io::Result<Self> {
        let mut cursor = Self::at_start(path)?;
        cursor.offset = last_end(&cursor.file)?;
        cursor.mark = vec![0; usize::try_from(cursor.offset).map_or(MARK, |offset| offset.min(MARK))];
        let from = cursor.marked_from();
        if cursor.file.read_exact_at(&mut cursor.mark, from).is_err() {
            // Cut this moment, so everything in it is new.
            cursor.restart();
        }
        Ok(cursor)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// How far the file was read, a line without its end included.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The offset after the last line that was handed on.
    pub(super) fn line_end(&self) -> u64 {
        self.offset.saturating_sub(self.beginning.length)
    }

    /// Whether what was read is still in the file: it did not shrink and was not written anew.
    pub(super) fn holds(&self) -> io::Result<bool> {
        let mut found = vec![0; self.mark.len()];
        let read = self.file.read_at(&mut found, self.marked_from())?;
        Ok(read == found.len() && found == self.mark)
    }

    fn marked_from(&self) -> u64 {
        self.offset.saturating_sub(self.mark.len() as u64)
    }

    /// Reads on, from the start when the file was cut or written anew; true when the budget ended before the file.
    pub(super) fn read(&mut self, budget: &mut Budget, take: &mut impl FnMut(Line)) -> io::Result<bool> {
        if !self.holds()? {
            self.restart();
        }
        let mut block = Vec::new();
        while budget.lines > 0 && budget.bytes > 0 {
            let marked = self.mark.len();
            block.resize(BLOCK + marked, 0);
            // With the mark, so that a file that is written anew this moment is not mistaken for the old one.
            let read = self.file.read_at(&mut block, self.marked_from())?;
            let Some((mark, fresh)) = block.get(..read).and_then(|bytes| bytes.split_at_checked(marked))
            else {
                self.restart();
                continue;
            };
            if mark != self.mark {
                self.restart();
                continue;
            }
            if fresh.is_empty() {
                return Ok(false);
            }
            let used = split(fresh, self.offset, &mut self.beginning, budget, take);
            self.offset += used as u64;
            let end = marked + used;
            let mark = block.get(end.saturating_sub(MARK)..end);
            self.mark = mark.unwrap_or_default().to_vec();
        }
        Ok(true)
    }

    fn restart(&mut self) {
        self.offset = 0;
        self.beginning = Beginning::default();
        self.mark.clear();
    }
}

/// Visits the offsets of the line feeds before `end`, the last one first.
fn feeds_backwards(
    file: &File,
    end: u64,
    floor: u64,
    mut visit: impl FnMut(u64) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let mut start = end;
    while start > floor {
        let size = usize::try_from(start - floor).map_or(BLOCK, |rest| rest.min(BLOCK));
        start -= size as u64;
        let block = block.get_mut(..size).unwrap_or_default();
        file.read_exact_at(block, start)?;
        let mut rest: &[u8] = block;
        while let Some(at) = rest.iter().rposition(|byte| *byte == b'\n') {
            if visit(start + at as u64).is_break() {
                return Ok(());
            }
            rest = rest.get(..at).unwrap_or_default();
        }
    }
    Ok(())
}

/// The offset after the last whole line.
pub(super) fn last_end(file: &File) -> io::Result<u64> {
    let mut end = 0;
    feeds_backwards(file, file.metadata()?.len(), 0, |feed| {
        end = feed + 1;
        ControlFlow::Break(())
    })?;
    Ok(end)
}

/// Where the last lines before `end` (the end of a line) begin: as many as the budget allows, none before `floor`.
/// What they take is subtracted from the budget; lines that did not fit use it up.
pub(super) fn last_start(file: &File, end: u64, floor: u64, budget: &mut Budget) -> io::Result<u64> {
    if end <= floor {
        return Ok(end);
    }
    let mut start = end;
    let mut fit = |candidate: u64| {
        if budget.lines == 0 || end - candidate > budget.bytes {
            budget.lines = 0;
            return ControlFlow::Break(());
        }
        budget.lines -= 1;
        start = candidate;
        match candidate == floor {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let mut more = true;
    // The feed right before the end belongs to the last line itself.
    feeds_backwards(file, end - 1, floor, |feed| {
        let flow = fit(feed + 1);
        more = flow.is_continue();
        flow
    })?;
    if more {
        // The first line has no feed before it.
        let _ = fit(floor);
    }
    budget.bytes = budget.bytes.saturating_sub(end - start);
    Ok(start)
}

/// Hands the whole lines of a file to `take`, the last one first, until it has enough or `most` bytes were read;
/// true when it came to the beginning.
pub(super) fn lines_backwards(
    file: &File,
    most: u64,
    mut take: impl FnMut(String) -> ControlFlow<()>,
) -> io::Result<bool> {
    let size = last_end(file)?;
    // The last line's feed stays out, so that every feed that is met separates two lines.
    let mut start = size.saturating_sub(1);
    let mut rest: Vec<u8> = Vec::new();
    while start > 0 {
        if size - start >= most {
            return Ok(false);
        }
        // Growing with the line, so that a long one is not copied again and again.
        let step = (BLOCK.max(rest.len()) as u64).min(start);
        start -= step;
        let mut block = vec![0; usize::try_from(step).unwrap_or(0)];
        file.read_exact_at(&mut block, start)?;
        let fresh = block.len();
        block.append(&mut rest);
        let mut end = block.len();
        let feed_before = |end: usize, block: &[u8]| {
            let searched = block.get(..end.min(fresh)).unwrap_or_default();
            searched.iter().rposition(|byte| *byte == b'\n')
        };
        while let Some(at) = feed_before(end, &block) {
            let line = block.get(at + 1..end).unwrap_or_default();
            end = at;
            if !line.is_empty() && take(text_of(line)).is_break() {
                return Ok(false);
            }
        }
        block.truncate(end);
        rest = block;
    }
    Ok(rest.is_empty() || take(text_of(&rest)).is_continue())
}

#[cfg(test)]
mod tests;
