//! Lines of a file: forwards from an offset, and backwards from the end.
//!
//! Only complete lines count; a line still being written waits for its end. Memory is bounded whatever the file
//! contains: files are read in blocks, and only the beginning of an overlong line is kept.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Bytes kept of one line.
pub(super) const MAX_LINE: usize = 1 << 20;
const CUT_MARK: &str = " [cut]";
const BLOCK: usize = 64 * 1024;
/// Bytes before the offset that show whether the file is still the same.
const MARK: usize = 64;
/// Lines read at a time when reading backwards.
const BACKWARDS: u64 = 1024;

/// A line and the offset after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) end: u64,
}

/// Budget of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLimit {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl ReadLimit {
    pub(super) const ALL: Self = Self::bytes(u64::MAX);

    pub(super) const fn bytes(bytes: u64) -> Self {
        let lines = u64::MAX;
        Self { lines, bytes }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.lines == 0 || self.bytes == 0
    }
}

/// A line whose end has not been read yet.
#[derive(Debug, Default)]
struct PartialLine {
    kept: Vec<u8>,
    length: u64,
}

impl PartialLine {
    /// Passes on the complete lines of a block at `offset`, skipping empty ones, and keeps the beginning of the last
    /// one. Returns how many bytes were used before the budget ran out.
    fn split(
        &mut self,
        block: &[u8],
        offset: u64,
        budget: &mut ReadLimit,
        take: &mut impl FnMut(Line),
    ) -> u64 {
        let mut used = 0;
        for piece in block.split_inclusive(|byte| *byte == b'\n') {
            if budget.is_spent() {
                break;
            }
            used += piece.len() as u64;
            self.length += piece.len() as u64;
            let text = piece.strip_suffix(b"\n");
            let room = (MAX_LINE + 1).saturating_sub(self.kept.len());
            self.kept.extend(text.unwrap_or(piece).iter().take(room));
            if text.is_some() {
                // An overlong line must not hold on to its memory.
                let line = std::mem::take(self);
                budget.bytes = budget.bytes.saturating_sub(line.length);
                let (text, end) = (text_of(line.kept), offset + used);
                if !text.is_empty() {
                    budget.lines -= 1;
                    take(Line { text, end });
                }
            }
        }
        used
    }
}

/// The text of a line: an overlong one is truncated, and invalid UTF-8 is replaced.
fn text_of(mut line: Vec<u8>) -> String {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    let cut = if line.len() > MAX_LINE { CUT_MARK } else { "" };
    line.truncate(MAX_LINE);
    String::from_utf8_lossy(&line).into_owned() + cut
}

/// How far a growing file has been read.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// Includes a line whose end has not been read yet.
    offset: u64,
    beginning: PartialLine,
    /// The bytes just before the offset.
    mark: Vec<u8>,
}

impl Cursor {
    /// A cursor after the last complete line of a file.
    pub(super) fn at_end(file: &File) -> io::Result<Self> {
        let offset = last_end(file)?;
        let size = offset.min(MARK as u64);
        let mut mark = vec![0; size as usize];
        let mut cursor = Self::default();
        // A file truncated at this moment counts as new.
        if file.read_exact_at(&mut mark, offset - size).is_ok() {
            (cursor.offset, cursor.mark) = (offset, mark);
        }
        Ok(cursor)
    }

    /// The offset after the last line passed on.
    pub(super) fn line_end(&self) -> u64 {
        self.offset.saturating_sub(self.beginning.length)
    }

    /// Whether the file still contains what was read: it neither shrank nor was rewritten.
    pub(super) fn holds(&self, file: &File) -> io::Result<bool> {
        let mut found = vec![0; self.mark.len()];
        let read = file.read_at(&mut found, self.marked_from())?;
        Ok(read == found.len() && found == self.mark)
    }

    fn marked_from(&self) -> u64 {
        self.offset.saturating_sub(self.mark.len() as u64)
    }

    /// Reads on, or from the start if the file was truncated or rewritten; true when the budget ran out before the
    /// file did.
    pub(super) fn read(
        &mut self,
        file: &File,
        budget: &mut ReadLimit,
        take: &mut impl FnMut(Line),
    ) -> io::Result<bool> {
        let mut block = vec![0; MARK + BLOCK];
        while !budget.is_spent() {
            // The mark is read in the same call: a file rewritten at this moment must not pass for the old one.
            let read = file.read_at(&mut block, self.marked_from())?;
            let bytes = block.get(..read).unwrap_or_default();
            let Some(fresh) = bytes.strip_prefix(self.mark.as_slice()) else {
                *self = Self::default();
                continue;
            };
            if fresh.is_empty() {
                return Ok(false);
            }
            let used = self.beginning.split(fresh, self.offset, budget, take);
            self.offset += used;
            let seen = bytes.get(..self.mark.len() + used as usize);
            let mark = seen.and_then(|seen| seen.rchunks(MARK).next());
            self.mark = mark.unwrap_or_default().to_vec();
        }
        Ok(true)
    }
}

/// The complete lines of `from..to`, about `bytes` of them, and where to continue; both ends are line ends.
pub(super) fn lines_between(file: &File, from: u64, to: u64, bytes: u64) -> io::Result<(Vec<Line>, u64)> {
    let mut cursor = Cursor {
        offset: from,
        ..Cursor::default()
    };
    let mut budget = ReadLimit::bytes(bytes.min(to.saturating_sub(from)));
    let mut lines = Vec::new();
    cursor.read(file, &mut budget, &mut |line| lines.push(line))?;
    Ok((lines, cursor.line_end()))
}

/// The offsets of the line feeds in `floor..end`, last first.
fn feeds_backwards(file: &File, end: u64, floor: u64) -> impl Iterator<Item = io::Result<u64>> {
    let (mut block, mut start) = (Vec::new(), end);
    std::iter::from_fn(move || {
        loop {
            if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
                block.truncate(at);
                return Some(Ok(start + at as u64));
            }
            if start <= floor {
                return None;
            }
            block.resize((start - floor).min(BLOCK as u64) as usize, 0);
            start -= block.len() as u64;
            if let Err(error) = file.read_exact_at(&mut block, start) {
                (block, start) = (Vec::new(), floor);
                return Some(Err(error));
            }
        }
    })
}

/// The offset after the last complete line.
pub(super) fn last_end(file: &File) -> io::Result<u64> {
    let feed = feeds_backwards(file, file.metadata()?.len(), 0).next();
    Ok(feed.transpose()?.map_or(0, |feed| feed + 1))
}

/// Start of the last lines before `end` (the end of a line): as many as the budget allows, none before `floor`. Their
/// size is subtracted from the budget; a line that did not fit exhausts it.
pub(super) fn last_start(file: &File, end: u64, floor: u64, budget: &mut ReadLimit) -> io::Result<u64> {
    let mut start = end;
    // The feed right before `end` belongs to the last line itself; the first line has none before it.
    let starts = feeds_backwards(file, end.saturating_sub(1), floor).map(|feed| feed.map(|feed| feed + 1));
    for candidate in starts.chain([Ok(floor)]) {
        let candidate = candidate?;
        if candidate >= start {
            continue;
        }
        if budget.lines == 0 || end - candidate > budget.bytes {
            budget.lines = 0;
            break;
        }
        budget.lines -= 1;
        start = candidate;
    }
    budget.bytes = budget.bytes.saturating_sub(end - start);
    Ok(start)
}

/// Passes the complete lines of a file to `take`, last first, until it has enough or `max_bytes` would be exceeded;
/// true when it reached the beginning.
pub(super) fn lines_backwards(
    file: &File,
    max_bytes: u64,
    mut take: impl FnMut(String) -> ControlFlow<()>,
) -> io::Result<bool> {
    let mut end = last_end(file)?;
    let mut left = max_bytes;
    while end > 0 {
        let (lines, bytes) = (BACKWARDS, left);
        let start = last_start(file, end, 0, &mut ReadLimit { lines, bytes })?;
        let (lines, _) = lines_between(file, start, end, u64::MAX)?;
        let mut texts = lines.into_iter().rev().map(|line| line.text);
        // Not even one more line fits, or `take` has enough.
        if start == end || texts.any(|text| take(text).is_break()) {
            return Ok(false);
        }
        left -= end - start;
        end = start;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
