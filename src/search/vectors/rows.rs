//! The rows of a workspace on disk: for each indexed version of a node its head, its sketch and its vector, and for each
//! passage also what it is about. Relationships have rows of their own, without vectors.
//!
//! Rows are only ever appended. They lie in files of [`ROWS_PER_BLOCK`] rows that are mapped into memory, so opening
//! them reads nothing but the heads. A file is written with `write` rather than through its mapping: a full disk is
//! then an error and not a signal. A row counts once the text index's commit names it; later rows are overwritten after
//! a restart. An index without a directory keeps its rows in memory.

mod codes;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::must_cast_slice;
use memmap2::Mmap;
use uuid::Uuid;

use super::binary_code::{self, BinaryCode};
use crate::search::document::facts::{FACTS_BYTES, Facts};
use crate::search::document::{ENDS_BYTES, Ends, GONE, IndexDoc, class_of_passage, is_passage};
use crate::search::error::SearchError;

/// Rows in one file: 360 KB at 256 dimensions, of which only written pages take space. A process may map some 65,000
/// files.
pub(in crate::search) const ROWS_PER_BLOCK: usize = 1024;
const HEAD_BYTES: usize = 33 + FACTS_BYTES;
/// Where the class is in a head.
const CLASS_AT: usize = 32;

/// What a row says about its node, apart from the vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) struct Head {
    pub(in crate::search) node: Uuid,
    pub(in crate::search) rev: u64,
    pub(in crate::search) class: u8,
    pub(in crate::search) facts: Facts,
    /// 1 / length of the vector; 0 if there is none.
    pub(in crate::search) scale: f32,
    /// Hash of the whole row, by which a damaged one is recognised.
    print: u32,
}

/// A row to be appended.
#[derive(Debug)]
pub(in crate::search) struct NewRow<'a> {
    pub(in crate::search) node: Uuid,
    pub(in crate::search) rev: u64,
    pub(in crate::search) class: u8,
    pub(in crate::search) facts: Facts,
    /// A vector and 1 / its length.
    pub(in crate::search) vector: Option<(&'a [i8], f32)>,
    /// What a passage is about.
    pub(in crate::search) ends: Option<Ends>,
}

impl<'a> NewRow<'a> {
    /// The row of a document, apart from the relationship that it describes.
    pub(in crate::search) fn of(doc: &'a IndexDoc) -> Self {
        let shown = !doc.is_removal();
        let vector = doc.vector.as_deref().filter(|_| shown);
        NewRow {
            ends: doc.ends.filter(|_| shown),
            facts: doc.facts,
            ..NewRow::new(doc.node_id, doc.rev, doc.class(), vector)
        }
    }

    /// The row of the relationship that a document describes; without one, of the removal of an earlier one.
    pub(in crate::search) fn of_relation(doc: &IndexDoc) -> Self {
        let class = doc
            .relation
            .map_or(GONE, |relation| class_of_passage(doc.population, relation.tlp));
        let facts = doc
            .relation
            .map(|known| Facts::of_relation(known.code, known.confidence));
        NewRow {
            ends: doc.relation.map(|relation| relation.ends),
            facts: facts.unwrap_or_default(),
            ..NewRow::new(doc.node_id, doc.rev, class, None)
        }
    }

    /// A row for a version of a node; a vector of zeroes is no vector.
    pub(in crate::search) fn new(node: Uuid, rev: u64, class: u8, vector: Option<&'a [i8]>) -> Self {
        let with_scale = vector.map(|vector| (vector, scale_of(vector)));
        NewRow {
            node,
            rev,
            class,
            facts: Facts::default(),
            vector: with_scale.filter(|(_, scale)| *scale > 0.0),
            ends: None,
        }
    }
}

/// How far rows reach: the first `len` of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::search) struct Extent {
    pub(in crate::search) generation: u64,
    pub(in crate::search) len: usize,
}

/// All rows of one generation; a compaction begins the next.
pub(in crate::search) struct Rows {
    dir: Option<PathBuf>,
    generation: u64,
    dimension: usize,
    blocks: Vec<Block>,
    /// The file written last, with its number.
    tail: Option<(usize, File)>,
    len: usize,
}

enum Block {
    Mapped(Mmap),
    Memory(Box<[u8]>),
}

impl Block {
    fn bytes(&self) -> &[u8] {
        match self {
            Block::Mapped(map) => map,
            Block::Memory(bytes) => bytes,
        }
    }
}

impl Head {
    fn of(row: &NewRow<'_>) -> Self {
        let mut head = Head {
            node: row.node,
            rev: row.rev,
            class: row.class,
            facts: row.facts,
            scale: row.vector.map_or(0.0, |(_, scale)| scale),
            print: 0,
        };
        head.print = head.print_with(row.vector.map_or(&[], |(vector, _)| vector), row.ends);
        head
    }

    fn print_with(&self, vector: &[i8], ends: Option<Ends>) -> u32 {
        let own = self.node.into_bytes().into_iter().chain(self.rev.to_le_bytes());
        let rest = self.scale.to_le_bytes().into_iter().chain([self.class]);
        let rest = rest.chain(self.facts.to_bytes());
        let vector = vector.iter().map(|x| x.cast_unsigned());
        let ends = ends.into_iter().flat_map(Ends::to_bytes);
        let hash = crate::search::text::fnv1a(own.chain(rest).chain(vector).chain(ends));
        (hash ^ hash >> 32) as u32
    }

    pub(in crate::search) fn has_vector(&self) -> bool {
        self.scale > 0.0
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.node.as_bytes());
        into.extend_from_slice(&self.rev.to_le_bytes());
        into.extend_from_slice(&self.scale.to_le_bytes());
        into.extend_from_slice(&self.print.to_le_bytes());
        into.push(self.class);
        into.extend_from_slice(&self.facts.to_bytes());
    }

    fn read(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let (node, rest) = bytes.split_first_chunk::<16>()?;
        let (rev, rest) = rest.split_first_chunk::<8>()?;
        let (scale, rest) = rest.split_first_chunk::<4>()?;
        let (print, rest) = rest.split_first_chunk::<4>()?;
        let (class, rest) = rest.split_first()?;
        Some(Head {
            node: Uuid::from_bytes(*node),
            rev: u64::from_le_bytes(*rev),
            class: *class,
            facts: Facts::from_bytes(rest.first_chunk()?)?,
            scale: f32::from_le_bytes(*scale),
            print: u32::from_le_bytes(*print),
        })
    }
}

impl Rows {
    /// The first rows of a generation in a directory; without one, none, in memory.
    pub(in crate::search) fn open(
        dir: Option<PathBuf>,
        Extent { generation, len }: Extent,
        dimension: usize,
    ) -> Result<Self, SearchError> {
        if let Some(dir) = &dir {
            crate::files::private_dir(dir)?;
        }
        let mut rows = Rows {
            dir,
            generation,
            dimension,
            blocks: Vec::new(),
            tail: None,
            len: 0,
        };
        for block in 0..len.div_ceil(ROWS_PER_BLOCK) {
            let block = rows.map(block, false)?;
            rows.blocks.push(block);
        }
        rows.len = len;
        Ok(rows)
    }

    /// An empty next generation of the same rows.
    pub(in crate::search) fn next_generation(&self) -> Self {
        Rows {
            dir: self.dir.clone(),
            generation: self.generation + 1,
            dimension: self.dimension,
            blocks: Vec::new(),
            tail: None,
            len: 0,
        }
    }

    pub(in crate::search) fn extent(&self) -> Extent {
        Extent {
            generation: self.generation,
            len: self.len,
        }
    }

    pub(in crate::search) fn len(&self) -> usize {
        self.len
    }

    /// Forgets the rows from `len` on; the next ones overwrite them.
    pub(in crate::search) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Bytes of a row's sketch.
    pub(super) fn code_bytes(&self) -> usize {
        binary_code::bytes_of(self.dimension)
    }

    fn codes_offset(&self) -> usize {
        HEAD_BYTES * ROWS_PER_BLOCK
    }

    fn vectors_offset(&self) -> usize {
        self.codes_offset() + self.code_bytes() * ROWS_PER_BLOCK
    }

    fn ends_offset(&self) -> usize {
        self.vectors_offset() + self.dimension * ROWS_PER_BLOCK
    }

    fn block_bytes(&self) -> usize {
        self.ends_offset() + ENDS_BYTES * ROWS_PER_BLOCK
    }

    fn path(dir: &Path, generation: u64, block: usize) -> PathBuf {
        dir.join(format!("{generation}-{block:06}"))
    }

    fn file(&self, dir: &Path, number: usize, create: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(create);
        let file = options.open(Self::path(dir, self.generation, number))?;
        let bytes = self.block_bytes() as u64;
        if create {
            file.set_len(bytes)?;
        } else if file.metadata()?.len() != bytes {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a file of rows is cut off",
            ));
        }
        Ok(file)
    }

    fn map(&self, number: usize, create: bool) -> io::Result<Block> {
        let Some(dir) = &self.dir else {
            return Ok(Block::Memory(vec![0; self.block_bytes()].into_boxed_slice()));
        };
        let file = self.file(dir, number, create)?;
        // SAFETY: the file belongs to this index alone, keeps its length while it is mapped, and is written only where
        // no row has been published yet.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file)? };
        Ok(Block::Mapped(map))
    }

    /// Appends rows: all of them or, on an error, none. Their numbers begin at the old length.
    pub(in crate::search) fn append(&mut self, new: &[NewRow<'_>]) -> Result<(), SearchError> {
        let mut at = self.len;
        let mut left = new;
        while !left.is_empty() {
            let (block, place) = (at / ROWS_PER_BLOCK, at % ROWS_PER_BLOCK);
            if block == self.blocks.len() {
                let created = self.map(block, true)?;
                self.blocks.push(created);
            }
            let (now, later) = left.split_at(left.len().min(ROWS_PER_BLOCK - place));
            self.write(block, place, now)?;
            at += now.len();
            left = later;
        }
        self.len = at;
        Ok(())
    }

    fn write(&mut self, block: usize, place: usize, new: &[NewRow<'_>]) -> io::Result<()> {
        let (mut heads, mut sketches, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
        for row in new {
            Head::of(row).write(&mut heads);
            match row.vector {
                Some((vector, _)) => {
                    BinaryCode::of(vector).write(&mut sketches);
                    vectors.extend(vector.iter().map(|x| x.cast_unsigned()));
                }
                None => {
                    sketches.resize(sketches.len() + self.code_bytes(), 0);
                    vectors.resize(vectors.len() + self.dimension, 0);
                }
            }
        }
        let parts = [
            (HEAD_BYTES * place, heads),
            (self.codes_offset() + self.code_bytes() * place, sketches),
            (self.vectors_offset() + self.dimension * place, vectors),
        ];
        parts
            .iter()
            .try_for_each(|(at, bytes)| self.put(block, *at, bytes))?;
        // The others have none, and their part of the file takes no space.
        let ends = (place..)
            .zip(new)
            .filter_map(|(place, row)| Some((place, row.ends?)));
        self.put_ends(block, ends)
    }

    /// Writes what passages are about, those that lie side by side at once.
    fn put_ends(&mut self, block: usize, ends: impl Iterator<Item = (usize, Ends)>) -> io::Result<()> {
        let mut ends = ends.peekable();
        while let Some((first, own)) = ends.next() {
            let mut bytes = own.to_bytes().to_vec();
            let mut next = first + 1;
            while let Some((_, own)) = ends.next_if(|(place, _)| *place == next) {
                bytes.extend(own.to_bytes());
                next += 1;
            }
            self.put(block, self.ends_offset() + ENDS_BYTES * first, &bytes)?;
        }
        Ok(())
    }

    fn put(&mut self, block: usize, at: usize, bytes: &[u8]) -> io::Result<()> {
        if let Some(Block::Memory(all)) = self.blocks.get_mut(block) {
            if let Some(place) = all.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
            return Ok(());
        }
        let Some(dir) = &self.dir else { return Ok(()) };
        if self.tail.as_ref().is_none_or(|(number, _)| *number != block) {
            self.tail = Some((block, self.file(dir, block, false)?));
        }
        match &self.tail {
            Some((_, file)) => file.write_all_at(bytes, at as u64),
            None => Ok(()),
        }
    }

    fn head_bytes(&self, row: usize) -> Option<&[u8; HEAD_BYTES]> {
        let at = row % ROWS_PER_BLOCK * HEAD_BYTES;
        let bytes = self.blocks.get(row / ROWS_PER_BLOCK)?.bytes();
        bytes.get(at..)?.first_chunk()
    }

    /// The head of a row.
    pub(in crate::search) fn head(&self, row: usize) -> Option<Head> {
        Head::read(self.head_bytes(row)?)
    }

    /// The node of a row, without the rest of its head.
    #[inline]
    pub(in crate::search) fn node(&self, row: usize) -> Option<Uuid> {
        Some(Uuid::from_bytes(*self.head_bytes(row)?.first_chunk()?))
    }

    /// The class of a row, without the rest of its head.
    #[inline]
    pub(in crate::search) fn class(&self, row: usize) -> Option<u8> {
        self.head_bytes(row)?.get(CLASS_AT).copied()
    }

    /// The vector of a row; all zeroes if it has none.
    #[inline]
    pub(in crate::search) fn vector(&self, row: usize) -> Option<&[i8]> {
        let at = self.vectors_offset() + row % ROWS_PER_BLOCK * self.dimension;
        let bytes = self.blocks.get(row / ROWS_PER_BLOCK)?.bytes();
        bytes.get(at..at + self.dimension).map(must_cast_slice)
    }

    /// What a passage is about; `None` for a node.
    pub(in crate::search) fn ends(&self, row: usize) -> Option<Ends> {
        self.class(row).filter(|class| is_passage(*class))?;
        self.ends_of_passage(row)
    }

    /// What a passage, or a relationship, is about that is known to be one.
    pub(in crate::search) fn ends_of_passage(&self, row: usize) -> Option<Ends> {
        let at = self.ends_offset() + row % ROWS_PER_BLOCK * ENDS_BYTES;
        let bytes = self.blocks.get(row / ROWS_PER_BLOCK)?.bytes();
        Ends::from_bytes(bytes.get(at..)?.first_chunk()?)
    }

    pub(in crate::search) fn blocks(&self) -> usize {
        self.len.div_ceil(ROWS_PER_BLOCK)
    }

    /// Compares every row with its hash; false if one is damaged.
    pub(in crate::search) fn are_whole(&self) -> bool {
        (0..self.len).all(|row| match (self.head(row), self.vector(row)) {
            (Some(head), Some(vector)) => {
                let vector = if head.has_vector() { vector } else { &[] };
                head.print == head.print_with(vector, self.ends(row))
            }
            _ => false,
        })
    }

    /// Removes the files of other generations.
    pub(in crate::search) fn forget_others(&self) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let own = format!("{}-", self.generation);
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(&own) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// 1 / length of a vector, or 0 for the zero vector.
pub(in crate::search) fn scale_of(vector: &[i8]) -> f32 {
    let length = vector
        .iter()
        .map(|&x| f32::from(x) * f32::from(x))
        .sum::<f32>()
        .sqrt();
    if length > 0.0 { 1.0 / length } else { 0.0 }
}
