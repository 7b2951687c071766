//! The address of the client: the peer's, or X-Forwarded-For where the peer is a trusted proxy.

use std::net::{IpAddr, Ipv4Addr};

use actix_web::HttpRequest;

/// The client's address. Of `X-Forwarded-For` the last entry counts that no trusted proxy wrote itself.
pub fn client_ip(request: &HttpRequest, trusted: &[IpAddr]) -> IpAddr {
    let peer = request
        .peer_addr()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |addr| plain(addr.ip()));
    if !trusted.contains(&peer) {
        return peer;
    }
    let headers = request
        .headers()
        .get_all("x-forwarded-for")
        .filter_map(|value| value.to_str().ok());
    let hops: Vec<IpAddr> = headers
        .flat_map(|value| value.split(','))
        .filter_map(|hop| hop.trim().parse().ok())
        .map(plain)
        .collect();
    hops.iter()
        .rev()
        .find(|hop| !trusted.contains(hop))
        .copied()
        .unwrap_or(peer)
}

/// An IPv4 address that came over an IPv6 socket, as what it is.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
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
}
