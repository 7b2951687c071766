//! The dot product of two vectors of signed bytes, computed for every row of an exact scan.

use multiversion::multiversion;

use super::rows::scale_of;

/// The dot product; `None` if the lengths differ.
pub(in crate::search) fn dot(a: &[i8], b: &[i8]) -> Option<i32> {
    if a.len() != b.len() {
        return None;
    }
    Some(sum(a, b))
}

/// The cosine similarity; `None` if the lengths differ or one of the vectors is zero.
pub(crate) fn cosine(a: &[i8], b: &[i8]) -> Option<f32> {
    let scale = scale_of(a) * scale_of(b);
    let dot = dot(a, b)? as f32;
    (scale > 0.0).then_some(dot * scale)
}

/// Fixed-length chunks let the compiler use vector instructions; with AVX2 it needs half as many.
#[multiversion(targets("x86_64+avx2"))]
fn sum(a: &[i8], b: &[i8]) -> i32 {
    const LANES: usize = 32;
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut total = part(a_rest, b_rest);
    for (a, b) in a.iter().zip(b) {
        total += part(a, b);
    }
    total
}

#[inline(always)]
fn part(a: &[i8], b: &[i8]) -> i32 {
    let mut sum = 0;
    for (&x, &y) in a.iter().zip(b) {
        sum += i32::from(x) * i32::from(y);
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_sum_of_the_products(pairs in prop::collection::vec(any::<(i8, i8)>(), 0..600)) {
            let (a, b): (Vec<i8>, Vec<i8>) = pairs.iter().copied().unzip();
            let expected: i32 = pairs.iter().map(|&(x, y)| i32::from(x) * i32::from(y)).sum();
            prop_assert_eq!(dot(&a, &b), Some(expected));
        }
    }

    #[test]
    fn vectors_of_different_lengths_have_none() {
        assert_eq!(dot(&[1, 2], &[1]), None);
        assert_eq!(cosine(&[1, 2], &[1]), None);
    }

    #[test]
    fn the_cosine_does_not_depend_on_the_lengths() {
        assert!((cosine(&[3, 4], &[30, 40]).unwrap() - 1.0).abs() < 1e-6);
        assert!((cosine(&[3, 4], &[-6, -8]).unwrap() + 1.0).abs() < 1e-6);
        assert!((cosine(&[1, 0], &[1, 1]).unwrap() - 0.5f32.sqrt()).abs() < 1e-6);
        assert_eq!(cosine(&[0, 0], &[1, 1]), None);
    }
}
