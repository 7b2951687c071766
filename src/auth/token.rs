//! Access tokens: JWT (RFC 7519), HS256, workspace-scoped, 24 hours.

use std::path::Path;

use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::random_bytes;
use crate::domain::error::DomainError;
use crate::files;

/// Lifetime of a token in seconds.
pub const LIFETIME: i64 = 86_400;
const ISSUER: &str = "threat-memory";
/// The file of a data directory with the secret, and the length of a secret from which it is one.
const SECRET_FILE: &str = "jwt.secret";
const SECRET_BYTES: usize = 32;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    pub sub: Uuid,
    /// The workspace.
    pub ws: Uuid,
    /// The user's revocation time at sign-in, in microseconds; tokens issued before it are void. A token is valid only
    /// while that time is unchanged. `iat` has whole seconds, which are too coarse to compare with it.
    pub horizon: i64,
    pub iss: String,
    pub iat: i64,
    pub exp: i64,
    /// Id of the token, by which it can be revoked. Tokens of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<Uuid>,
}

impl Claims {
    /// The id by which the token is revoked. A token without one shares it with those that its user got in the same
    /// second.
    pub fn id(&self) -> Uuid {
        self.jti.unwrap_or_else(|| {
            let Self {
                sub,
                ws,
                horizon,
                iat,
                ..
            } = self;
            Uuid::new_v5(sub, format!("{ws} {horizon} {iat}").as_bytes())
        })
    }
}

/// Signs and checks tokens.
#[derive(Clone)]
pub struct Tokens {
    encoding: EncodingKey,
    /// The key itself, and the one before it.
    decoding: Vec<DecodingKey>,
}

impl Tokens {
    /// Creates a signer for this secret.
    pub fn new(secret: &SecretString) -> Self {
        let bytes = secret.expose_secret().as_bytes();
        Self {
            encoding: EncodingKey::from_secret(bytes),
            decoding: vec![DecodingKey::from_secret(bytes)],
        }
    }

    /// Takes tokens that another secret signed, too: the one before a change.
    #[must_use]
    pub fn with_previous(mut self, previous: Option<&SecretString>) -> Self {
        let previous = previous.map(|secret| DecodingKey::from_secret(secret.expose_secret().as_bytes()));
        self.decoding.extend(previous);
        self
    }

    /// Issues a token for a user of a workspace; `horizon` is the user's current revocation time.
    pub fn issue(
        &self,
        user: Uuid,
        ws: Uuid,
        horizon: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<String, DomainError> {
        let iat = now.timestamp();
        let claims = Claims {
            sub: user,
            ws,
            horizon: horizon.timestamp_micros(),
            iss: ISSUER.into(),
            iat,
            exp: iat + LIFETIME,
            jti: Some(Uuid::new_v4()),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(|error| DomainError::internal("signing the token failed", error))
    }

    /// The claims of a token if it was signed by us and has not expired.
    pub fn read(&self, token: &str) -> Option<Claims> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        validation.leeway = 0;
        let read = |key| jsonwebtoken::decode(token, key, &validation).ok();
        self.decoding.iter().find_map(read).map(|data| data.claims)
    }
}

/// The secret of a data directory, if it has one.
pub fn stored_secret(data_dir: Option<&Path>) -> Option<SecretString> {
    let text = std::fs::read_to_string(data_dir?.join(SECRET_FILE)).ok()?;
    Some(text.trim())
        .filter(|text| text.len() >= SECRET_BYTES)
        .map(SecretString::from)
}

/// The secret of a data directory: read, or created once and stored with mode 0600.
///
/// # Errors
/// When the file can't be read or written, or is shorter than 32 bytes.
pub fn secret_of(data_dir: Option<&Path>) -> Result<SecretString, std::io::Error> {
    let fresh = || -> Result<SecretString, std::io::Error> {
        let bytes: [u8; 48] = random_bytes().map_err(std::io::Error::other)?;
        Ok(SecretString::from(hex::encode(bytes)))
    };
    let Some(dir) = data_dir else { return fresh() };
    files::private_dir(dir)?;
    let path = dir.join(SECRET_FILE);
    if !path.exists() {
        match files::create_private(&path, fresh()?.expose_secret()) {
            // By a process that starts at the same time.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    let text = std::fs::read_to_string(&path)?;
    match text.trim() {
        text if text.len() >= SECRET_BYTES => Ok(SecretString::from(text.to_owned())),
        _ => Err(std::io::Error::other(format!(
            "{} is shorter than {SECRET_BYTES} bytes",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Tokens {
        Tokens::new(&SecretString::from("0123456789abcdef0123456789abcdef"))
    }

    #[test]
    fn a_token_says_who_and_expires() {
        let (user, ws, now) = (Uuid::new_v4(), Uuid::new_v4(), crate::clock::now());
        let token = tokens().issue(user, ws, now, now).unwrap();
        let claims = tokens().read(&token).unwrap();
        assert_eq!(
            (claims.sub, claims.ws, claims.exp - claims.iat),
            (user, ws, LIFETIME)
        );
        let old = tokens()
            .issue(user, ws, now, now - chrono::Duration::hours(25))
            .unwrap();
        assert_eq!(tokens().read(&old), None);
        let other = Tokens::new(&SecretString::from("another secret of at least 32 bytes!"));
        assert_eq!(other.read(&token), None);
        let before = SecretString::from("0123456789abcdef0123456789abcdef");
        let changed = other.with_previous(Some(&before));
        assert_eq!(changed.read(&token).unwrap(), claims);
        let new = changed.issue(user, ws, now, now).unwrap();
        assert!(changed.read(&new).is_some() && tokens().read(&new).is_none());
    }

    #[test]
    fn each_token_has_an_id_and_one_of_an_earlier_version_always_the_same() {
        let (user, ws, now) = (Uuid::new_v4(), Uuid::new_v4(), crate::clock::now());
        let claims = || {
            let token = tokens().issue(user, ws, now, now).unwrap();
            tokens().read(&token).unwrap()
        };
        assert_ne!(claims().id(), claims().id());
        let early = || Claims {
            jti: None,
            ..claims()
        };
        assert_eq!(early().id(), early().id());
        assert_ne!(early().id(), Claims { iat: 1, ..early() }.id());
    }

    #[test]
    fn an_unsigned_token_is_refused() {
        let header = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
        let now = crate::clock::now();
        let token = tokens().issue(Uuid::new_v4(), Uuid::new_v4(), now, now).unwrap();
        let payload = token.split('.').nth(1).unwrap();
        assert_eq!(tokens().read(&format!("{header}.{payload}.")), None);
    }

    #[test]
    fn the_secret_file_is_made_once_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let first = secret_of(Some(dir.path())).unwrap();
        let again = secret_of(Some(dir.path())).unwrap();
        assert_eq!(first.expose_secret(), again.expose_secret());
        let mode = std::fs::metadata(dir.path().join("jwt.secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
