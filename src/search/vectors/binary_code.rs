//! Sign sketches: one bit per dimension, set where a vector's component is positive.
//!
//! The Hamming distance of two sketches estimates the angle of their vectors (Charikar, "Similarity estimation
//! techniques from rounding algorithms", STOC 2002). A scan of sketches reads an eighth of what a scan of the vectors
//! reads, and its best few thousand rows hold nearly all of the nearest vectors.

use multiversion::multiversion;

/// Bits of a sketch are stored in words of this many bytes, least significant byte first.
const WORD: usize = size_of::<u64>();
const BITS: usize = u64::BITS as usize;
/// Rows whose distances are computed together.
pub(super) const ROWS_AT_ONCE: usize = 64;
/// Distances that are compared together.
const PIECE: usize = 16;
/// Words of the sketches of the built-in model.
const WORDS: usize = 4;
/// Components whose signs share a byte of a sketch, and the number of values of a byte.
const PART: usize = 8;
const VALUES: usize = 1 << PART;

/// The sketch of a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BinaryCode(Vec<u64>);

/// Bytes of the sketch of a vector of this many dimensions.
pub(super) const fn bytes_of(dimension: usize) -> usize {
    dimension.div_ceil(BITS) * WORD
}

impl BinaryCode {
    pub(in crate::search) fn of(vector: &[i8]) -> Self {
        let word = |part: &[i8]| {
            let bits = (0u32..).zip(part).filter(|(_, x)| **x > 0);
            bits.fold(0u64, |word, (bit, _)| word | 1 << bit)
        };
        BinaryCode(vector.chunks(BITS).map(word).collect())
    }

    pub(in crate::search) fn write(&self, into: &mut Vec<u8>) {
        self.0
            .iter()
            .for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
    }

    /// The Hamming distance to each of the stored sketches, one after another in `stored`, and one bit for each distance
    /// within the limit, the first one lowest. Distances beyond the stored sketches stay as they are.
    pub(super) fn distances(&self, stored: &[u8], distances: &mut [u16; ROWS_AT_ONCE], limit: u16) -> u64 {
        scan(&self.0, stored, distances, limit)
    }
}

/// [`BinaryCode::distances`], compiled once more for processors that count the bits of a word, and for those that count the
/// bits of eight words at once.
#[multiversion(targets("x86_64+avx512vpopcntdq+popcnt", "x86_64+popcnt"))]
fn scan(own: &[u64], stored: &[u8], distances: &mut [u16; ROWS_AT_ONCE], limit: u16) -> u64 {
    // A known length lets the compiler unroll the loop.
    if let Ok(own) = <&[u64; WORDS]>::try_from(own) {
        let rows = stored.as_chunks::<{ WORDS * WORD }>().0;
        for (row, distance) in rows.iter().zip(distances.iter_mut()) {
            *distance = hamming_distance(own, row);
        }
    } else {
        let rows = stored.chunks_exact(own.len() * WORD);
        for (row, distance) in rows.zip(distances.iter_mut()) {
            *distance = hamming_distance(own, row);
        }
    }
    within(distances, limit)
}

/// One bit for each distance within the limit, the first one lowest. A wrongly predicted branch would hold up the loading of
/// the next rows, so there is none.
#[inline(always)]
fn within(distances: &[u16; ROWS_AT_ONCE], limit: u16) -> u64 {
    let pieces = distances.as_chunks::<PIECE>().0;
    pieces.iter().rev().fold(0, |places, piece| {
        let bits = piece.iter().enumerate();
        let bits = bits.fold(0, |bits, (bit, distance)| {
            bits | u16::from(*distance <= limit) << bit
        });
        places << PIECE | u64::from(bits)
    })
}

/// A query in full precision against sketches: the sum of its components, each with the sign that the sketch gives.
/// It orders rows better than the Hamming distance does, and costs several times as much.
#[derive(Debug)]
pub(super) struct CodeScorer {
    /// For each byte of a sketch, the sum of its components for each value that it can have.
    sums: Vec<[i16; VALUES]>,
}

impl CodeScorer {
    pub(in crate::search) fn of(query: &[i8]) -> Self {
        CodeScorer {
            sums: query.chunks(PART).map(signed_sums).collect(),
        }
    }

    /// The estimate for one stored sketch.
    pub(in crate::search) fn score(&self, stored: &[u8]) -> i32 {
        let parts = self.sums.iter().zip(stored);
        let sums = parts.filter_map(|(sums, byte)| sums.get(usize::from(*byte)));
        sums.map(|sum| i32::from(*sum)).sum()
    }
}

/// The sum of the components for each byte of signs; that of a set bit is plus.
fn signed_sums(components: &[i8]) -> [i16; VALUES] {
    let negative = components.iter().map(|x| -i16::from(*x)).sum();
    let mut sums = [negative; VALUES];
    for (bit, x) in components.iter().enumerate() {
        let (without, with) = sums.split_at_mut(1 << bit);
        for (with, without) in with.iter_mut().zip(without) {
            *with = *without + 2 * i16::from(*x);
        }
    }
    sums
}

/// Number of differing bits.
#[inline(always)]
fn hamming_distance(own: &[u64], row: &[u8]) -> u16 {
    let words = row
        .as_chunks::<WORD>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    let bits: u32 = own.iter().zip(words).map(|(a, b)| (a ^ b).count_ones()).sum();
    // At most the number of dimensions, which is far below 65,536.
    bits as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_support::extent;

    use super::*;

    #[test]
    fn the_rows_within_a_limit_have_a_bit() {
        let distances = std::array::from_fn(|place| place as u16 * 7 % 64);
        for limit in [0, 1, 13, 63] {
            let expected = (0..ROWS_AT_ONCE).filter(|place| distances[*place] <= limit);
            let expected = expected.fold(0, |bits, place| bits | 1u64 << place);
            assert_eq!(within(&distances, limit), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(extent(64, 256)))]

        #[test]
        fn the_estimate_is_the_product_with_the_signs(
            pairs in prop::collection::vec(any::<(i8, i8)>(), 1..300),
        ) {
            let (query, row): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            let mut stored = Vec::new();
            BinaryCode::of(&row).write(&mut stored);
            let signed = query.iter().zip(&row).map(|(x, y)| i32::from(*x) * if *y > 0 { 1 } else { -1 });
            let estimate = CodeScorer::of(&query);
            prop_assert_eq!(estimate.score(&stored), signed.sum::<i32>());
        }

        #[test]
        fn the_distance_is_the_number_of_differing_signs(
            (query, rows) in prop_oneof![
                (1usize..300, 1usize..5),
                Just((WORDS * BITS, ROWS_AT_ONCE)),
            ].prop_flat_map(|(dimension, rows)| {
                let vector = move || prop::collection::vec(any::<i8>(), dimension);
                (vector(), prop::collection::vec(vector(), rows))
            }),
            limit in 0u16..300,
        ) {
            let mut stored = Vec::new();
            rows.iter().for_each(|row| BinaryCode::of(row).write(&mut stored));
            prop_assert_eq!(stored.len(), rows.len() * bytes_of(query.len()));
            let expected: Vec<u16> = rows
                .iter()
                .map(|row| row.iter().zip(&query).filter(|(x, y)| (**x > 0) != (**y > 0)).count() as u16)
                .collect();
            let near = expected.iter().zip(0u32..).filter(|(distance, _)| **distance <= limit);
            let near = near.fold(0u64, |near, (_, place)| near | 1 << place);
            let sketch = BinaryCode::of(&query);
            let mut distances = [0; ROWS_AT_ONCE];
            let places = sketch.distances(&stored, &mut distances, limit);
            prop_assert_eq!(&distances[..rows.len()], &expected);
            prop_assert_eq!(places & (u64::MAX >> (ROWS_AT_ONCE - rows.len())), near);
        }
    }
}
