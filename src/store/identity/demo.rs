//! The state of the public demo workspace.

use uuid::Uuid;

use crate::domain::error::DomainError;
use crate::store::Store;
use crate::store::rows::record;

impl Store {
    /// Digest of the content that the demo workspace was loaded with.
    pub async fn demo_content(&self, demo: Uuid) -> Result<Option<String>, DomainError> {
        let query = "SELECT VALUE demo_content FROM $key";
        let found: Vec<Option<String>> = self.select(query, record("workspace", demo)).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// Records the content that the demo workspace was loaded with.
    pub async fn set_demo_content(&self, demo: Uuid, digest: &str) -> Result<(), DomainError> {
        self.write(|| {
            self.db
                .query("UPDATE $key SET demo_content = $digest RETURN NONE")
                .bind(("key", record("workspace", demo)))
                .bind(("digest", digest.to_owned()))
        })
        .await
    }
}
