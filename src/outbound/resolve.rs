//! Resolution of host names to checked addresses.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::destination::{Policy, Refusal};

/// Resolves as the operating system does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Passes on what another resolver finds, if the policy allows every address of it.
pub(super) struct CheckedResolver {
    pub(super) inner: Arc<dyn Resolve>,
    pub(super) policy: Arc<Policy>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (policy, found) = (Arc::clone(&self.policy), self.inner.resolve(name));
        Box::pin(async move {
            // Port 0 stands for the port of the URL.
            let addresses: Vec<SocketAddr> = found.await?.map(|found| (found.ip(), 0).into()).collect();
            if addresses.is_empty() {
                return Err("the host name has no address".into());
            }
            // One bad address refuses all of them: the connection would try them in turn.
            if let Some(rule) = addresses.iter().find_map(|address| policy.refuses(address.ip())) {
                return Err(Refusal::new(rule, &host).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
