//! What a value is a part of: the host of a URL or an e-mail address, and the domains above a host, up to the one that
//! somebody registered (by the public-suffix list). A public suffix is nobody's, so it is never a parent.

use super::LookupMatch;
use crate::domain::kinds::EntityKind;
use crate::domain::network::address;

/// Most domains above a host that are looked up, those nearest to the registered one.
const MAX_DOMAINS: usize = 16;

/// What a value is a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub matched: LookupMatch,
    pub kind: EntityKind,
    pub value: String,
}

impl Parent {
    fn domain(matched: LookupMatch, value: &str) -> Self {
        Self {
            matched,
            kind: EntityKind::Domain,
            value: value.to_owned(),
        }
    }
}

/// The host of a URL or of an e-mail address in normal form.
pub fn host_of(kind: EntityKind, value: &str) -> Option<Parent> {
    let host = if kind == EntityKind::Url {
        host_of_url(value)
    } else {
        let at = value.rsplit_once('@').filter(|_| kind == EntityKind::Email);
        at.map(|(_, host)| host)
    };
    let host = host.filter(|host| !host.is_empty())?;
    let Some(address) = address(host) else {
        return Some(Parent::domain(LookupMatch::Host, host));
    };
    let kind = if address.is_ipv4() {
        EntityKind::Ipv4
    } else {
        EntityKind::Ipv6
    };
    Some(Parent {
        matched: LookupMatch::Host,
        kind,
        value: address.to_string(),
    })
}

/// The parents of a value in normal form, the closest first.
pub fn parents_of(kind: EntityKind, value: &str) -> Vec<Parent> {
    if kind == EntityKind::Domain {
        return domains_above(value);
    }
    let Some(host) = host_of(kind, value) else {
        return Vec::new();
    };
    if host.kind != EntityKind::Domain {
        return vec![host];
    }
    // A host that is a public suffix itself serves many.
    if psl::domain_str(&host.value).is_none() {
        return Vec::new();
    }
    let above = domains_above(&host.value);
    std::iter::once(host).chain(above).collect()
}

/// The host of a URL in normal form, without brackets.
fn host_of_url(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next();
    }
    host.split(':').next()
}

fn domains_above(host: &str) -> Vec<Parent> {
    let Some(registered) = psl::domain_str(host) else {
        return Vec::new();
    };
    let dots = host.match_indices('.').filter_map(|(at, _)| host.get(at + 1..));
    let above: Vec<&str> = dots.filter(|above| above.len() >= registered.len()).collect();
    let skipped = above.len().saturating_sub(MAX_DOMAINS);
    let above = above.into_iter().skip(skipped);
    above
        .map(|above| Parent::domain(LookupMatch::ParentDomain, above))
        .collect()
}
