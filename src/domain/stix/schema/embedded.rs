//! The JSON Schemas of STIX 2.1, compiled into the binary.
//!
//! They are read from `schemas/stix-2.1/` at build time, so every machine validates alike, and no schema is ever
//! loaded from disk or network at run time.

/// Base URI of the schemas; `.invalid` can never be fetched (RFC 2606).
pub(super) const BASE_URI: &str = "https://threat-memory.invalid/schemas/stix-2.1/";

/// The definitions shared by all schemas; not a schema of an object type.
pub(super) const COMMON: &str = "common";

/// The schema of object types named `x-…` (STIX 2.1 section 11.2).
pub(super) const CUSTOM: &str = "custom";

/// The schema of the bundle's own properties (STIX 2.1 section 8).
pub(super) const BUNDLE: &str = "bundle";

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../schemas/stix-2.1/", $name, ".json")))),+]
    };
}

/// All schema files: name without `.json`, and text. The schema of an object type is named after the type.
pub(super) const SCHEMAS: &[(&str, &str)] = embedded![
    "common",
    "custom",
    "bundle",
    "artifact",
    "attack-pattern",
    "autonomous-system",
    "campaign",
    "course-of-action",
    "directory",
    "domain-name",
    "email-addr",
    "email-message",
    "extension-definition",
    "file",
    "grouping",
    "identity",
    "incident",
    "indicator",
    "infrastructure",
    "intrusion-set",
    "ipv4-addr",
    "ipv6-addr",
    "language-content",
    "location",
    "mac-addr",
    "malware-analysis",
    "malware",
    "marking-definition",
    "mutex",
    "network-traffic",
    "note",
    "observed-data",
    "opinion",
    "process",
    "relationship",
    "report",
    "sighting",
    "software",
    "threat-actor",
    "tool",
    "url",
    "user-account",
    "vulnerability",
    "windows-registry-key",
    "x509-certificate",
];
