//! The client's address: the peer's, or that from `X-Forwarded-For` if the peer is a trusted proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use actix_web::HttpRequest;

/// The client's address: the last `X-Forwarded-For` entry that is not a trusted proxy. Entries before an unreadable one
/// are not trusted; the address of the proxy that added the unreadable entry is used instead.
pub fn client_ip(request: &HttpRequest, trusted: &[IpAddr]) -> IpAddr {
    let peer = peer_of(request);
    if !trusted.contains(&peer) {
        return peer;
    }
    let headers: Vec<&[u8]> = request
        .headers()
        .get_all("x-forwarded-for")
        .map(|value| value.as_bytes())
        .collect();
    let hops = headers
        .iter()
        .rev()
        .flat_map(|value| value.rsplit(|byte| *byte == b','));
    let mut client = peer;
    for hop in hops {
        let Some(address) = address_of(hop) else { break };
        client = address;
        if !trusted.contains(&address) {
            break;
        }
    }
    client
}

/// Whether a request comes from a trusted proxy.
pub fn is_trusted(request: &HttpRequest, trusted: &[IpAddr]) -> bool {
    trusted.contains(&peer_of(request))
}

fn peer_of(request: &HttpRequest) -> IpAddr {
    let peer = request.peer_addr();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |addr| plain(addr.ip()))
}

/// The address in an entry of the form `ip`, `ip:port` or `[v6]:port`.
fn address_of(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim();
    let bare = text.parse::<IpAddr>().ok();
    let address = bare.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(plain)
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn forwarded_for_counts_behind_a_trusted_proxy_only() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let request = |peer: &str| {
            TestRequest::default()
                .peer_addr(format!("{peer}:1").parse().unwrap())
                .insert_header(("x-forwarded-for", "192.0.2.66, 198.51.100.7, 10.0.0.2"))
                .to_http_request()
        };
        let trusted = [ip("10.0.0.1"), ip("10.0.0.2")];
        assert_eq!(client_ip(&request("10.0.0.1"), &trusted), ip("198.51.100.7"));
        assert_eq!(client_ip(&request("203.0.113.9"), &trusted), ip("203.0.113.9"));
        assert_eq!(client_ip(&request("10.0.0.1"), &[]), ip("10.0.0.1"));
    }

    #[test]
    fn the_walk_from_the_right_stops_at_the_first_hop_that_is_no_trusted_proxy() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let trusted = ["10.0.0.1", "10.0.0.2", "2001:db8::2"].map(ip);
        for (headers, want) in [
            (&["192.0.2.66, 198.51.100.7:4711"][..], "198.51.100.7"),
            (&["192.0.2.66, [2001:db8::7]:4711"], "2001:db8::7"),
            (&["192.0.2.66, 2001:db8::7"], "2001:db8::7"),
            (
                &["192.0.2.66,198.51.100.7:1,10.0.0.2:443,[2001:db8::2]:443"],
                "198.51.100.7",
            ),
            (&["192.0.2.66, ::ffff:198.51.100.7"], "198.51.100.7"),
            (&["192.0.2.66", "198.51.100.7", "10.0.0.2"], "198.51.100.7"),
            // The client may have forged anything before an unreadable entry.
            (&["192.0.2.66, unknown"], "10.0.0.1"),
            (&["192.0.2.66, _hidden, 10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.66, 198.51.100.7:99999"], "10.0.0.1"),
            (&["192.0.2.66, "], "10.0.0.1"),
            (&["192.0.2.66, caf\u{e9}"], "10.0.0.1"),
            (&["10.0.0.2"], "10.0.0.2"),
            (&[], "10.0.0.1"),
        ] {
            let mut request = TestRequest::default().peer_addr("10.0.0.1:1".parse().unwrap());
            for value in headers {
                let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
                request = request.append_header(("x-forwarded-for", value));
            }
            let found = client_ip(&request.to_http_request(), &trusted);
            assert_eq!(found, ip(want), "{headers:?}");
        }
    }
}
