//! What counts as one address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The network that requests from an address are counted under. IPv6 uses the /64 network, as one host owns all its
/// addresses (RFC 4291 section 2.5.1). IPv4-mapped addresses are IPv4, and all loopback addresses are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

impl Network {
    /// The network of an address.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            own if own.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V4(v4) => IpAddr::V4(v4),
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_network_each() {
        let of = |address: &str| Network::of(address.parse().unwrap()).to_string();
        for (address, network) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.8.9.1", "127.0.0.1"),
            ("::1", "127.0.0.1"),
            ("::ffff:127.0.0.3", "127.0.0.1"),
            ("198.51.100.7", "198.51.100.7"),
            ("::ffff:198.51.100.7", "198.51.100.7"),
            ("2001:db8:1:2::1", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ] {
            assert_eq!(of(address), network, "{address}");
        }
    }
}
