//! Sign sketches: one bit per dimension, set where a vector's component is positive.
//!
//! The Hamming distance of two sketches estimates the angle of their vectors (Charikar, "Similarity estimation
//! techniques from rounding algorithms", STOC 2002). A scan of sketches reads an eighth of what a scan of the vectors
//! reads, and its best few thousand rows hold nearly all of the nearest vectors.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

/// Bytes that a processor loads at a time.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;
/// Bits of a sketch are stored in words of this many bytes, least significant byte first.
const WORD: usize = size_of::<u64>();
const BITS: usize = u64::BITS as usize;
/// Rows whose distances are computed together.
pub(super) const ROWS_AT_ONCE: usize = 64;
/// Distances that are compared together.
const PIECE: usize = 16;
/// Words of the sketches of the built-in model.
const WORDS: usize = 4;
/// Components whose signs an estimate applies together, and the bytes of their bits.
const PART: usize = 32;
const PART_BYTES: usize = PART / 8;

/// The sketch of a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sketch(Vec<u64>);

/// Bytes of the sketch of a vector of this many dimensions.
pub(super) const fn bytes_of(dimension: usize) -> usize {
    dimension.div_ceil(BITS) * WORD
}

impl Sketch {
    pub(super) fn of(vector: &[i8]) -> Self {
        let word = |part: &[i8]| {
            let bits = (0u32..).zip(part).filter(|(_, x)| **x > 0);
            bits.fold(0u64, |word, (bit, _)| word | 1 << bit)
        };
        Sketch(vector.chunks(BITS).map(word).collect())
    }

    pub(super) fn write(&self, into: &mut Vec<u8>) {
        self.0
            .iter()
            .for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
    }

    /// The Hamming distance to each of the stored sketches, one after another in `stored`, and one bit for each distance
    /// within the limit, the first one lowest. Distances beyond the stored sketches stay as they are.
    pub(super) fn distances(&self, stored: &[u8], distances: &mut [u16; ROWS_AT_ONCE], limit: u16) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512vpopcntdq")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512bw")
            {
                // SAFETY: the processor has the features, the only requirement of the functions.
                #[allow(unsafe_code)]
                return unsafe {
                    match (self.0.as_slice().try_into(), stored.try_into()) {
                        (Ok(own), Ok(stored)) => scan_built_in(own, stored, distances, limit),
                        _ => self.scan_avx512(stored, distances, limit),
                    }
                };
            }
            if std::arch::is_x86_feature_detected!("popcnt") {
                // SAFETY: as above.
                #[allow(unsafe_code)]
                return unsafe { self.scan_popcnt(stored, distances, limit) };
            }
        }
        self.scan(stored, distances, limit)
    }

    /// The same loop, compiled for processors that count the bits of eight words at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt")]
    fn scan_avx512(&self, stored: &[u8], distances: &mut [u16; ROWS_AT_ONCE], limit: u16) -> u64 {
        self.scan(stored, distances, limit)
    }

    /// The same loop, compiled for processors that count the bits of a word.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn scan_popcnt(&self, stored: &[u8], distances: &mut [u16; ROWS_AT_ONCE], limit: u16) -> u64 {
        self.scan(stored, distances, limit)
    }

    #[inline(always)]
    fn scan(&self, stored: &[u8], distances: &mut [u16; ROWS_AT_ONCE], limit: u16) -> u64 {
        // A known length lets the compiler unroll the loop.
        if let Ok(own) = <&[u64; WORDS]>::try_from(self.0.as_slice()) {
            let rows = stored.as_chunks::<{ WORDS * WORD }>().0;
            for (row, distance) in rows.iter().zip(distances.iter_mut()) {
                *distance = differing(own, row);
            }
        } else {
            let rows = stored.chunks_exact(self.0.len() * WORD);
            for (row, distance) in rows.zip(distances.iter_mut()) {
                *distance = differing(&self.0, row);
            }
        }
        within(distances, limit)
    }
}

/// The same for [`ROWS_AT_ONCE`] sketches of the built-in model, two in a register. The compiler would add up the words of
/// each sketch for itself, which takes longer than counting their bits; here those of eight sketches are added up at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
fn scan_built_in(
    own: &[u64; WORDS],
    stored: &[u8; ROWS_AT_ONCE * WORDS * WORD],
    distances: &mut [u16; ROWS_AT_ONCE],
    limit: u16,
) -> u64 {
    use std::arch::x86_64::*;

    const REGISTER: usize = size_of::<__m512i>();
    /// Registers that hold eight sketches.
    const EIGHT: usize = 8 * WORDS * WORD / REGISTER;
    const SWAP_PAIRS: i32 = 0b0100_1110;
    const SWAP_NEIGHBOURS: i32 = 0b1011_0001;

    let [first, second, third, fourth] = own.map(u64::cast_signed);
    let own = _mm512_broadcast_i64x4(_mm256_setr_epi64x(first, second, third, fourth));
    let limit = _mm_set1_epi16(limit.cast_signed());
    let eights = stored.as_chunks::<{ EIGHT * REGISTER }>().0;
    let (mut places, mut place) = (0, 0);
    for (eight, distances) in eights.iter().zip(distances.as_chunks_mut::<8>().0) {
        let count = |part: usize| {
            // SAFETY: there are as many parts of the size of a register.
            #[allow(unsafe_code)]
            let rows = unsafe { _mm512_loadu_si512(eight.as_ptr().cast::<__m512i>().add(part)) };
            _mm512_popcnt_epi64(_mm512_xor_si512(rows, own))
        };
        // Counts are at most 64 and their sums at most 256, so that four fit into a word.
        let counts = _mm512_or_si512(
            _mm512_or_si512(count(0), _mm512_slli_epi64::<16>(count(1))),
            _mm512_or_si512(
                _mm512_slli_epi64::<32>(count(2)),
                _mm512_slli_epi64::<48>(count(3)),
            ),
        );
        let sums = _mm512_add_epi64(counts, _mm512_permutex_epi64::<SWAP_PAIRS>(counts));
        let sums = _mm512_add_epi64(sums, _mm512_permutex_epi64::<SWAP_NEIGHBOURS>(sums));
        let (even, odd) = (_mm512_castsi512_si128(sums), _mm512_extracti32x4_epi32::<2>(sums));
        let sums = _mm_unpacklo_epi16(even, odd);
        // SAFETY: eight distances have the size of the register.
        #[allow(unsafe_code)]
        unsafe {
            _mm_storeu_si128(distances.as_mut_ptr().cast(), sums);
        }
        places |= u64::from(_mm_cmple_epu16_mask(sums, limit)) << place;
        place += 8;
    }
    places
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
pub(super) struct Estimate {
    /// The components, with zeroes up to the end of the last part.
    query: Vec<[i8; PART]>,
    sum: i32,
}

impl Estimate {
    pub(super) fn of(query: &[i8]) -> Self {
        let padded = |part: &[i8]| std::array::from_fn(|at| part.get(at).copied().unwrap_or(0));
        Estimate {
            query: query.chunks(PART).map(padded).collect(),
            sum: query.iter().map(|x| i32::from(*x)).sum(),
        }
    }

    /// The estimate for one stored sketch.
    pub(super) fn for_sketch(&self, stored: &[u8]) -> i32 {
        2 * self.positive(stored) - self.sum
    }

    /// The sum of the components whose bits are set.
    fn positive(&self, stored: &[u8]) -> i32 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, the only requirement of the function.
            #[allow(unsafe_code)]
            return unsafe { self.positive_avx2(stored) };
        }
        self.positive_portable(stored)
    }

    fn positive_portable(&self, stored: &[u8]) -> i32 {
        let mut sum = 0;
        for (part, stored) in self.query.iter().zip(stored.as_chunks::<PART_BYTES>().0) {
            for (part, byte) in part.as_chunks::<8>().0.iter().zip(stored) {
                for (bit, x) in part.iter().enumerate() {
                    sum += i32::from(*x) * i32::from(byte >> bit & 1);
                }
            }
        }
        sum
    }

    /// A part at once; the compiler finds no such way.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn positive_avx2(&self, stored: &[u8]) -> i32 {
        use std::arch::x86_64::*;

        /// Which of four bytes of a sketch holds the bit of each component.
        const BYTES: [i64; 4] = [
            0,
            0x0101_0101_0101_0101,
            0x0202_0202_0202_0202,
            0x0303_0303_0303_0303,
        ];
        const BIT_OF_EACH: i64 = 0x8040_2010_0804_0201_u64.cast_signed();
        let [first, second, third, fourth] = BYTES;
        let bytes = _mm256_setr_epi64x(first, second, third, fourth);
        let bits = _mm256_set1_epi64x(BIT_OF_EACH);
        let mut sums = _mm256_setzero_si256();
        for (part, stored) in self.query.iter().zip(stored.as_chunks::<PART_BYTES>().0) {
            // SAFETY: a part has as many bytes as are read.
            #[allow(unsafe_code)]
            let part = unsafe { _mm256_loadu_si256(part.as_ptr().cast()) };
            let stored = _mm256_shuffle_epi8(_mm256_set1_epi32(i32::from_le_bytes(*stored)), bytes);
            let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(stored, bits), bits);
            let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_and_si256(is_set, part));
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
        let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let sums = _mm_hadd_epi32(sums, sums);
        _mm_cvtsi128_si32(_mm_hadd_epi32(sums, sums))
    }
}

/// Number of differing bits.
#[inline(always)]
fn differing(own: &[u64], row: &[u8]) -> u16 {
    let words = row
        .as_chunks::<WORD>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    let bits: u32 = own.iter().zip(words).map(|(a, b)| (a ^ b).count_ones()).sum();
    // At most the number of dimensions, which is far below 65,536.
    bits as u16
}

/// Asks the processor to load what is read next into its second-level cache. It does so on its own only within a page of
/// memory. The hint for what is read once (NTA) took three times as long on our test machine.
#[inline]
pub(super) fn prefetch<Byte>(bytes: &[Byte]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(CACHE_LINE / size_of::<Byte>()) {
        // SAFETY: every processor of this architecture has the instruction, which changes nothing but the cache.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        #[test]
        fn the_estimate_is_the_product_with_the_signs(
            pairs in prop::collection::vec(any::<(i8, i8)>(), 1..300),
        ) {
            let (query, row): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            let mut stored = Vec::new();
            Sketch::of(&row).write(&mut stored);
            let signed = query.iter().zip(&row).map(|(x, y)| i32::from(*x) * if *y > 0 { 1 } else { -1 });
            let estimate = Estimate::of(&query);
            prop_assert_eq!(estimate.for_sketch(&stored), signed.sum::<i32>());
            prop_assert_eq!(estimate.positive_portable(&stored), estimate.positive(&stored));
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
            rows.iter().for_each(|row| Sketch::of(row).write(&mut stored));
            prop_assert_eq!(stored.len(), rows.len() * bytes_of(query.len()));
            let expected: Vec<u16> = rows
                .iter()
                .map(|row| row.iter().zip(&query).filter(|(x, y)| (**x > 0) != (**y > 0)).count() as u16)
                .collect();
            let near = expected.iter().zip(0u32..).filter(|(distance, _)| **distance <= limit);
            let near = near.fold(0u64, |near, (_, place)| near | 1 << place);
            let sketch = Sketch::of(&query);
            let mut distances = [0; ROWS_AT_ONCE];
            for portable in [false, true] {
                let places = match portable {
                    false => sketch.distances(&stored, &mut distances, limit),
                    true => sketch.scan(&stored, &mut distances, limit),
                };
                prop_assert_eq!(&distances[..rows.len()], &expected);
                prop_assert_eq!(places & (u64::MAX >> (ROWS_AT_ONCE - rows.len())), near);
            }
        }
    }
}
