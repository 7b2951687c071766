//! Sign-in with a provider, against one that is started by the test.

mod accounts;
mod begin;
mod console;
mod github;
mod keys;
mod logs;
mod outages;
mod provider;
mod refusals;
mod tokens;

use std::collections::BTreeMap;

use reqwest::{Method, Url};
use secrecy::SecretString;
use serde_json::{Value, json};
use threat_memory::config::{OauthSettings, ProviderKind, ProviderSettings};

use self::keys::Key;
use self::provider::{CLIENT, EMAIL, Provider, SECRET};
use crate::helpers::{Answer, Client, PASSWORD, TestApp, settings};

const PUBLIC_URL: &str = "http://127.0.0.1:9";
const CALLBACK: &str = "/api/auth/oauth/corp/callback";
/// What a caller without a sign-in of its own is told.
const NOT_PENDING: &str =
    "this sign-in was not begun in this browser, has expired or is already finished: begin again";

/// The provider as the service is configured for it.
fn oidc(provider: &Provider) -> ProviderSettings {
    ProviderSettings {
        kind: ProviderKind::Oidc,
        issuer: Some(provider.base.clone()),
        client_id: CLIENT.into(),
        client_secret: Some(SecretString::from(SECRET)),
        scopes: None,
        base_url: None,
        api_url: None,
    }
}

fn oauth(providers: impl IntoIterator<Item = (&'static str, ProviderSettings)>) -> OauthSettings {
    let providers = providers.into_iter().map(|(name, own)| (name.to_owned(), own));
    OauthSettings {
        public_url: PUBLIC_URL.into(),
        timeout_ms: 5_000,
        providers: providers.collect::<BTreeMap<_, _>>(),
    }
}

/// The service with these settings. Each browser of the tests has an address of its own.
async fn spawn(oauth: OauthSettings) -> TestApp {
    let mut settings = settings("mem://");
    settings.oauth = oauth;
    settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    TestApp::with(settings).await
}

/// The service with one provider `corp`, and a user of it with the provider's e-mail address.
async fn spawn_with(provider: &Provider) -> TestApp {
    let app = spawn(oauth([("corp", oidc(provider))])).await;
    add_user(&app.admin, EMAIL).await;
    app
}

/// Adds an analyst to the workspace of `admin`; returns the id.
async fn add_user(admin: &Client, email: &str) -> String {
    let body = json!({"email": email, "password": PASSWORD, "role": "analyst"});
    let made = admin.post("/api/admin/users", &body).await.expect(201).await;
    made["user"]["id"].as_str().unwrap().to_owned()
}

/// A browser: it keeps cookies, and follows redirects when it is told to.
struct Browser {
    client: Client,
    /// Name, value and path.
    cookies: Vec<(String, String, String)>,
}

impl Browser {
    fn new(app: &TestApp) -> Self {
        let [a, b, c, ..] = uuid::Uuid::new_v4().into_bytes();
        Self::at(app.anonymous(), &format!("10.{a}.{b}.{c}"))
    }

    fn at(client: Client, address: &str) -> Self {
        let mut client = client.with_header("x-forwarded-for", address);
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        client.http = http.no_proxy().build().unwrap();
        Self {
            client,
            cookies: Vec::new(),
        }
    }

    async fn get(&mut self, path: &str) -> Answer {
        let sent = self
            .cookies
            .iter()
            .filter(|(.., at)| path.starts_with(at.as_str()));
        let sent: Vec<String> = sent.map(|(name, value, _)| format!("{name}={value}")).collect();
        let mut request = self.client.request(Method::GET, path);
        if !sent.is_empty() {
            request = request.header("cookie", sent.join("; "));
        }
        let answer = Answer(request.send().await.unwrap());
        let set: Vec<&str> = answer
            .0
            .headers()
            .get_all("set-cookie")
            .iter()
            .map(|cookie| cookie.to_str().unwrap())
            .collect();
        for cookie in set {
            let (pair, attributes) = cookie.split_once("; ").unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            let path = attributes.split("; ").find_map(|part| part.strip_prefix("Path="));
            let path = path.unwrap().to_owned();
            self.cookies.retain(|(own, _, at)| own != name || *at != path);
            if !attributes.contains("Max-Age=0") {
                self.cookies.push((name.to_owned(), value.to_owned(), path));
            }
        }
        answer
    }

    /// Begins a sign-in; returns the URL of the provider's page.
    async fn begin(&mut self, path: &str) -> Url {
        let answer = self.get(&format!("/api/auth/oauth/{path}")).await;
        let location = answer.header("location").map(str::to_owned);
        let (status, body) = answer.whole().await;
        assert_eq!(status, 302, "{body}");
        location.unwrap().parse().unwrap()
    }

    /// Goes back to the service from the provider.
    async fn back(&mut self, callback: &Url) -> Answer {
        assert!(callback.as_str().starts_with(PUBLIC_URL), "{callback}");
        self.get(callback.as_str().strip_prefix(PUBLIC_URL).unwrap())
            .await
    }

    /// The whole way.
    async fn sign_in(&mut self, provider: &Provider, path: &str) -> Answer {
        let location = self.begin(path).await;
        let callback = provider.consent(&location).await;
        self.back(&callback).await
    }
}

/// The newest entry of the operator's audit log about a sign-in with a provider.
async fn last_audited(app: &TestApp) -> Value {
    let entries = app.admin.audited("auth.login").await;
    let of_provider = |entry: &Value| entry["metadata"]["provider"].is_string();
    entries.into_iter().find(of_provider).unwrap()
}
