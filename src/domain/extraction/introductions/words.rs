//! The words by which a text introduces a name, and those that look like one.

/// Verbs that give a name.
pub(in super::super) const VERBS: [&str; 13] = [
    "dubbed",
    "dub",
    "named",
    "called",
    "calls",
    "call",
    "calling",
    "calls itself",
    "call themselves",
    "calling itself",
    "nicknamed",
    "codenamed",
    "code-named",
];
/// Verbs that do so with an "as": "tracked as", "known in the underground as".
pub(in super::super) const VERBS_AS: [&str; 7] = [
    "known", "tracked", "tracks", "track", "referred", "refers", "refer",
];
/// Nouns before the name by which an actor is known.
pub(in super::super) const ALIASES: [&str; 6] =
    ["alias", "aliases", "moniker", "monikers", "nickname", "handle"];
/// What stands between a name and its definition.
pub(in super::super) const DEFINING: [&str; 2] = ["is a", "is an"];
/// Nouns beside which a name in quotes or with capitals inside is that of a threat.
pub(in super::super) const NOUNS: [&str; 25] = [
    "malware",
    "ransomware",
    "backdoor",
    "trojan",
    "rat",
    "botnet",
    "stealer",
    "infostealer",
    "spyware",
    "rootkit",
    "bootkit",
    "wiper",
    "webshell",
    "keylogger",
    "dropper",
    "downloader",
    "loader",
    "implant",
    "worm",
    "gang",
    "threat actor",
    "threat group",
    "builder",
    "crypter",
    "packer",
];
/// Nouns for malware that say so only beside a name that is no ordinary word: "dubbed this variant RustyBuer".
pub(super) const VARIANTS: &[&str] = &["variant", "version", "strain", "family", "sample"];
/// First or last words of what is no actor, malware or tool.
pub(super) const OTHER_THINGS: &[&str] = &[
    "operation",
    "campaign",
    "project",
    "threat",
    "cve",
    "log4shell",
    "russia",
    "china",
    "iran",
    "korea",
    "israel",
    "ukraine",
];
/// The only word before a name that says nothing about it: "dubbed the Dukes".
pub(super) const LEADING: &[&str] = &["the", "it", "them", "itself", "themselves", "as"];
/// Words that follow the noun of a definition.
pub(super) const ADDING: &[&str] = &[
    "that",
    "which",
    "who",
    "used",
    "written",
    "first",
    "discovered",
    "developed",
    "believed",
    "active",
    "known",
    "for",
    "with",
    "in",
    "on",
    "by",
    "of",
    "from",
    "to",
    "capable",
    "designed",
    "targeting",
    "based",
    "operating",
    "and",
    "or",
    "as",
    "whose",
    "has",
    "attributed",
    "associated",
    "linked",
    "sold",
    "available",
    "distributed",
    "named",
    "called",
    "dubbed",
    "suspected",
    "operated",
    "built",
    "making",
];
/// Subjects of a definition that are no names.
pub(super) const PRONOUNS: &[&str] = &[
    "this", "that", "it", "he", "she", "they", "there", "what", "which", "one", "another", "each",
];
/// Nouns of a definition that defines no single thing: "is a type of malware".
pub(super) const PARTITIVES: &[&str] = &["type", "kind", "form", "sort", "class", "category", "variety"];
/// Parts of documents and the like: "the “X” malware section", "the loader X library".
pub(super) const NOT_THREATS: &[&str] = &[
    "section",
    "page",
    "article",
    "chapter",
    "column",
    "category",
    "label",
    "tag",
    "tab",
    "heading",
    "paragraph",
    "phase",
    "library",
    "plugin",
    "extension",
    "score",
    "channel",
    "repository",
    "message",
    "forum",
    "blog",
    "company",
    "vendor",
    "protocol",
    "language",
    "format",
    "standard",
    "website",
    "team",
    "diagram",
    "overview",
    "table",
    "figure",
];
/// Forms of companies, behind their names.
pub(super) const COMPANIES: &[&str] = &[
    "s.r.o",
    "a.s",
    "d.o.o",
    "z.o.o",
    "s.p.a",
    "gmbh",
    "ltd",
    "limited",
    "inc",
    "llc",
    "llp",
    "corp",
    "corporation",
    "plc",
    "s.a",
    "b.v",
    "oy",
    "ab",
    "ag",
    "pty",
    "srl",
    "ooo",
    "co",
    "kg",
    "company",
];
