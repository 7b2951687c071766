//! `[oauth]`: providers that users may sign in with.

use std::collections::BTreeMap;
use std::ffi::OsString;

use figment::Figment;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::validate::{endpoint, within};
use super::{ConfigError, PREFIX, secrets};
use crate::domain::destination::is_loopback;

/// Longest name of a provider, in bytes.
const MAX_NAME: usize = 32;

/// Sign-in with providers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OauthSettings {
    /// Base URL of this service as browsers reach it.
    pub public_url: String,
    /// Time-out of all that one request asks of a provider.
    pub timeout_ms: u64,
    /// By name, which is a segment of the path.
    #[serde(default)]
    pub providers: BTreeMap<String, ProviderSettings>,
}

impl OauthSettings {
    /// The redirect URI (RFC 6749 section 3.1.2) of a provider.
    pub fn redirect_uri(&self, provider: &str) -> String {
        let base = self.public_url.trim_end_matches('/');
        format!("{base}/api/auth/oauth/{provider}/callback")
    }
}

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenID Connect.
    Oidc,
    /// OAuth 2.0 as GitHub has it.
    Github,
}

/// One provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    pub kind: ProviderKind,
    /// The issuer identifier (OpenID Connect Discovery 1.0 section 2).
    #[serde(default)]
    pub issuer: Option<String>,
    pub client_id: String,
    /// Without it this service is a public client (RFC 6749 section 2.1).
    #[serde(default)]
    pub client_secret: Option<SecretString>,
    /// Replaces the scopes of the kind.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// GitHub's web pages.
    #[serde(default)]
    pub base_url: Option<String>,
    /// GitHub's REST API.
    #[serde(default)]
    pub api_url: Option<String>,
}

impl ProviderSettings {
    /// The scopes to ask for; `openid` is always asked for with OpenID Connect.
    pub fn scopes(&self) -> Vec<String> {
        let defaults: &[&str] = match self.kind {
            ProviderKind::Oidc => &["openid", "email"],
            ProviderKind::Github => &["user:email"],
        };
        let own = self.scopes.clone();
        own.unwrap_or_else(|| defaults.iter().map(|&scope| scope.to_owned()).collect())
    }
}

/// Whether a dotted path is that of a client secret.
pub(super) fn is_secret(path: &str) -> bool {
    path.starts_with("oauth.providers.") && path.ends_with(".client_secret")
}

/// The client secrets that variables set, by dotted path. An empty variable counts as unset.
///
/// # Errors
/// Names the variable and the rule.
pub(super) fn of_environment(
    settings: &Figment,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(String, String)>, ConfigError> {
    // Providers that can't be read are refused when all settings are loaded.
    let providers = settings.find_value("oauth.providers").ok();
    let providers = providers.and_then(figment::value::Value::into_dict);
    let mut found = Vec::new();
    for name in providers.unwrap_or_default().into_keys() {
        let from = variable_of(&name);
        let text = secrets::read(&from, &variable)?;
        found.extend(text.map(|text| (format!("oauth.providers.{name}.client_secret"), text)));
    }
    Ok(found)
}

/// The variable of a provider's client secret.
fn variable_of(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace('-', "_");
    format!("{PREFIX}OAUTH_{name}_CLIENT_SECRET")
}

/// `identity_ms` is the time-out of the actor that asks the providers.
pub(super) fn oauth_rules(oauth: &OauthSettings, identity_ms: u64) -> Result<(), ConfigError> {
    within("oauth.timeout_ms", oauth.timeout_ms, 100..=60_000)?;
    if oauth.providers.is_empty() && oauth.public_url.is_empty() {
        return Ok(());
    }
    if oauth.public_url.is_empty() {
        return refuse("oauth.public_url", "is required with a provider");
    }
    guarded_endpoint("oauth.public_url", &oauth.public_url)?;
    if !oauth.providers.is_empty() && oauth.timeout_ms >= identity_ms {
        // The request would end first, with a worse answer.
        return refuse("oauth.timeout_ms", "must be below actors.identity.timeout_ms");
    }
    oauth
        .providers
        .iter()
        .try_for_each(|(name, provider)| provider_rules(name, provider))
}

fn provider_rules(name: &str, provider: &ProviderSettings) -> Result<(), ConfigError> {
    let key = |part: &str| format!("oauth.providers.{name}.{part}");
    if !is_name(name) {
        let rule = "must be named with 1 to 32 characters: a-z, 0-9, and single hyphens between them";
        return refuse(&format!("oauth.providers.{name}"), rule);
    }
    if provider.client_id.trim().is_empty() {
        return refuse(&key("client_id"), "must not be empty");
    }
    if !provider.scopes().iter().all(|scope| is_scope(scope)) {
        let rule = "must hold scopes of visible ASCII characters, without blanks, quotes and backslashes";
        return refuse(&key("scopes"), rule);
    }
    let (issuer, github) = (&provider.issuer, [&provider.base_url, &provider.api_url]);
    match provider.kind {
        ProviderKind::Oidc => {
            if github.iter().any(|url| url.is_some()) {
                return refuse(&key("base_url"), "and api_url belong to kind \"github\"");
            }
            let Some(issuer) = issuer else {
                return refuse(&key("issuer"), "is required with kind \"oidc\"");
            };
            guarded_endpoint(&key("issuer"), issuer)
        }
        ProviderKind::Github => {
            if issuer.is_some() {
                return refuse(&key("issuer"), "belongs to kind \"oidc\"");
            }
            for (part, url) in ["base_url", "api_url"].iter().zip(github) {
                url.as_deref()
                    .map_or(Ok(()), |url| guarded_endpoint(&key(part), url))?;
            }
            Ok(())
        }
    }
}

/// An endpoint that codes, tokens and identities may be sent to.
fn guarded_endpoint(key: &str, url: &str) -> Result<(), ConfigError> {
    endpoint(key, url)?;
    // As written, not only as parsed: providers compare redirect URIs as texts.
    let safe =
        |parsed: Url| url.starts_with("https://") || (url.starts_with("http://") && is_loopback(&parsed));
    if Url::parse(url).is_ok_and(safe) {
        return Ok(());
    }
    refuse(key, "must begin with https://, except for a loopback address")
}

/// Without hyphens at the ends or in a row: their underscores would separate sections in the name of a variable.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    name.len() <= MAX_NAME && name.split('-').all(is_part)
}

/// `scope-token` of RFC 6749 section 3.3.
fn is_scope(scope: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    !scope.is_empty() && scope.bytes().all(is_allowed)
}

fn refuse(key: &str, rule: &str) -> Result<(), ConfigError> {
    Err(ConfigError::new(format!("{key}: {rule}")))
}

#[cfg(test)]
mod tests {
    use figment::providers::{Format, Toml};
    use secrecy::ExposeSecret;

    use super::super::{Flags, Settings};
    use super::*;

    fn load(text: &str) -> Result<OauthSettings, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, text).unwrap();
        Settings::load(Some(&file), &Flags::default()).map(|settings| settings.oauth)
    }

    fn with(provider: &str) -> String {
        format!("[oauth]\npublic_url = \"https://tm.example.org/\"\n[oauth.providers.corp]\n{provider}")
    }

    #[test]
    fn there_is_no_provider_unless_the_operator_adds_one() {
        let oauth = Settings::load(None, &Flags::default()).unwrap().oauth;
        assert!(oauth.providers.is_empty());
        assert_eq!((oauth.public_url.as_str(), oauth.timeout_ms), ("", 5_000));
    }

    #[test]
    fn providers_have_the_scopes_of_their_kind_unless_others_are_set() {
        let oauth = load(&with(
            "kind = \"oidc\"\nissuer = \"https://id.example.org\"\nclient_id = \"tm\"\n\
             [oauth.providers.hub-1]\nkind = \"github\"\nclient_id = \"hub\"\nclient_secret = 12345\n\
             [oauth.providers.own]\nkind = \"github\"\nclient_id = \"own\"\nscopes = [\"read:user\"]\n\
             base_url = \"http://127.0.0.1:3000\"\napi_url = \"http://[::1]:3000/api/v3\"",
        ))
        .unwrap();
        let scopes = |name: &str| oauth.providers[name].scopes();
        assert_eq!(scopes("corp"), ["openid", "email"]);
        assert_eq!(scopes("hub-1"), ["user:email"]);
        assert_eq!(scopes("own"), ["read:user"]);
        // Digits without quotes are a secret like any other.
        let secret = oauth.providers["hub-1"].client_secret.as_ref().unwrap();
        assert_eq!(secret.expose_secret(), "12345");
        let uri = oauth.redirect_uri("corp");
        assert_eq!(uri, "https://tm.example.org/api/auth/oauth/corp/callback");
    }

    #[test]
    fn a_variable_sets_the_secret_of_one_provider() {
        let settings = Figment::from(Toml::string("[oauth.providers.hub-1]\n[oauth.providers.corp]"));
        let variable =
            |name: &str| (name == "THREAT_MEMORY_OAUTH_HUB_1_CLIENT_SECRET").then(|| OsString::from("0123"));
        let found = of_environment(&settings, variable).unwrap();
        let path = "oauth.providers.hub-1.client_secret".to_owned();
        assert!(is_secret(&path));
        assert_eq!(found, [(path, "0123".to_owned())]);
        assert_eq!(of_environment(&settings, |_| Some(OsString::new())).unwrap(), []);
    }

    #[test]
    fn settings_that_can_not_work_or_are_not_safe_are_refused_by_key() {
        let oidc = |rest: &str| {
            format!("kind = \"oidc\"\nissuer = \"https://id.example.org\"\nclient_id = \"tm\"\n{rest}")
        };
        for (provider, want) in [
            (
                "kind = \"oidc\"\nclient_id = \"tm\"".into(),
                "corp.issuer: is required",
            ),
            ("kind = \"saml\"\nclient_id = \"tm\"".into(), "corp.kind: "),
            (
                "kind = \"oidc\"\nclient_id = \"tm\"\nissuer = \"http://id.example.org\"".into(),
                "corp.issuer: must begin with https://",
            ),
            (
                "kind = \"oidc\"\nclient_id = \"tm\"\nissuer = \"https://169.254.169.254\"".into(),
                "corp.issuer: must not lead to a cloud's metadata address",
            ),
            (
                "kind = \"oidc\"\nclient_id = \" \"\nissuer = \"https://id.example.org\"".into(),
                "corp.client_id: must not be empty",
            ),
            (oidc("scopes = [\"open id\"]"), "corp.scopes: must hold scopes"),
            (oidc("base_url = \"https://github.com\""), "belong to kind"),
            (
                "kind = \"github\"\nclient_id = \"x\"\nissuer = \"https://id.example.org\"".into(),
                "corp.issuer: belongs to kind",
            ),
            (
                "kind = \"github\"\nclient_id = \"x\"\napi_url = \"http://10.0.0.1\"".into(),
                "corp.api_url: must begin with https://",
            ),
            (oidc("secret = \"x\""), "secret"),
            (
                oidc("[oauth.providers.a--b]\nkind = \"github\"\nclient_id = \"x\""),
                "a--b: must be named",
            ),
            (
                oidc("[oauth.providers.Corp]\nkind = \"github\"\nclient_id = \"x\""),
                "Corp: must be named",
            ),
            (
                oidc("[actors.identity]\ntimeout_ms = 5000"),
                "oauth.timeout_ms: must be below",
            ),
        ] as [(String, &str); 13]
        {
            let error = load(&with(&provider)).unwrap_err().to_string();
            assert!(error.contains(want), "{provider} gave {error}");
        }
        let without = with(&oidc("")).replace("https://tm.example.org/", "");
        let error = load(&without).unwrap_err().to_string();
        assert!(error.contains("oauth.public_url: is required"), "{error}");
        let plain = with(&oidc("")).replace("https://tm", "http://tm");
        let error = load(&plain).unwrap_err().to_string();
        assert!(
            error.contains("oauth.public_url: must begin with https://"),
            "{error}"
        );
    }
}
