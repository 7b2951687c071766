//! How much a test that proves by statistics, size or repetition does: a quick round, or all of it.

/// Set by `.ci/long`.
const FULL: &str = "THREAT_MEMORY_FULL_TESTS";

/// Whether all of it is to be done. A test that compares times does so only then: it needs a machine of its own.
pub fn is_full() -> bool {
    std::env::var_os(FULL).is_some_and(|value| !value.is_empty())
}

/// `quick` of them in the usual run of the tests, `full` where a release is proven.
pub fn extent<T>(quick: T, full: T) -> T {
    if is_full() { full } else { quick }
}
