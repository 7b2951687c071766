use proptest::prelude::*;
use serde_json::json;

use super::*;

fn lists(all: &[serde_json::Value]) -> Warninglists {
    let mut builder = Builder::default();
    for list in all {
        builder.add(list.to_string().as_bytes()).unwrap();
    }
    builder.build().unwrap()
}

#[test]
fn each_type_of_list_compares_in_its_own_way() {
    use EntityKind::{Cidr, Domain, Email, FileName, Ipv4, Ipv6, Url};
    let all = lists(&[
        json!({"list": ["Exact.net", "http://exact.net/A", "198.51.100.7", "2001:DB8::7"], "name": "string", "type": "string"}),
        json!({"list": [".host.net", "*.wild.net", "bücher.de"], "name": "hostname", "type": "hostname"}),
        json!({"list": ["203.0.113.0/24", "203.0.112.0/24", "2001:db8:7::/48", "nonsense"], "name": "cidr", "type": "cidr"}),
        json!({"list": ["part.", ""], "name": "substring", "type": "substring"}),
        json!({"list": ["/^re[0-9]+\\.net$/i", "(", "^plain"], "name": "regex", "type": "regex"}),
        json!({"list": ["mail.net"], "name": "mail", "type": "hostname", "matching_attributes": ["email-src", "email-dst"]}),
    ]);
    for (kind, value, want) in [
        (Domain, "exact.net", "string"),
        (Domain, "sub.exact.net", ""),
        (Url, "http://exact.net/A", "string"),
        (Ipv4, "198.51.100.7", "string"),
        (Ipv6, "2001:db8::7", "string"),
        (Domain, "host.net", "hostname"),
        (Domain, "a.b.host.net", "hostname"),
        (Domain, "ahost.net", ""),
        (Domain, "x.wild.net", "hostname"),
        (Domain, "xn--bcher-kva.de", "hostname"),
        (Url, "https://a.host.net:8443/x", "hostname"),
        (Ipv4, "203.0.113.9", "cidr"),
        (Cidr, "203.0.112.0/23", "cidr"),
        (Cidr, "203.0.112.0/22", ""),
        (Ipv6, "2001:db8:7::1", "cidr"),
        (Url, "http://203.0.113.9/x", "cidr"),
        (Domain, "a.part.net", "substring"),
        (FileName, "PART.exe", "substring"),
        (Domain, "re77.net", "regex"),
        (Domain, "re.net", ""),
        (Domain, "plain.net", "regex"),
        (Email, "kit@mail.net", "mail"),
        (Domain, "mail.net", ""),
    ] {
        let want: Vec<&str> = want.split(' ').filter(|name| !name.is_empty()).collect();
        assert_eq!(all.of(Some(kind), value), want, "{value}");
    }
    assert_eq!((all.len(), all.entries()), (6, 17));
}

#[test]
fn what_is_no_list_is_refused_with_the_reason() {
    for (text, want) in [
        ("[]", "must be an object"),
        ("{\"name\":\"x\",\"type\":\"string\"}", "missing field `list`"),
        (
            "{\"name\":\"x\",\"type\":\"other\",\"list\":[]}",
            "unknown variant `other`",
        ),
        (
            "{\"name\":\" \",\"type\":\"string\",\"list\":[]}",
            "name: must not be empty",
        ),
        (
            "{\"name\":\"x\",\"type\":\"string\",\"list\":{}}",
            "invalid type: map",
        ),
        (
            "{\"name\":\"x\",\"type\":\"string\",\"list\":[[]]}",
            "invalid type: sequence",
        ),
        ("{", "EOF"),
        ("", "must be an object"),
    ] {
        let error = Builder::default().add(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(want), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn stretches_say_what_comparing_each_network_says(
        networks in prop::collection::vec((any::<u8>(), 20u8..=32, 0u16..4), 0..30),
        asked in (any::<u8>(), 22u8..=32),
    ) {
        let network = |last: u8, length: u8| Network::read(&format!("192.0.2.{last}/{length}")).unwrap();
        let all: Vec<serde_json::Value> = (0..4u16)
            .map(|list| {
                let own = networks.iter().filter(|(.., of)| *of == list);
                let own: Vec<String> = own.map(|(last, length, _)| network(*last, *length).to_string()).collect();
                json!({"list": own, "name": list.to_string(), "type": "cidr"})
            })
            .collect();
        let asked = network(asked.0, asked.1);
        let mut want: Vec<String> = Vec::new();
        for list in 0..4u16 {
            let covers = |address: u128| {
                let mut own = networks.iter().filter(|(.., of)| *of == list);
                own.any(|(last, length, _)| {
                    let network = network(*last, *length);
                    (network.first()..=network.last()).contains(&address)
                })
            };
            if (asked.first()..=asked.last()).all(covers) {
                want.push(list.to_string());
            }
        }
        prop_assert_eq!(lists(&all).of(Some(EntityKind::Cidr), &asked.to_string()), want);
    }
}
