//! Classes of IP addresses, from the IANA registries of special-purpose addresses (RFC 6890).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::rule::Rule;

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, rule: Rule) -> (Ipv4Net, Rule) {
    (Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix), rule)
}

const fn v6(segments: [u16; 8], prefix: u8, rule: Rule) -> (Ipv6Net, Rule) {
    let [a, b, c, d, e, f, g, h] = segments;
    let first = Ipv6Addr::new(a, b, c, d, e, f, g, h);
    (Ipv6Net::new_assert(first, prefix), rule)
}

/// A narrower range stands before a wider one.
const V4: [(Ipv4Net, Rule); 20] = [
    v4(0, 0, 0, 0, 32, Rule::UnspecifiedAddress),
    // "This network" (RFC 791).
    v4(0, 0, 0, 0, 8, Rule::ReservedAddress),
    v4(10, 0, 0, 0, 8, Rule::PrivateAddress),
    // Alibaba Cloud; Azure's has an address that looks public.
    v4(100, 100, 100, 200, 32, Rule::MetadataAddress),
    v4(168, 63, 129, 16, 32, Rule::MetadataAddress),
    v4(100, 64, 0, 0, 10, Rule::SharedAddress),
    v4(127, 0, 0, 0, 8, Rule::LoopbackAddress),
    v4(169, 254, 169, 254, 32, Rule::MetadataAddress),
    v4(169, 254, 0, 0, 16, Rule::LinkLocalAddress),
    v4(172, 16, 0, 0, 12, Rule::PrivateAddress),
    // IETF protocol assignments, and the relays of 6to4 (RFC 7526).
    v4(192, 0, 0, 0, 24, Rule::ReservedAddress),
    v4(192, 88, 99, 0, 24, Rule::ReservedAddress),
    v4(192, 0, 2, 0, 24, Rule::DocumentationAddress),
    v4(192, 168, 0, 0, 16, Rule::PrivateAddress),
    v4(198, 18, 0, 0, 15, Rule::BenchmarkAddress),
    v4(198, 51, 100, 0, 24, Rule::DocumentationAddress),
    v4(203, 0, 113, 0, 24, Rule::DocumentationAddress),
    v4(224, 0, 0, 0, 4, Rule::MulticastAddress),
    v4(255, 255, 255, 255, 32, Rule::BroadcastAddress),
    v4(240, 0, 0, 0, 4, Rule::ReservedAddress),
];

/// NAT64 with prefixes of one's own (RFC 8215).
const LOCAL_NAT64: (Ipv6Net, Rule) = v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Rule::EmbeddedAddress);
/// RFC 4380.
const TEREDO: (Ipv6Net, Rule) = v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Rule::EmbeddedAddress);
/// RFC 3056.
const SIX_TO_FOUR: (Ipv6Net, Rule) = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Rule::EmbeddedAddress);
const V6: [(Ipv6Net, Rule); 18] = [
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, Rule::UnspecifiedAddress),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, Rule::LoopbackAddress),
    // IPv4-compatible, mapped (RFC 4291 section 2.5.5) and translated (RFC 2765).
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, Rule::EmbeddedAddress),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, Rule::EmbeddedAddress),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Rule::EmbeddedAddress),
    // NAT64 (RFC 6052).
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Rule::EmbeddedAddress),
    LOCAL_NAT64,
    TEREDO,
    SIX_TO_FOUR,
    v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, Rule::BenchmarkAddress),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Rule::DocumentationAddress),
    // RFC 9637.
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Rule::DocumentationAddress),
    // IETF protocol assignments (RFC 2928).
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Rule::ReservedAddress),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Rule::LinkLocalAddress),
    // AWS; other clouds answer at the link-local addresses above.
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Rule::MetadataAddress),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Rule::UniqueLocalAddress),
    // Site-local, deprecated (RFC 3879).
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Rule::UniqueLocalAddress),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Rule::MulticastAddress),
];
/// The only range from which public addresses are assigned (RFC 4291 section 2.4, IANA).
const GLOBAL_UNICAST: (Ipv6Net, Rule) = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, Rule::ReservedAddress);

/// The class of an address; `None` for public ones.
pub(super) fn class(address: IpAddr) -> Option<Rule> {
    match address {
        IpAddr::V4(address) => V4
            .iter()
            .find(|range| range.0.contains(&address))
            .map(|range| range.1),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v6(address: Ipv6Addr) -> Option<Rule> {
    if let Some(range) = V6.iter().find(|range| range.0.contains(&address)) {
        return Some(range.1);
    }
    if !GLOBAL_UNICAST.0.contains(&address) {
        return Some(Rule::ReservedAddress);
    }
    is_isatap(address).then_some(Rule::EmbeddedAddress)
}

/// The IPv4 address that an IPv6 address carries, or the address itself.
pub(super) fn unwrap_embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(outer) = address else {
        return address;
    };
    if class_v6(outer) != Some(Rule::EmbeddedAddress) {
        return address;
    }
    let [_, one, two, three, four, five, low, last] = outer.segments();
    let embedded =
        |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    if SIX_TO_FOUR.0.contains(&outer) {
        return embedded(one, two);
    }
    if TEREDO.0.contains(&outer) {
        // The bits of the client's address are inverted.
        return embedded(!low, !last);
    }
    if LOCAL_NAT64.0.contains(&outer) && (low, last) == (0, 0) {
        // RFC 6052 section 2.2: behind a prefix of 48 bits the address goes around bits 64 to 71.
        return embedded(three, four << 8 | five >> 8);
    }
    embedded(low, last)
}

/// An interface identifier that carries an IPv4 address (RFC 5214 section 6.1).
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, high, low, ..] = address.segments();
    low == 0x5efe && matches!(high, 0 | 0x200)
}
