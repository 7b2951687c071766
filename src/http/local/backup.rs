//! Back-ups of the memory.

use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use utoipa::ToSchema;

use super::body::fields_of;
use super::error::LocalError;
use super::validate::Fields;
use super::{LocalState, address_of, guarded_resource};
use crate::http::backup;
use crate::http::body::Body;

/// What the archive shall hold. `{}` asks for a whole one, without secrets.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"passphrase": "a sentence that is kept elsewhere"}))]
pub(super) struct BackUpBody {
    /// Encrypts what is secret in the memory, which is left out without one.
    #[schema(value_type = Option<String>)]
    passphrase: Option<SecretString>,
    /// `archives` of the `archive.json` of the archive before: only what has changed since is written.
    archives: Option<Vec<String>>,
    /// The chunks of its `state.jsonl`, each as `archive`, a colon and `digest`.
    chunks: Option<Vec<String>>,
}

impl BackUpBody {
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let [least, most] = backup::PASSPHRASE;
        Self {
            passphrase: fields
                .text_if_given("passphrase", least, most)
                .map(SecretString::from),
            archives: fields.optional_texts("archives", backup::MOST_ARCHIVES),
            chunks: fields.optional_texts("chunks", backup::MOST_CHUNKS),
        }
    }
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/api/backup").route(web::post().to(back_up)));
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(back_up))]
pub(super) struct Docs;

/// Writes everything in the memory into an archive.
///
/// The archive is the state at one moment, and is sent while it is written; the service goes on meanwhile. One is written at a
/// time. `threat-memory verify` checks it, `threat-memory restore` restores it.
#[utoipa::path(
    post, path = "/api/backup", tag = "System", operation_id = "create_backup",
    request_body = BackUpBody,
    responses(
        (status = 200, description = "The archive: a tar file, compressed with Zstandard.", body = Vec<u8>,
            content_type = "application/zstd"),
        (status = 422, description = ""),
    ),
)]
async fn back_up(
    request: HttpRequest,
    state: web::Data<LocalState>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    let (body, _load) = fields_of(&state, payload, backup::BODY_LIMIT, BackUpBody::read).await?;
    let since = backup::since(
        &body.archives.unwrap_or_default(),
        &body.chunks.unwrap_or_default(),
    )?;
    let archive = state
        .memory
        .back_up(since, body.passphrase, address_of(&request))
        .await?;
    Ok(backup::answer(archive))
}
