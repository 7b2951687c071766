//! The rules as tables and properties, and the client against servers and resolvers that play tricks.

mod addresses;
mod bodies;
mod endpoint;
mod redirects;
mod server;
mod table;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::*;

/// Long enough for a busy machine.
const PATIENT: Duration = Duration::from_secs(20);

fn public(hosts: &[&str], local_development: bool) -> Policy {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    Policy::public(&hosts, local_development)
}

fn rule_of(checked: Result<reqwest::Url, Refusal>) -> &'static str {
    checked.map_or_else(|refusal| refusal.rule.name(), |_| "ok")
}

/// Gives each question the next answer, and the last one for ever.
struct ScriptedResolver {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl ScriptedResolver {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self {
            answers: answers.iter().map(parse).collect(),
            asked: AtomicUsize::new(0),
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for ScriptedResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let at = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers[at.min(self.answers.len() - 1)].clone();
        // A port of the resolver's choice must not win over the URL's.
        let found = answer.into_iter().map(|ip| (ip, 7u16).into());
        Box::pin(async move { Ok(Box::new(found) as Addrs) })
    }
}

/// A client for local development, which reaches the test's server on loopback.
fn client(resolver: Arc<ScriptedResolver>, limits: Limits) -> GuardedClient {
    let hosts = ["127.0.0.1", "feed.example.org", "*.allowed.example.org"];
    GuardedClient::with_resolver(public(&hosts, true), limits, resolver).unwrap()
}

fn limits(response_cap: usize) -> Limits {
    Limits::new(PATIENT, response_cap)
}
