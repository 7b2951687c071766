//! The kinds of hits, and the hit itself.

use std::ops::Range;

use serde::Serialize;

use crate::domain::node::{NodeType, wire_enum};

wire_enum! {
    /// The kind of a hit.
    EntityKind, "the entity kinds, such as cve, ipv4, domain, sha256, actor, tool, malware" {
        Cve = "cve",
        Cwe = "cwe",
        Capec = "capec",
        AttckTechnique = "attck-technique",
        AttckTactic = "attck-tactic",
        AttckGroup = "attck-group",
        AttckSoftware = "attck-software",
        AttckMitigation = "attck-mitigation",
        AttckCampaign = "attck-campaign",
        Ipv4 = "ipv4",
        Ipv6 = "ipv6",
        Cidr = "cidr",
        Domain = "domain",
        Url = "url",
        Email = "email",
        Md5 = "md5",
        Sha1 = "sha1",
        Sha256 = "sha256",
        Sha512 = "sha512",
        FileName = "file-name",
        FilePath = "file-path",
        RegistryKey = "registry-key",
        Asn = "asn",
        Bitcoin = "bitcoin",
        YaraRule = "yara-rule",
        SigmaRule = "sigma-rule",
        Actor = "actor",
        Tool = "tool",
        Malware = "malware",
    }
}

impl EntityKind {
    /// The node type for hits of this kind; STIX types are mapped as in STIX ingest.
    pub fn node_type(self) -> NodeType {
        match self {
            EntityKind::Cve => NodeType::Cve,
            EntityKind::Cwe => NodeType::Vulnerability,
            EntityKind::Capec
            | EntityKind::AttckTechnique
            | EntityKind::AttckTactic
            | EntityKind::AttckMitigation => NodeType::Attck,
            EntityKind::AttckGroup | EntityKind::AttckCampaign | EntityKind::Actor => NodeType::Actor,
            EntityKind::AttckSoftware | EntityKind::Tool | EntityKind::Malware => NodeType::Tool,
            EntityKind::Ipv4
            | EntityKind::Ipv6
            | EntityKind::Cidr
            | EntityKind::Domain
            | EntityKind::Url
            | EntityKind::Email
            | EntityKind::Md5
            | EntityKind::Sha1
            | EntityKind::Sha256
            | EntityKind::Sha512
            | EntityKind::FileName
            | EntityKind::FilePath
            | EntityKind::RegistryKey
            | EntityKind::Asn
            | EntityKind::Bitcoin
            | EntityKind::YaraRule
            | EntityKind::SigmaRule => NodeType::Ioc,
        }
    }

    /// Whether the value is an assigned identifier (CVE, CWE, CAPEC, ATT&CK).
    pub fn is_identifier(self) -> bool {
        matches!(
            self,
            EntityKind::Cve
                | EntityKind::Cwe
                | EntityKind::Capec
                | EntityKind::AttckTechnique
                | EntityKind::AttckTactic
                | EntityKind::AttckGroup
                | EntityKind::AttckSoftware
                | EntityKind::AttckMitigation
                | EntityKind::AttckCampaign
        )
    }

    /// Whether the hit names an actor, a tool or a malware.
    pub fn is_name(self) -> bool {
        matches!(self, EntityKind::Actor | EntityKind::Tool | EntityKind::Malware)
    }
}

/// A hit: one thing found in a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mention {
    pub kind: EntityKind,
    /// Canonical and refanged; for a name, the gazetteer's canonical name.
    pub value: String,
    /// Byte range of the original text, on char boundaries.
    pub span: Range<usize>,
    /// The rule that found it.
    pub rule: &'static str,
    /// 0 to 1.
    pub confidence: f32,
}

impl Mention {
    /// The hit's words in the searched text.
    pub fn text<'t>(&self, source: &'t str) -> &'t str {
        source.get(self.span.clone()).unwrap_or_default()
    }
}
