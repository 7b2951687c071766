//! Files of lines, one or more a day: which there are, and what stands in them.
//!
//! Only whole lines count. A line that is still being written is left for the next look.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A longer line is cut.
const LONGEST_LINE: usize = 1 << 20;
const CUT_MARK: &str = " [cut]";
const BLOCK: u64 = 64 * 1024;

/// Day and part of a file's name, the order in which files follow each other.
pub(super) fn order(name: &str, prefix: &str, suffix: &str) -> Option<(String, u32)> {
    let middle = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    match middle.split_once('.') {
        Some((day, part)) => Some((day.to_owned(), part.parse().ok()?)),
        None => Some((middle.to_owned(), 0)),
    }
}

/// The files of a directory whose names begin and end so, oldest first.
pub(super) fn files(dir: &Path, prefix: &str, suffix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let order = order(entry.file_name().to_str()?, prefix, suffix)?;
            Some((order, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The last part of a path.
pub(super) fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// A line and the place after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) end: u64,
}

/// The whole lines of an open file from `offset` on; `last` also takes one without its end.
pub(super) fn lines_from(file: &mut File, offset: u64, last: bool) -> io::Result<Vec<Line>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::new(file);
    let mut lines = Vec::new();
    let mut end = offset;
    loop {
        let mut line = Vec::new();
        let read = reader.read_until(b'\n', &mut line)?;
        let whole = line.last() == Some(&b'\n');
        if read == 0 || !(whole || last) {
            return Ok(lines);
        }
        end += read as u64;
        let text = text_of(&line);
        if !text.is_empty() {
            lines.push(Line { text, end });
        }
    }
}

fn text_of(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.get(..LONGEST_LINE) {
        Some(beginning) if line.len() > LONGEST_LINE => {
            String::from_utf8_lossy(beginning).into_owned() + CUT_MARK
        }
        _ => String::from_utf8_lossy(line).into_owned(),
    }
}

/// Hands the whole lines of a file to `take`, the last one first, until it says that it has enough.
pub(super) fn lines_backwards(path: &Path, mut take: impl FnMut(Line) -> bool) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut start = file.metadata()?.len();
    // What was read and belongs to a line that begins further up; `None` before the first line end was seen.
    let mut rest: Vec<u8> = Vec::new();
    let mut whole = false;
    while start > 0 {
        let size = BLOCK.min(start);
        start -= size;
        file.seek(SeekFrom::Start(start))?;
        let mut block = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact(&mut block)?;
        block.append(&mut rest);
        let mut end = block.len();
        while let Some(at) = block
            .get(..end)
            .and_then(|block| block.iter().rposition(|b| *b == b'\n'))
        {
            let line = block.get(at + 1..end).unwrap_or_default();
            let place = start + end as u64 + 1;
            // What follows the last line end is not whole.
            if whole
                && !line.is_empty()
                && !take(Line {
                    text: text_of(line),
                    end: place,
                })
            {
                return Ok(false);
            }
            whole = true;
            end = at;
        }
        block.truncate(end);
        rest = block;
        if rest.len() > 2 * LONGEST_LINE {
            return Ok(true);
        }
    }
    let end = rest.len() as u64 + 1;
    Ok(!(whole && !rest.is_empty())
        || take(Line {
            text: text_of(&rest),
            end,
        }))
}

/// A place in the files: after how many bytes of which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) offset: u64,
}

impl Place {
    /// As an event id.
    pub(super) fn id(&self) -> String {
        format!("{}:{}", self.file, self.offset)
    }

    pub(super) fn parse(id: &str) -> Option<Self> {
        let (file, offset) = id.trim().rsplit_once(':')?;
        let plain = !file.is_empty() && !file.contains(['/', '\\']) && file != "..";
        plain.then_some(())?;
        Some(Self {
            file: file.to_owned(),
            offset: offset.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_from_both_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for count in [0usize, 1, 2, 500, 5000] {
            let text: String = (0..count)
                .map(|n| format!("line {n} {}\n", "x".repeat(n % 300)))
                .collect();
            fs::write(&path, text.clone() + "half a line").unwrap();
            let forwards = lines_from(&mut File::open(&path).unwrap(), 0, false).unwrap();
            assert_eq!(forwards.len(), count);
            assert_eq!(forwards.last().map_or(0, |line| line.end), text.len() as u64);
            let mut backwards = Vec::new();
            lines_backwards(&path, |line| {
                backwards.push(line);
                true
            })
            .unwrap();
            backwards.reverse();
            assert_eq!(backwards, forwards);
        }
        let mut few = 0;
        lines_backwards(&path, |_| {
            few += 1;
            few < 3
        })
        .unwrap();
        assert_eq!(few, 3);
    }

    #[test]
    fn places_survive_their_ids_and_strange_ids_are_none() {
        let place = Place {
            file: "a.2026-11-21.log".into(),
            offset: 17,
        };
        assert_eq!(Place::parse(&place.id()), Some(place));
        for id in ["", "x", "x:y", "../etc/passwd:1", ":1", "..:1"] {
            assert_eq!(Place::parse(id), None, "{id}");
        }
    }

    #[test]
    fn files_are_in_the_order_of_days_and_parts() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "t-2026-01-02.jsonl",
            "t-2026-01-01.10.jsonl",
            "t-2026-01-01.2.jsonl",
            "t-2026-01-01.jsonl",
            "other",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = files(dir.path(), "t-", ".jsonl");
        let names: Vec<_> = found.iter().map(|path| name_of(path)).collect();
        assert_eq!(
            names,
            [
                "t-2026-01-01.jsonl",
                "t-2026-01-01.2.jsonl",
                "t-2026-01-01.10.jsonl",
                "t-2026-01-02.jsonl"
            ]
        );
    }
}
