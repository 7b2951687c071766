//! The kinds of things that texts name, and the types of STIX objects that are nodes: a row each, with all that depends
//! on the kind. A new kind is a new row; a column that is missing does not compile.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::node::{NodeType, wire_enum};
use super::question::Kind;
use super::stix::object::{flag, text, type_of_id};
use super::stix::pattern::Observable;
use super::stix::properties::{carries_cve, nameless_malware};
use super::stix::titles::{text_of, title_of};

/// How the canonical value of a kind is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    Lower,
    Upper,
    /// As it was written; another case is another value.
    Significant,
    /// As it was written; another case is the same value.
    AsWritten,
    /// As RFC 5952 writes an IPv6 address.
    Ipv6,
    /// `AS` and the number.
    AsNumber,
}

/// What a value of a kind is to the reader of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// An assigned identifier (CVE, CWE, CAPEC, ATT&CK).
    Identifier,
    /// An identifier of something that also has a name.
    NamedIdentifier,
    Name,
    Indicator,
}

/// How a STIX pattern matches a value of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuePattern {
    /// It compares a property of an observable.
    Compare(Observable),
    /// A network of either version of IP.
    Network,
    /// A file in its directory.
    FilePath,
    /// There is no observable for it.
    None,
}

/// All that depends on a kind, besides the rules that find it.
#[derive(Debug)]
pub struct KindRow {
    /// The entity type of the local API.
    pub local: &'static str,
    /// The node type of its hits; STIX types are mapped as in STIX ingest.
    pub node: NodeType,
    /// What questions ask for it as.
    pub asked: Option<Kind>,
    pub pattern: ValuePattern,
    pub case: Case,
    pub class: Class,
}

macro_rules! kinds {
    ($($kind:ident $wire:literal $local:literal $node:ident $asked:expr, $pattern:expr, $case:ident $class:ident;)+) => {
        wire_enum! {
            /// The kind of a hit.
            EntityKind, "the entity kinds, such as cve, ipv4, domain, sha256, actor, tool, malware" {
                $($kind = $wire),+
            }
        }

        impl EntityKind {
            /// The row of this kind.
            pub const fn row(self) -> &'static KindRow {
                match self {
                    $(Self::$kind => {
                        const ROW: KindRow = KindRow {
                            local: $local,
                            node: NodeType::$node,
                            asked: $asked,
                            pattern: $pattern,
                            case: Case::$case,
                            class: Class::$class,
                        };
                        &ROW
                    }),+
                }
            }
        }
    };
}

const NO_PATTERN: ValuePattern = ValuePattern::None;
const fn compare(observable: Observable) -> ValuePattern {
    ValuePattern::Compare(observable)
}

kinds! {
    // kind           wire name           local name         node type      asked as                    pattern                                 case        class
    Cve               "cve"               "cve"              Cve            Some(Kind::Vulnerability),  NO_PATTERN,                             Upper       Identifier;
    Cwe               "cwe"               "cwe"              Vulnerability  Some(Kind::Vulnerability),  NO_PATTERN,                             Upper       Identifier;
    Capec             "capec"             "capec"            Attck          None,                       NO_PATTERN,                             Upper       Identifier;
    AttckTechnique    "attck-technique"   "attack_pattern"   Attck          Some(Kind::Technique),      NO_PATTERN,                             Upper       Identifier;
    AttckTactic       "attck-tactic"      "tactic"           Attck          None,                       NO_PATTERN,                             Upper       Identifier;
    AttckGroup        "attck-group"       "actor"            Actor          Some(Kind::Group),          NO_PATTERN,                             Upper       NamedIdentifier;
    AttckSoftware     "attck-software"    "tool"             Tool           Some(Kind::Software),       NO_PATTERN,                             Upper       NamedIdentifier;
    AttckMitigation   "attck-mitigation"  "course_of_action" Attck          Some(Kind::Mitigation),     NO_PATTERN,                             Upper       Identifier;
    AttckCampaign     "attck-campaign"    "campaign"         Actor          Some(Kind::Campaign),       NO_PATTERN,                             Upper       NamedIdentifier;
    Ipv4              "ipv4"              "ipv4"             Ioc            Some(Kind::Indicator),      compare(Observable::Ipv4),              Lower       Indicator;
    Ipv6              "ipv6"              "ipv6"             Ioc            Some(Kind::Indicator),      compare(Observable::Ipv6),              Ipv6        Indicator;
    Cidr              "cidr"              "cidr"             Ioc            Some(Kind::Indicator),      ValuePattern::Network,                  Lower       Indicator;
    Domain            "domain"            "domain"           Ioc            Some(Kind::Indicator),      compare(Observable::Domain),            Lower       Indicator;
    Url               "url"               "url"              Ioc            Some(Kind::Indicator),      compare(Observable::Url),               Significant Indicator;
    Email             "email"             "email"            Ioc            Some(Kind::Indicator),      compare(Observable::Email),             Lower       Indicator;
    Md5               "md5"               "md5"              Ioc            Some(Kind::Indicator),      compare(Observable::Md5),               Lower       Indicator;
    Sha1              "sha1"              "sha1"             Ioc            Some(Kind::Indicator),      compare(Observable::Sha1),              Lower       Indicator;
    Sha256            "sha256"            "sha256"           Ioc            Some(Kind::Indicator),      compare(Observable::Sha256),            Lower       Indicator;
    Sha512            "sha512"            "sha512"           Ioc            Some(Kind::Indicator),      compare(Observable::Sha512),            Lower       Indicator;
    FileName          "file-name"         "file_name"        Ioc            Some(Kind::Indicator),      compare(Observable::FileName),          AsWritten   Indicator;
    FilePath          "file-path"         "file_path"        Ioc            Some(Kind::Indicator),      ValuePattern::FilePath,                 AsWritten   Indicator;
    RegistryKey       "registry-key"      "registry_key"     Ioc            Some(Kind::Indicator),      compare(Observable::RegistryKey),       AsWritten   Indicator;
    Asn               "asn"               "asn"              Ioc            Some(Kind::Indicator),      compare(Observable::AutonomousSystem),  AsNumber    Indicator;
    Bitcoin           "bitcoin"           "bitcoin"          Ioc            Some(Kind::Indicator),      NO_PATTERN,                             Significant Indicator;
    YaraRule          "yara-rule"         "yara_rule"        Ioc            Some(Kind::Indicator),      NO_PATTERN,                             AsWritten   Indicator;
    SigmaRule         "sigma-rule"        "sigma_rule"       Ioc            Some(Kind::Indicator),      NO_PATTERN,                             AsWritten   Indicator;
    Vulnerability     "vulnerability"    "vulnerability"    Vulnerability  Some(Kind::Vulnerability),  NO_PATTERN,                             AsWritten   Name;
    Actor             "actor"             "actor"            Actor          Some(Kind::Group),          NO_PATTERN,                             AsWritten   Name;
    Tool              "tool"              "tool"             Tool           Some(Kind::Software),       NO_PATTERN,                             AsWritten   Name;
    Malware           "malware"           "malware"          Tool           Some(Kind::Software),       NO_PATTERN,                             AsWritten   Name;
}

/// The kind of each local name. Of several the one for names, which is the last.
static OF_LOCAL: LazyLock<HashMap<&str, EntityKind>> = LazyLock::new(|| {
    EntityKind::ALL
        .iter()
        .map(|kind| (kind.row().local, *kind))
        .collect()
});

impl EntityKind {
    /// The kind of an entity type of the local API; `None` for a type that no rule finds.
    pub fn of_local(entity_type: &str) -> Option<Self> {
        OF_LOCAL.get(entity_type).copied()
    }

    /// The node type for hits of this kind.
    pub fn node_type(self) -> NodeType {
        self.row().node
    }

    /// Whether the value is an assigned identifier (CVE, CWE, CAPEC, ATT&CK).
    pub fn is_identifier(self) -> bool {
        matches!(self.row().class, Class::Identifier | Class::NamedIdentifier)
    }

    /// Whether the hit is a name.
    pub fn is_name(self) -> bool {
        self.row().class == Class::Name
    }

    /// Whether the value may also be known by a name: it is one, or the identifier of something with one.
    pub fn has_names(self) -> bool {
        matches!(self.row().class, Class::Name | Class::NamedIdentifier)
    }
}

/// What the node of a STIX object is called if it has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameRule {
    /// What it says of itself; its id if that is nothing.
    Title,
    /// The type requires a name.
    Required,
    /// Its pattern.
    Pattern,
    /// A malware instance's alias, sample or id (its name is optional, STIX 2.1 section 4.11). A family requires a name.
    Malware,
}

/// A type of STIX objects that are nodes.
#[derive(Debug)]
pub struct StixRow {
    pub stix: &'static str,
    node: fn(&Map<String, Value>) -> NodeType,
    /// What questions ask for it as; `None` for types that no question asks for.
    pub asked: Option<Kind>,
    name: NameRule,
}

fn vulnerability(object: &Map<String, Value>) -> NodeType {
    if carries_cve(object) {
        NodeType::Cve
    } else {
        NodeType::Vulnerability
    }
}

macro_rules! stix_types {
    ($($stix:literal $node:expr, $asked:expr, $name:ident;)+) => {
        /// The types of STIX objects that are nodes.
        pub static STIX_TYPES: [StixRow; [$($stix),+].len()] = [
            $(StixRow { stix: $stix, node: $node, asked: $asked, name: NameRule::$name }),+
        ];
    };
}

stix_types! {
    // STIX type                   node type             asked as                    name
    "threat-actor"                 |_| NodeType::Actor,  Some(Kind::Group),          Required;
    "intrusion-set"                |_| NodeType::Actor,  Some(Kind::Group),          Required;
    "campaign"                     |_| NodeType::Actor,  Some(Kind::Campaign),       Required;
    "malware"                      |_| NodeType::Tool,   Some(Kind::Software),       Malware;
    "tool"                         |_| NodeType::Tool,   Some(Kind::Software),       Required;
    "vulnerability"                vulnerability,        Some(Kind::Vulnerability),  Required;
    "attack-pattern"               |_| NodeType::Attck,  Some(Kind::Technique),      Required;
    "course-of-action"             |_| NodeType::Attck,  Some(Kind::Mitigation),     Required;
    "indicator"                    |_| NodeType::Ioc,    Some(Kind::Indicator),      Pattern;
    // What the objects above refer to, and what reports on them.
    "grouping"                     |_| NodeType::Osint,  Some(Kind::Report),         Title;
    "identity"                     |_| NodeType::Osint,  Some(Kind::Identity),       Title;
    "incident"                     |_| NodeType::Osint,  Some(Kind::Incident),       Title;
    "infrastructure"               |_| NodeType::Osint,  Some(Kind::Infrastructure), Title;
    "language-content"             |_| NodeType::Osint,  None,                       Title;
    "location"                     |_| NodeType::Osint,  Some(Kind::Place),          Title;
    "malware-analysis"             |_| NodeType::Osint,  Some(Kind::Report),         Title;
    "note"                         |_| NodeType::Osint,  Some(Kind::Note),           Title;
    "observed-data"                |_| NodeType::Osint,  Some(Kind::Sighting),       Title;
    "opinion"                      |_| NodeType::Osint,  Some(Kind::Note),           Title;
    "report"                       |_| NodeType::Osint,  Some(Kind::Report),         Title;
    "sighting"                     |_| NodeType::Osint,  Some(Kind::Sighting),       Title;
    // Observables.
    "artifact"                     |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "autonomous-system"            |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "directory"                    |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "domain-name"                  |_| NodeType::Ioc,    Some(Kind::Domain),         Title;
    "email-addr"                   |_| NodeType::Ioc,    Some(Kind::Email),          Title;
    "email-message"                |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "file"                         |_| NodeType::Ioc,    Some(Kind::File),           Title;
    "ipv4-addr"                    |_| NodeType::Ioc,    Some(Kind::Address),        Title;
    "ipv6-addr"                    |_| NodeType::Ioc,    Some(Kind::Address),        Title;
    "mac-addr"                     |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "mutex"                        |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "network-traffic"              |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "process"                      |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "software"                     |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "url"                          |_| NodeType::Ioc,    Some(Kind::Url),            Title;
    "user-account"                 |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "windows-registry-key"         |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    "x509-certificate"             |_| NodeType::Ioc,    Some(Kind::Observable),     Title;
    // ATT&CK's own types.
    "x-mitre-analytic"             |_| NodeType::Attck,  Some(Kind::Analytic),       Title;
    "x-mitre-asset"                |_| NodeType::Attck,  Some(Kind::Asset),          Title;
    "x-mitre-collection"           |_| NodeType::Attck,  None,                       Title;
    "x-mitre-data-component"       |_| NodeType::Attck,  Some(Kind::DataComponent),  Title;
    "x-mitre-data-source"          |_| NodeType::Attck,  Some(Kind::DataSource),     Title;
    "x-mitre-detection-strategy"   |_| NodeType::Attck,  Some(Kind::Detection),      Title;
    "x-mitre-log-source"           |_| NodeType::Attck,  None,                       Title;
    "x-mitre-matrix"               |_| NodeType::Attck,  None,                       Title;
    "x-mitre-tactic"               |_| NodeType::Attck,  Some(Kind::Tactic),         Title;
}

/// The row of all types that the standard does not know (STIX 2.1, section 11).
static CUSTOM: StixRow = StixRow {
    stix: "",
    node: |_| NodeType::Osint,
    asked: None,
    name: NameRule::Title,
};

/// Types whose objects are no nodes: they describe others.
const NO_NODES: [&str; 4] = [
    "bundle",
    "extension-definition",
    "marking-definition",
    "relationship",
];

static OF_STIX_TYPE: LazyLock<HashMap<&str, &StixRow>> =
    LazyLock::new(|| STIX_TYPES.iter().map(|row| (row.stix, row)).collect());

/// Whether the object with this STIX id is a node beyond those that the contract counts.
pub fn is_context_node(stix_id: &str) -> bool {
    type_of_id(stix_id)
        .and_then(StixRow::of)
        .is_some_and(StixRow::is_context)
}

impl StixRow {
    /// The row of a STIX type; `None` if its objects are no nodes.
    pub fn of(stix_type: &str) -> Option<&'static Self> {
        if NO_NODES.contains(&stix_type) {
            return None;
        }
        Some(OF_STIX_TYPE.get(stix_type).copied().unwrap_or(&CUSTOM))
    }

    /// Whether objects of this type are nodes beyond those that the contract counts.
    pub fn is_context(&self) -> bool {
        self.asked.is_none_or(Kind::is_context)
    }

    /// The node type of an object.
    pub fn node_type(&self, object: &Map<String, Value>) -> NodeType {
        (self.node)(object)
    }

    /// The text that an object holds; empty if there is none.
    pub fn text_of<'o>(&self, object: &'o Map<String, Value>) -> Cow<'o, str> {
        if self.is_context() {
            return text_of(object);
        }
        text(object, "description").unwrap_or_default().into()
    }

    /// The name of an object's node; `None` if the type requires a name and the object has none.
    pub fn name_of(&self, object: &Map<String, Value>) -> Option<String> {
        let name = text(object, "name").filter(|name| !name.trim().is_empty());
        if let Some(name) = name {
            return Some(name.to_owned());
        }
        match self.name {
            NameRule::Title => Some(title_of(object)),
            NameRule::Pattern => Some(text(object, "pattern").unwrap_or_default().to_owned()),
            NameRule::Malware if !flag(object, "is_family") => Some(nameless_malware(object)),
            NameRule::Required | NameRule::Malware => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_local_name_of_several_kinds_is_the_one_for_names() {
        for kind in EntityKind::ALL {
            let found = EntityKind::of_local(kind.row().local).unwrap();
            assert_eq!(found.row().local, kind.row().local);
            assert_eq!(found.node_type(), kind.node_type(), "{kind}");
        }
        assert_eq!(EntityKind::of_local("actor"), Some(EntityKind::Actor));
        assert_eq!(EntityKind::of_local("tool"), Some(EntityKind::Tool));
        assert_eq!(EntityKind::of_local("person"), None);
    }

    #[test]
    fn what_is_asked_for_has_the_node_type_of_what_is_asked() {
        for kind in EntityKind::ALL {
            let asked = kind.row().asked;
            assert!(
                asked.is_none_or(|asked| asked.node_types().contains(&kind.node_type())),
                "{kind}"
            );
        }
        for row in &STIX_TYPES {
            let node_type = row.node_type(&Map::new());
            let asked = row
                .asked
                .is_none_or(|asked| asked.node_types().contains(&node_type));
            assert!(asked, "{}", row.stix);
        }
    }

    #[test]
    fn a_vulnerability_with_a_cve_id_is_a_cve() {
        for (object, want) in [
            (json!({"name": "CVE-2024-3094"}), NodeType::Cve),
            (
                json!({"name": "xz", "external_references": [{"source_name": "cve", "external_id": "CVE-2024-3094"}]}),
                NodeType::Cve,
            ),
            (json!({"name": "CVE-2024"}), NodeType::Vulnerability),
            (
                json!({"name": "a CVE-2024-3094 variant"}),
                NodeType::Vulnerability,
            ),
        ] {
            assert_eq!(
                StixRow::of("vulnerability")
                    .unwrap()
                    .node_type(object.as_object().unwrap()),
                want,
                "{object}"
            );
        }
    }
}
