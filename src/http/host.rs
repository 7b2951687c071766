//! Host headers. A browser that was led here by DNS rebinding names the attacker's host in it (RFC 9110 section 7.2).

use std::net::IpAddr;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, HeaderMap};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse, web};
use serde_json::json;

/// The hosts under whose names a listener without credentials answers.
#[derive(Debug, Clone)]
pub struct KnownHosts {
    bind: IpAddr,
    names: Vec<String>,
    /// The setting that lists the names.
    key: String,
}

impl KnownHosts {
    /// The names of this machine, the bound address, and the names that the setting `key` lists. On a listener that is
    /// bound to all addresses, any address counts: nobody can rebind an address.
    pub fn new(bind: IpAddr, names: &[String], key: &str) -> Self {
        Self {
            bind: bind.to_canonical(),
            names: names.to_vec(),
            key: key.to_owned(),
        }
    }

    /// The answer to a request for another host (RFC 9110 section 15.5.20).
    fn refuse(&self) -> HttpResponse {
        let error = format!(
            "Host: is neither this machine, nor the address that this listener is bound to, nor one of {}",
            self.key
        );
        HttpResponse::build(StatusCode::MISDIRECTED_REQUEST).json(json!({ "error": error }))
    }

    fn include(&self, host: &str) -> bool {
        let name = name_of(host);
        let is_bound = |address: IpAddr| self.bind.is_unspecified() || address.to_canonical() == self.bind;
        is_this_machine(name)
            || name.parse().is_ok_and(is_bound)
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The name or address in a Host header, without the port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((name, after))) if after.is_empty() || after.starts_with(':') => name,
        Some(_) => host,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Whether a host without its port is a name of this machine.
fn is_this_machine(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether a Host header names this machine.
pub(super) fn names_this_machine(host: &str) -> bool {
    is_this_machine(name_of(host))
}

/// The only Host header of a request, if it can be read.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(HOST);
    let host = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(host)
}

/// Refuses requests for a host that is not among [`KnownHosts`], with 421.
pub async fn only_known_hosts(
    known: web::Data<KnownHosts>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if host_of(request.headers()).is_some_and(|host| known.include(host)) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    Ok(request.into_response(known.refuse()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use actix_web::body::to_bytes;

    use super::*;

    #[test]
    fn known_are_this_machine_the_bound_address_and_the_configured_names() {
        let names = ["metrics.internal".to_owned()];
        let always = [
            "localhost",
            "LOCALHOST:9464",
            "127.0.0.1:9464",
            "127.0.0.9",
            "[::1]:9464",
            "[::1]",
        ];
        let never = [
            "",
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "[::1].evil.example@x",
            "0x7f.1",
        ];
        for (bind, names, more, fewer) in [
            (
                "127.0.0.1",
                &[][..],
                &[][..],
                &["metrics.internal", "192.0.2.7:9464", "[2001:db8::1]"][..],
            ),
            (
                "192.0.2.7",
                &names,
                &["192.0.2.7:9464", "Metrics.Internal:9464"],
                &["192.0.2.8:9464"],
            ),
            (
                "0.0.0.0",
                &[],
                &["192.0.2.8:9464", "[2001:db8::1]:9464"],
                &["metrics.internal"],
            ),
            (
                "::",
                &names,
                &["192.0.2.8", "metrics.internal"],
                &["other.internal"],
            ),
        ] {
            let known = KnownHosts::new(bind.parse().unwrap(), names, "server.admin_hosts");
            for host in always.iter().chain(more) {
                assert!(known.include(host), "{bind} {host}");
            }
            for host in never.iter().chain(fewer) {
                assert!(!known.include(host), "{bind} {host}");
            }
        }
    }

    #[actix_web::test]
    async fn a_refusal_names_the_setting_of_the_service() {
        for key in ["server.admin_hosts", "web.admin_hosts"] {
            let refused = KnownHosts::new(Ipv4Addr::LOCALHOST.into(), &[], key).refuse();
            assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST);
            let body = to_bytes(refused.into_body()).await.unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let said = body["error"].as_str().unwrap();
            assert!(said.ends_with(&format!("nor one of {key}")), "{said}");
        }
    }
}
