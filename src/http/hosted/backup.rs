//! Back-ups of the whole service, for the operator.

use actix_web::{HttpResponse, web};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use utoipa::ToSchema;

use super::error::HostedError;
use super::guard::{Admin, Guarded};
use super::resource;
use crate::actors::backup_writer::BeginBackUp;
use crate::archive::Since;
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;
use crate::http::AppState;
use crate::http::backup;
use crate::http::body::{self, Body};

const FIELDS: [&str; 3] = ["passphrase", "archives", "chunks"];

/// What the archive shall hold. Without a body it is a whole one, without secrets.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewBackUp)]
struct BackUpBody {
    /// Encrypts password hashes and API keys, which are left out without one.
    #[schema(value_type = Option<String>, min_length = 12, max_length = 1024, nullable = false,
        example = "a sentence that is kept elsewhere")]
    passphrase: Option<SecretString>,
    /// `archives` of the `archive.json` of the archive before: only what has changed since is written.
    #[schema(value_type = Option<Vec<Uuid>>, max_items = 1000, nullable = false,
        example = json!(["0197d1f2-7c3e-7a52-9d41-6f1c0a527d6e"]))]
    archives: Option<Vec<String>>,
    /// The chunks of its `state.jsonl`, each as `archive`, a colon and `digest`.
    #[schema(max_items = 1000000, nullable = false, example = json!(["0:6f1c0a527d6e4a8e9c530b1f2d3e4a5b"]))]
    chunks: Option<Vec<String>>,
}

impl BackUpBody {
    fn read(self) -> Result<(Since, Option<SecretString>), DomainError> {
        let [least, most] = backup::PASSPHRASE;
        let length = self
            .passphrase
            .as_ref()
            .map(|passphrase| passphrase.expose_secret().chars().count());
        if length.is_some_and(|length| !(least..=most).contains(&length)) {
            let rule = format!("must have {least} to {most} characters");
            return Err(DomainError::invalid("passphrase", rule));
        }
        let (archives, chunks) = (self.archives.unwrap_or_default(), self.chunks.unwrap_or_default());
        for (field, count, most) in [
            ("archives", archives.len(), backup::MOST_ARCHIVES),
            ("chunks", chunks.len(), backup::MOST_CHUNKS),
        ] {
            if count > most {
                return Err(DomainError::invalid(
                    field,
                    format!("must have at most {most} entries"),
                ));
            }
        }
        Ok((backup::since(&archives, &chunks)?, self.passphrase))
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/api/admin/backup").route(web::post().to(back_up)));
}

/// Operations of this file, for the API description.
#[derive(utoipa::OpenApi)]
#[openapi(paths(back_up))]
pub(super) struct Docs;

/// Writes everything that the service holds into an archive.
///
/// Only administrators of the operator's workspace may do this. The archive is the state at one moment, and is sent while it is
/// written; the service goes on meanwhile. One is written at a time. `threat-memory verify` checks it, `threat-memory restore`
/// restores it; docs/backup.md says what it is.
#[utoipa::path(
    post, path = "/api/admin/backup", tag = "Administration", security(("bearer" = [])),
    request_body = Option<BackUpBody>,
    responses((status = 200, description = "The archive: a tar file, compressed with Zstandard.",
        body = Vec<u8>, content_type = "application/zstd"))
)]
async fn back_up(
    caller: Guarded<Admin>,
    state: web::Data<AppState>,
    payload: Body,
) -> Result<HttpResponse, HostedError> {
    let by = caller.by;
    if !by.workspace.is_operator {
        let why = "only the operator's administrators back the service up";
        return Err(DomainError::Forbidden(why.into()).into());
    }
    let body: BackUpBody = body::json_or_empty(payload, backup::BODY_LIMIT, &FIELDS).await?;
    let (since, passphrase) = body.read()?;
    let message = BeginBackUp {
        entry: Some(AuditEntry::by(
            &by,
            "backup.create",
            "backup",
            Outcome::Success,
            clock::now(),
        )),
        since,
        passphrase,
    };
    Ok(backup::answer(state.backup.call(message).await?))
}
