//! Sockets to an external SurrealDB.

use std::fmt;

use surrealdb::engine::any::{Any, connect};
use surrealdb::opt::WebsocketConfig;
use surrealdb::opt::auth::Database as DatabaseUser;
use surrealdb::{Surreal, opt::Config};

/// Maximum message size in either direction; a server's default is 128 MiB.
const MAX_MESSAGE: usize = 128 << 20;

/// How a server is spoken to.
pub(in crate::store) fn remote_config() -> surrealdb::Result<Config> {
    Config::new().websocket(WebsocketConfig::new().max_message_size(MAX_MESSAGE))
}

/// How the service connects to a server: as a user without DDL rights.
pub(in crate::store) struct Connector {
    pub(in crate::store) url: String,
    pub(in crate::store) user: DatabaseUser,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Connector {
    /// Opens a new socket and signs in.
    pub(in crate::store) async fn session(&self) -> surrealdb::Result<Surreal<Any>> {
        let session = connect((self.url.as_str(), remote_config()?)).await?;
        session.signin(self.user.clone()).await?;
        session
            .use_ns(&self.user.namespace)
            .use_db(&self.user.database)
            .await?;
        Ok(session)
    }
}
