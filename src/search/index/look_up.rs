//! Look-up of what is known by its name or identifier.

use uuid::Uuid;

use super::WorkspaceIndex;
use crate::domain::network::Network;
use crate::domain::question::AskedIdentifier;
use crate::search::document::{CompiledFilter, Filter, KeyHit};
use crate::search::error::SearchError;
use crate::search::keyword::networks::NetworkHits;
use crate::search::query::{SearchResults, identifiers};

impl WorkspaceIndex {
    /// The nodes that carry one of the keys as name, alias or identifier, in any spelling that [`canonical_key`] treats
    /// as equal.
    pub fn lookup(&self, keys: &[&str], filter: &Filter) -> Result<Vec<KeyHit>, SearchError> {
        self.activity.touch();
        let fresh = self.memtable();
        let segments = self.segments()?;
        let table = self.table();
        let allowed = CompiledFilter::of(filter);
        let keywords = self.keywords((&segments, &fresh), &table, &allowed);
        let mut hits = Vec::new();
        for (key, text) in keys.iter().enumerate() {
            let found = keywords.with_key(text, &allowed)?;
            hits.extend(found.into_iter().map(|found| KeyHit {
                key,
                node_id: found.node,
                kind: found.kind,
            }));
        }
        Ok(hits)
    }

    /// The keys from this one on, in order, that several nodes carry, with the first of these by id, until `take` returns
    /// false.
    pub fn shared_keys(
        &self,
        from: &str,
        filter: &Filter,
        take: impl FnMut(&str, Vec<Uuid>) -> bool,
    ) -> Result<(), SearchError> {
        self.activity.touch();
        let fresh = self.memtable();
        let segments = self.segments()?;
        let table = self.table();
        let allowed = CompiledFilter::of(filter);
        let keywords = self.keywords((&segments, &fresh), &table, &allowed);
        keywords.shared_keys(from, &allowed, take)
    }

    /// The nodes around and inside each of these networks, at most so many inside each.
    pub fn lookup_networks(
        &self,
        networks: &[Network],
        filter: &Filter,
        most_inside: usize,
    ) -> Result<Vec<NetworkHits>, SearchError> {
        self.activity.touch();
        let fresh = self.memtable();
        let segments = self.segments()?;
        let table = self.table();
        let allowed = CompiledFilter::of(filter);
        let keywords = self.keywords((&segments, &fresh), &table, &allowed);
        keywords.networks(networks, &allowed, most_inside)
    }

    /// The nodes that have or hold one of these identifiers, best first; what is merely like them is left out.
    pub fn find_identifiers(
        &self,
        identifiers: &[AskedIdentifier],
        filter: &Filter,
        limit: usize,
    ) -> Result<SearchResults, SearchError> {
        self.activity.touch();
        let fresh = self.memtable();
        let segments = self.segments()?;
        let table = self.table();
        let allowed = CompiledFilter::of(filter);
        let keywords = self.keywords((&segments, &fresh), &table, &allowed);
        identifiers::find(identifiers, &allowed, &keywords, &table, limit)
    }
}
