//! Collects the entries of warninglists.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{RegexBuilder, RegexSet, RegexSetBuilder};

use super::file::{self, ListError, ListType};
use super::hashed::Hashed;
use super::stretches::Stretches;
use super::{Kinds, ListHead, ListId, SetId, Warninglists};
use crate::domain::kinds::EntityKind;
use crate::domain::network::{Network, Version, address};
use crate::domain::normal_form::normal_form;

/// Memory that the patterns of a list may take, in bytes.
const PATTERN_MEMORY: usize = 32 << 20;

/// Warninglists that are being read.
#[derive(Debug, Default)]
pub struct Builder {
    heads: Vec<ListHead>,
    hasher: RandomState,
    networks: [Vec<(Network, ListId)>; 2],
    values: Vec<(u64, ListId)>,
    hosts: Vec<(u64, ListId)>,
    parts: Vec<(String, ListId)>,
    patterns: Vec<(RegexSet, ListId)>,
    entries: usize,
}

/// The form in which whole values are compared.
pub(super) fn comparable(value: &str) -> String {
    if let Some(address) = address(value) {
        return address.to_string();
    }
    if value.contains('/')
        && let Some(network) = Network::read(value)
    {
        return network.to_string();
    }
    value.trim().trim_end_matches('.').to_lowercase()
}

impl Builder {
    /// Adds the list of a file, instead of an earlier one of this name; returns the number of entries that can't be read.
    ///
    /// # Errors
    /// When the file is no warninglist.
    pub fn add(&mut self, json: &[u8]) -> Result<usize, ListError> {
        let head = file::head(json)?;
        let id = ListId::try_from(self.heads.len())
            .map_err(|_| ListError(format!("there are more than {} lists", ListId::MAX)))?;
        // Its entries stay, and count for nothing.
        for same in self.heads.iter_mut().filter(|known| *known.name == *head.name) {
            same.kinds = Kinds::NONE;
        }
        let mut skipped = 0;
        let mut patterns = Vec::new();
        file::each_entry(json, |entry| {
            let entry = entry.trim();
            self.entries += 1;
            let is_taken = match head.list_type {
                _ if entry.is_empty() => false,
                ListType::String => {
                    self.values
                        .push((Hashed::hash(&self.hasher, &comparable(entry)), id));
                    true
                }
                ListType::Hostname => {
                    let host = entry.trim_start_matches("*.").trim_start_matches('.');
                    let host = normal_form(EntityKind::Domain, host);
                    self.hosts.push((Hashed::hash(&self.hasher, &host), id));
                    true
                }
                ListType::Cidr => match Network::read(entry) {
                    Some(network) => {
                        let of_version = match network.version {
                            Version::V4 => &mut self.networks[0],
                            Version::V6 => &mut self.networks[1],
                        };
                        of_version.push((network, id));
                        true
                    }
                    None => false,
                },
                ListType::Substring => {
                    self.parts.push((entry.to_owned(), id));
                    true
                }
                ListType::Regex => {
                    let pattern = plain_pattern(entry);
                    let is_one = RegexBuilder::new(&pattern)
                        .size_limit(PATTERN_MEMORY)
                        .build()
                        .is_ok();
                    patterns.extend(is_one.then_some(pattern));
                    is_one
                }
            };
            skipped += usize::from(!is_taken);
        })?;
        if !patterns.is_empty() {
            let set = RegexSetBuilder::new(&patterns).size_limit(PATTERN_MEMORY).build();
            let set = set.map_err(|error| ListError(format!("list: {error}")))?;
            self.patterns.push((set, id));
        }
        self.heads.push(ListHead {
            name: Arc::from(head.name.trim()),
            kinds: kinds_of(&head.matching_attributes),
        });
        Ok(skipped)
    }

    /// The lists.
    ///
    /// # Errors
    /// When the parts of values take too much memory.
    pub fn build(self) -> Result<Warninglists, ListError> {
        let mut sets = Sets::default();
        let values = Hashed::of(self.hasher.clone(), self.values, |lists| sets.id_of(lists));
        let hosts = Hashed::of(self.hasher, self.hosts, |lists| sets.id_of(lists));
        let stretches = self
            .networks
            .map(|networks| Stretches::of(&networks, |lists| sets.id_of(lists)));
        let (parts, lists): (Vec<String>, Vec<ListId>) = self.parts.into_iter().unzip();
        let parts = match parts.is_empty() {
            true => None,
            false => {
                let automaton = AhoCorasick::builder()
                    .ascii_case_insensitive(true)
                    .match_kind(MatchKind::Standard)
                    .build(&parts);
                Some((automaton.map_err(|error| ListError(error.to_string()))?, lists))
            }
        };
        Ok(Warninglists {
            heads: self.heads,
            sets: sets.all,
            stretches,
            values,
            hosts,
            parts,
            patterns: self.patterns,
            entries: self.entries,
        })
    }
}

/// A pattern without the delimiters and flags of PHP: `/^x$/i`.
fn plain_pattern(entry: &str) -> String {
    let inner = entry.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    match inner {
        Some((pattern, flags)) if flags.chars().all(|flag| flag.is_ascii_lowercase()) => {
            match flags.contains('i') {
                true => format!("(?i){pattern}"),
                false => pattern.to_owned(),
            }
        }
        Some(_) | None => entry.to_owned(),
    }
}

/// The sets of lists that occur.
#[derive(Default)]
struct Sets {
    all: Vec<Box<[ListId]>>,
    known: HashMap<Box<[ListId]>, SetId>,
}

impl Sets {
    fn id_of(&mut self, lists: &[ListId]) -> SetId {
        if let Some(id) = self.known.get(lists) {
            return *id;
        }
        // There are fewer sets than entries, of which there are fewer than 2^32.
        let id = self.all.len() as SetId;
        self.all.push(lists.into());
        self.known.insert(lists.into(), id);
        id
    }
}

/// The kinds of values that attributes of these types have; all of them if none is named.
fn kinds_of(attributes: &[String]) -> Kinds {
    use EntityKind::{
        Asn, Bitcoin, Cidr, Cve, Domain, Email, FileName, FilePath, Ipv4, Ipv6, Md5, RegistryKey, Sha1,
        Sha256, Sha512, Url,
    };
    if attributes.is_empty() {
        return Kinds::ALL;
    }
    let mut kinds = Kinds::NONE;
    for part in attributes.iter().flat_map(|attribute| attribute.split('|')) {
        let named: &[EntityKind] = match part {
            "ip" | "ip-src" | "ip-dst" => &[Ipv4, Ipv6, Cidr],
            "domain" | "hostname" => &[Domain],
            "url" | "uri" | "link" => &[Url],
            "AS" => &[Asn],
            "btc" => &[Bitcoin],
            "vulnerability" => &[Cve],
            "filename" => &[FileName, FilePath],
            "regkey" => &[RegistryKey],
            "md5" => &[Md5],
            "sha1" => &[Sha1],
            "sha256" => &[Sha256],
            "sha512" => &[Sha512],
            email if email.starts_with("email") || email.ends_with("-email") => &[Email],
            _ => &[],
        };
        for kind in named {
            kinds = kinds.with(Kinds::of(Some(*kind)));
        }
        if named.is_empty() {
            kinds = kinds.with(Kinds::of(None));
        }
    }
    kinds
}
