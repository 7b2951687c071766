//! The words between the nouns of a question that say how these are linked.

/// Words that ask for a list.
pub(super) const LISTING: &[&str] = &[
    "list",
    "show",
    "name",
    "give",
    "find",
    "get",
    "display",
    "enumerate",
    "identify",
    "tell",
    "provide",
];
/// Words before a noun that say neither what kind it is nor how it is linked with what is before it.
pub(super) const QUALIFIERS: &[&str] = &[
    "a",
    "all",
    "an",
    "any",
    "certain",
    "custom",
    "different",
    "each",
    "else",
    "every",
    "its",
    "known",
    "me",
    "more",
    "most",
    "new",
    "other",
    "others",
    "own",
    "same",
    "some",
    "such",
    "the",
    "their",
    "those",
    "us",
    "various",
];
/// Words before a noun by which it is a means, and those by which things happen in it.
pub(super) const MEANS: &[&str] = &[
    "by", "from", "inside", "through", "using", "via", "with", "within",
];
pub(super) const PLACES: &[&str] = &["across", "during", "in", "over", "throughout"];
/// Words for what was said before.
pub(super) const PRONOUNS: &[&str] = &["it", "them", "they", "those", "these"];
/// Words by which the first part of a question only says what the question is about.
pub(super) const OPENING: &[&str] = &[
    "across", "among", "by", "during", "for", "from", "given", "in", "inside", "of", "through", "using",
    "via", "with", "within",
];
pub(super) const OWNERS: &[&str] = &["its", "their"];
pub(super) const CONJUNCTIONS: &[&str] = &["&", "and", "or", "plus"];

/// Words that attribute groups to others.
pub(super) const ATTRIBUTING: &[&str] = &[
    "affiliated",
    "attributed",
    "backed",
    "belonging",
    "commanded",
    "controlled",
    "directed",
    "funded",
    "linked",
    "run",
    "sponsored",
    "subordinate",
    "supported",
    "tied",
];
