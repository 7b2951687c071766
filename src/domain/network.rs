//! Addresses and networks of either version of IP, in CIDR notation (RFC 4632, RFC 4291).
//!
//! An IPv4 address in an IPv6 one (`::ffff:192.0.2.1`) is the IPv4 address. Octets with leading zeros are refused: some
//! programs read them as octal numbers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an IPv6 address before an IPv4 one in it.
const MAPPED_BITS: u8 = 96;
/// The bits of an IPv6 address that say that an IPv4 one follows.
const MAPPED: u128 = 0xffff_0000_0000;

/// The version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V4,
    V6,
}

impl Version {
    pub const BOTH: [Version; 2] = [Version::V4, Version::V6];

    /// Number of bits of an address.
    pub fn bits(self) -> u8 {
        match self {
            Version::V4 => 32,
            Version::V6 => 128,
        }
    }
}

/// A network, or an address, which is the network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    pub version: Version,
    /// Its first address as a number.
    first: u128,
    /// Number of leading bits that all of its addresses share.
    length: u8,
}

/// The address that a text states.
pub fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

impl Network {
    /// The network of so many leading bits around an address; `None` if there are not so many.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let (version, number, length) = match address {
            IpAddr::V4(address) => (Version::V4, u128::from(u32::from(address)), length),
            IpAddr::V6(address) => {
                let number = u128::from(address);
                match (number & !u128::from(u32::MAX) == MAPPED).then(|| length.checked_sub(MAPPED_BITS)) {
                    Some(Some(length)) => (Version::V4, number & u128::from(u32::MAX), length),
                    _ => (Version::V6, number, length),
                }
            }
        };
        let host = version.bits().checked_sub(length)?;
        Some(Self {
            version,
            first: number & !low_bits(host),
            length,
        })
    }

    /// The address with this number; `None` if the version has no such number.
    pub fn of_number(version: Version, number: u128) -> Option<Self> {
        let length = version.bits();
        (number <= low_bits(length)).then_some(Self {
            version,
            first: number,
            length,
        })
    }

    /// The network or the address that a text states. Bits behind the length are taken as zero.
    pub fn read(text: &str) -> Option<Self> {
        let (ip, length) = match text.split_once('/') {
            Some((ip, length)) => (ip.trim(), Some(length.trim())),
            None => (text.trim(), None),
        };
        let ip: IpAddr = ip.parse().ok()?;
        let bits = if ip.is_ipv4() { Version::V4 } else { Version::V6 }.bits();
        let length = match length {
            None => bits,
            Some(length) if length.bytes().all(|b| b.is_ascii_digit()) => length.parse().ok()?,
            Some(_) => return None,
        };
        Self::new(ip, length)
    }

    /// The network of so many leading bits around this one; `None` if it has no more bits than that.
    pub fn widened(&self, length: u8) -> Option<Self> {
        let host = self.version.bits().checked_sub(length)?;
        (length <= self.length).then_some(Self {
            first: self.first & !low_bits(host),
            length,
            ..*self
        })
    }

    /// Its first address as a number.
    pub fn first(&self) -> u128 {
        self.first
    }

    /// Its last address as a number.
    pub fn last(&self) -> u128 {
        self.first | low_bits(self.version.bits() - self.length)
    }

    /// Number of leading bits that all of its addresses share.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether it is a single address.
    pub fn is_address(&self) -> bool {
        self.length == self.version.bits()
    }

    /// Whether all addresses of the other are addresses of this one.
    pub fn contains(&self, other: &Network) -> bool {
        self.version == other.version && self.first <= other.first && other.last() <= self.last()
    }
}

/// As many ones.
fn low_bits(count: u8) -> u128 {
    match count {
        128.. => u128::MAX,
        count => (1 << count) - 1,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = match self.version {
            // The number of an IPv4 address has 32 bits.
            Version::V4 => IpAddr::V4(Ipv4Addr::from(self.first as u32)),
            Version::V6 => IpAddr::V6(Ipv6Addr::from(self.first)),
        };
        write!(f, "{first}/{}", self.length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_network_is_read_in_any_spelling_and_written_in_one() {
        for (text, want) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("192.0.2.77/24", "192.0.2.0/24"),
            ("192.0.2.77", "192.0.2.77/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("255.255.255.255/0", "0.0.0.0/0"),
            ("2001:DB8:0::1/32", "2001:db8::/32"),
            ("::/0", "::/0"),
            ("::ffff:192.0.2.77", "192.0.2.77/32"),
            ("::ffff:192.0.2.77/120", "192.0.2.0/24"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::/64", "::/64"),
        ] {
            let network = Network::read(text).unwrap();
            assert_eq!(network.to_string(), want, "{text}");
            assert_eq!(Network::read(want), Some(network), "{text}");
        }
        for text in [
            "192.0.2.0/33",
            "192.0.02.0/24",
            "2001:db8::/129",
            "192.0.2.0/",
            "192.0.2.0/-1",
            "192.0.2.0/+8",
            "192.0.2/24",
            "example.com/24",
            "",
            "/24",
        ] {
            assert_eq!(Network::read(text), None, "{text}");
        }
    }

    #[test]
    fn networks_contain_those_of_their_own_version() {
        let network = |text| Network::read(text).unwrap();
        for (outer, inner, want) in [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.2.0/24", true),
            ("192.0.2.0/25", "192.0.2.0/24", false),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("::/0", "192.0.2.1", false),
            ("::ffff:0:0/96", "192.0.2.1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
        ] {
            assert_eq!(network(outer).contains(&network(inner)), want, "{outer} {inner}");
        }
    }

    proptest! {
        #[test]
        fn a_network_holds_its_ends_and_nothing_beside_them(number: u128, length in 0u8..=128) {
            let network = Network::new(IpAddr::V6(Ipv6Addr::from(number | 1 << 127)), length).unwrap();
            let at = |number: u128| Network { version: Version::V6, first: number, length: 128 };
            prop_assert!(network.contains(&at(network.first())) && network.contains(&at(network.last())));
            for beside in [network.first().checked_sub(1), network.last().checked_add(1)].into_iter().flatten() {
                prop_assert!(!network.contains(&at(beside)));
            }
            prop_assert_eq!(Network::read(&network.to_string()), Some(network));
        }
    }
}
