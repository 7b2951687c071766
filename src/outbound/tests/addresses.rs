//! Properties: no address of a refused range gets through, in whatever spelling.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Written apart from the implementation, after the IANA registries.
const REFUSED_V4: [&str; 17] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
];
const REFUSED_V6: [&str; 21] = [
    "::/128",
    "::1/128",
    "::/96",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2001::/23",
    "2001:2::/48",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "5f00::/16",
    "8000::/2",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

/// The address as a number, and how many of its low bits are free.
fn range(cidr: &str) -> (u128, u32) {
    let (first, prefix) = cidr.split_once('/').unwrap();
    let prefix: u32 = prefix.parse().unwrap();
    match first.parse::<IpAddr>().unwrap() {
        IpAddr::V4(first) => (u128::from(first.to_bits()), 32 - prefix),
        IpAddr::V6(first) => (first.to_bits(), 128 - prefix),
    }
}

fn within_range(cidr: &str, address: u128) -> bool {
    let (first, free) = range(cidr);
    first.checked_shr(free) == address.checked_shr(free)
}

fn inside(cidr: &str, random: u128) -> u128 {
    let (first, free) = range(cidr);
    let mask = 1u128.checked_shl(free).map_or(u128::MAX, |one| one - 1);
    first | (random & mask)
}

/// Every spelling of an IPv4 address that is not dotted decimal, as parsers of URLs and resolvers know them.
fn odd_spellings(address: Ipv4Addr) -> Vec<String> {
    let bits = address.to_bits();
    let [a, b, c, d] = address.octets();
    let (low16, low24) = (bits & 0xffff, bits & 0xff_ffff);
    let dotted = address.to_string();
    let wide = |text: &str| {
        text.chars()
            .map(|c| char::from_u32(c as u32 - 0x20 + 0xff00).unwrap())
            .collect::<String>()
    };
    let encoded: String = dotted.bytes().map(|byte| format!("%{byte:02x}")).collect();
    vec![
        bits.to_string(),
        format!("{bits:#x}"),
        format!("0X{bits:X}"),
        format!("0x{bits:016x}"),
        format!("0{bits:o}"),
        format!("{a}.{low24}"),
        format!("{a}.{b}.{low16}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a:#x}.0{b:o}.{c}.{d}"),
        format!("{a:#x}.{low24:#x}"),
        format!("{a}.{b}.{c}.0{d:o}"),
        format!("00{a:o}.{b}.{c}.{d}"),
        format!("{dotted}."),
        encoded,
        wide(&dotted),
        format!("{a}\u{3002}{b}\u{ff0e}{c}.{d}"),
    ]
}

/// IPv6 addresses that carry an IPv4 address, in several notations.
fn embedding_spellings(address: Ipv4Addr, random: u64) -> Vec<String> {
    let bits = address.to_bits();
    let (high, low) = (bits >> 16, bits & 0xffff);
    let (r, s) = (random & 0xffff, random >> 48);
    vec![
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{high:X}:{low:X}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low:x}]"),
        format!("[0000:0000:0000:0000:0000:ffff:{high:04x}:{low:04x}]"),
        format!("[::{address}]"),
        format!("[::{high:x}:{low:x}]"),
        format!("[::ffff:0:{address}]"),
        format!("[64:ff9b::{address}]"),
        format!("[64:FF9B::{high:x}:{low:x}]"),
        format!("[64:ff9b:1:{r:x}::{high:x}:{low:x}]"),
        format!("[2002:{high:x}:{low:x}::]"),
        format!("[2002:{high:x}:{low:x}:{r:x}::{s:x}]"),
        format!("[2001:0:{r:x}:{s:x}::{:x}:{:x}]", !high & 0xffff, !low & 0xffff),
        format!("[2a00:{r:x}::5efe:{address}]"),
        format!("[2a00:{r:x}:0:0:200:5efe:{high:x}:{low:x}]"),
    ]
}

/// A policy whose list allows the host of the URL, so that only the rules on addresses can refuse it.
fn verdict(url: &str) -> &'static str {
    let parsed = reqwest::Url::parse(url);
    let host = parsed.ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.unwrap_or_default();
    rule_of(public(&[host.as_str()], false).check(url))
}

fn assert_refused(url: &str) -> Result<(), TestCaseError> {
    let rule = verdict(url);
    prop_assert!(
        !matches!(rule, "ok" | "host-not-allowed"),
        "{} gave {}",
        url,
        rule
    );
    Ok(())
}

proptest! {
    #[test]
    fn no_refused_ipv4_address_gets_through(cidr in select(&REFUSED_V4[..]), random: u128) {
        let address = Ipv4Addr::from_bits(u32::try_from(inside(cidr, random)).unwrap());
        let policy = public(&[], false);
        prop_assert!(policy.refuses(address.into()).is_some());
        assert_refused(&format!("https://{address}/"))?;
    }

    #[test]
    fn no_odd_spelling_of_any_ipv4_address_gets_through(bits: u32, random: u64) {
        let address = Ipv4Addr::from_bits(bits);
        for host in odd_spellings(address).iter().chain(&embedding_spellings(address, random)) {
            assert_refused(&format!("https://{host}/"))?;
            assert_refused(&format!("https://{host}:8443/x?y"))?;
        }
    }

    #[test]
    fn an_ipv4_address_in_usual_notation_is_refused_only_for_its_range(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let special = REFUSED_V4.iter().any(|cidr| within_range(cidr, u128::from(bits)));
        prop_assert_eq!(verdict(&format!("https://{address}/")) != "ok", special);
    }

    #[test]
    fn no_refused_ipv6_address_gets_through(cidr in select(&REFUSED_V6[..]), random: u128) {
        let address = Ipv6Addr::from_bits(inside(cidr, random));
        let policy = public(&[], false);
        prop_assert!(policy.refuses(address.into()).is_some());
        let full = address.segments().map(|segment| format!("{segment:04X}")).join(":");
        let short = address.segments().map(|segment| format!("{segment:x}")).join(":");
        let compressed = address.to_string();
        for spelling in [&full, &short, &compressed, &compressed.to_uppercase()] {
            assert_refused(&format!("https://[{spelling}]/"))?;
        }
    }

    #[test]
    fn an_ipv6_address_of_the_global_range_is_refused_only_for_its_range(random: u128) {
        let bits = inside("2000::/3", random);
        let special = REFUSED_V6.iter().any(|cidr| within_range(cidr, bits));
        let isatap = bits >> 32 & 0xfdff_ffff == 0x5efe;
        let url = format!("https://[{}]/", Ipv6Addr::from_bits(bits));
        prop_assert_eq!(verdict(&url) != "ok", special || isatap);
    }

    #[test]
    fn an_endpoint_never_leads_to_link_local_addresses(low: u16, random: u64) {
        let address = Ipv4Addr::from_bits(0xa9fe_0000 | u32::from(low));
        let hosts = embedding_spellings(address, random);
        for host in odd_spellings(address).iter().chain(&hosts).chain([&address.to_string()]) {
            let Ok(url) = reqwest::Url::parse(&format!("http://{host}/")) else { continue };
            let rule = rule_of(Policy::for_endpoint(&url).check(url.as_str()));
            prop_assert!(matches!(rule, "link-local-address" | "metadata-address"), "{} gave {}", host, rule);
        }
    }

    #[test]
    fn any_text_is_judged_without_panic(text in "(https?:)?[/\\\\]{0,3}\\PC{0,40}", location in "\\PC{0,40}") {
        let policy = public(&["*.example.org"], true);
        let from = reqwest::Url::parse("https://a.example.org/").unwrap();
        let checked = [policy.check(&text), policy.next(&from, location.as_bytes())];
        for url in checked.into_iter().flatten() {
            prop_assert!(url.host_str().is_some_and(|host| host.ends_with(".example.org")), "{}", url);
        }
    }
}
