//! The knowledge-graph node, its evidence and its edges: the types shared by ingest and output.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::confidence::Confidence;
use super::tlp::Tlp;

macro_rules! wire_enum {
    ($(#[doc = $doc:literal])+ $name:ident, $list:literal { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($variant),+ }

        impl $name {
            /// Every value, in the order of the specification.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The wire name.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text { $($text => Ok($name::$variant),)+ _ => Err(concat!("must be one of ", $list)) }
            }
        }

        // Not derived: that would write a number into a binary format, from which a text is read below.
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        // Not derived: for a number instead of a string, serde_json would report a broken document.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        // Not derived: utoipa does not see a name that a macro passes on.
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let names = Self::ALL.iter().map(|value| value.as_str());
                crate::domain::schema::names(&[$($doc),+], names)
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use wire_enum;

wire_enum! {
    /// The subject of a node.
    NodeType, "actor, cve, ioc, attck, osint, tool, vulnerability" {
        Actor = "actor",
        Cve = "cve",
        Ioc = "ioc",
        Attck = "attck",
        Osint = "osint",
        Tool = "tool",
        Vulnerability = "vulnerability",
    }
}

wire_enum! {
    /// Status of a node. Search covers active nodes, and rejected ones on request.
    NodeStatus, "active, rejected, merged" {
        Active = "active",
        Rejected = "rejected",
        Merged = "merged",
    }
}

/// One node as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct KgNode {
    pub id: Uuid,
    pub node_type: NodeType,
    #[schema(example = "APT28")]
    pub name: String,
    #[schema(example = "A threat group that MITRE ATT&CK lists as G0007.")]
    pub description: String,
    #[schema(example = "The MITRE Corporation")]
    pub source: String,
    #[schema(example = "stix")]
    pub source_type: String,
    pub tlp: Tlp,
    /// 0 to 1.
    #[schema(value_type = Confidence)]
    pub confidence: f64,
    /// What the source says beyond the other fields; `stix_id` if it was STIX.
    #[schema(example = json!({"aliases": ["Fancy Bear"], "external_ids": ["G0007"]}))]
    pub properties: Map<String, Value>,
    pub ingested_at: DateTime<Utc>,
    pub linked_evidence_ids: Vec<Uuid>,
    pub status: NodeStatus,
}
