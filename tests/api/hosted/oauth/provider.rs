//! An OpenID provider on a loopback port, with keys of its own; GitHub's endpoints too. It misbehaves on demand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::keys::{Key, hmac};

pub const CLIENT: &str = "threat-memory-test";
pub const SECRET: &str = "a client secret: with + and /";
pub const EMAIL: &str = "Analyst@Example.com";

const DISCOVERY: &str = "/.well-known/openid-configuration";

/// How an ID token is signed.
#[derive(Clone, Default)]
pub enum Signing {
    /// With the newest key.
    #[default]
    Key,
    /// With a key that nobody knows, under the id of the newest one.
    Stranger,
    /// `alg` is `none`.
    Unsigned,
    /// With HMAC-SHA-256 and this key.
    Hmac(Vec<u8>),
}

/// How an endpoint misbehaves.
#[derive(Clone, Copy)]
pub enum Mishap {
    Stall,
    Huge,
    Redirect,
    Error,
    NotJson,
}

/// What the provider does next.
#[derive(Clone, Default)]
pub struct Plan {
    /// Merged into the claims of the ID token; null removes one.
    pub claims: Value,
    pub signing: Signing,
    /// Merged into the discovery document.
    pub discovery: Value,
    /// Path of the endpoint that misbehaves, and how.
    pub mishap: Option<(&'static str, Mishap)>,
    /// The answer of the UserInfo endpoint.
    pub user_info: Value,
    /// Merged into the answer of the token endpoint.
    pub token: Value,
    /// GitHub's list of e-mail addresses.
    pub emails: Value,
}

/// A code that has been given out.
struct Grant {
    redirect_uri: String,
    challenge: String,
    nonce: Option<String>,
}

/// A request that arrived.
#[derive(Clone)]
pub struct Seen {
    pub path: String,
    pub query: HashMap<String, String>,
    pub form: HashMap<String, String>,
    pub authorization: Option<String>,
}

struct Shared {
    base: OnceLock<String>,
    keys: Mutex<Vec<Key>>,
    plan: Mutex<Plan>,
    codes: Mutex<HashMap<String, Grant>>,
    seen: Mutex<Vec<Seen>>,
}

/// A running provider.
pub struct Provider {
    pub base: String,
    shared: Arc<Shared>,
    server: ServerHandle,
}

impl Provider {
    pub fn start(key: Key) -> Self {
        let shared = Arc::new(Shared {
            base: OnceLock::new(),
            keys: Mutex::new(vec![key]),
            plan: Mutex::default(),
            codes: Mutex::default(),
            seen: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&shared));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .default_service(web::route().to(serve))
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", server.addrs()[0]);
        shared.base.set(base.clone()).unwrap();
        let server = server.run();
        let handle = server.handle();
        actix::spawn(server);
        Self {
            base,
            shared,
            server: handle,
        }
    }

    pub async fn stop(&self) {
        self.server.stop(false).await;
    }

    /// Changes what the provider does.
    pub fn plan(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.shared.plan.lock().unwrap());
    }

    /// Signs with another key from now on. Old keys are still published.
    pub fn rotate(&self, key: Key) {
        self.shared.keys.lock().unwrap().push(key);
    }

    /// The public half of the newest key.
    pub fn public_key(&self) -> Vec<u8> {
        self.shared.keys.lock().unwrap().last().unwrap().public()
    }

    /// The requests to one path, in order.
    pub fn seen(&self, path: &str) -> Vec<Seen> {
        let mut seen = self.shared.seen.lock().unwrap().clone();
        seen.retain(|request| request.path == path);
        seen
    }

    /// The user agrees: where the browser is sent with the code.
    pub async fn consent(&self, location: &Url) -> Url {
        assert!(location.as_str().starts_with(&self.base), "{location}");
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let answer = http.no_proxy().build().unwrap().get(location.clone());
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status(), 302, "{}", answer.text().await.unwrap());
        let to = answer.headers()["location"].to_str().unwrap();
        to.parse().unwrap()
    }
}

async fn serve(request: HttpRequest, body: String, shared: web::Data<Shared>) -> HttpResponse {
    let pairs = |text: &str| {
        let url = Url::parse(&format!("http://x/?{text}")).unwrap();
        url.query_pairs().into_owned().collect::<HashMap<_, _>>()
    };
    let authorization = request.headers().get("authorization");
    let seen = Seen {
        path: request.path().to_owned(),
        query: pairs(request.query_string()),
        form: pairs(&body),
        authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
    };
    shared.seen.lock().unwrap().push(seen.clone());
    let plan = shared.plan.lock().unwrap().clone();
    if let Some((_, mishap)) = plan.mishap.filter(|(path, _)| *path == seen.path) {
        return mishandle(mishap).await;
    }
    match seen.path.as_str() {
        DISCOVERY => HttpResponse::Ok().json(shared.discovery(&plan)),
        "/jwks" => {
            let keys: Vec<Value> = shared.keys.lock().unwrap().iter().map(Key::jwk).collect();
            HttpResponse::Ok().json(json!({"keys": keys}))
        }
        "/authorize" | "/login/oauth/authorize" => shared.authorize(&seen),
        "/token" => shared.token(&seen, &plan),
        "/login/oauth/access_token" => shared.github_token(&seen, &plan),
        "/api/v3/user/emails" if seen.authorization.as_deref() == Some("Bearer github-access-token") => {
            assert!(request.headers().contains_key("user-agent"));
            HttpResponse::Ok().json(plan.emails)
        }
        "/userinfo"
            if seen
                .authorization
                .as_deref()
                .is_some_and(|it| it.starts_with("Bearer access-")) =>
        {
            HttpResponse::Ok().json(plan.user_info)
        }
        _ => HttpResponse::NotFound().finish(),
    }
}

async fn mishandle(mishap: Mishap) -> HttpResponse {
    match mishap {
        Mishap::Stall => std::future::pending().await,
        Mishap::Huge => HttpResponse::Ok()
            .content_type("application/json")
            .body(vec![b' '; 1 << 20]),
        Mishap::Redirect => HttpResponse::Found()
            .insert_header(("location", "http://127.0.0.1:1/elsewhere"))
            .finish(),
        Mishap::Error => HttpResponse::InternalServerError().body("<h1>stack trace</h1>"),
        Mishap::NotJson => HttpResponse::Ok().content_type("application/json").body("<html>"),
    }
}

impl Shared {
    fn base(&self) -> &str {
        self.base.get().unwrap()
    }

    fn discovery(&self, plan: &Plan) -> Value {
        let base = self.base();
        let mut document = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "jwks_uri": format!("{base}/jwks"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        });
        merge(&mut document, &plan.discovery);
        document
    }

    /// Refuses what RFC 6749 and RFC 7636 would have refused.
    fn authorize(&self, seen: &Seen) -> HttpResponse {
        let part = |name: &str| seen.query.get(name).map_or("", String::as_str);
        let is_right = part("response_type") == "code"
            && part("client_id") == CLIENT
            && part("code_challenge_method") == "S256"
            && part("code_challenge").len() == 43
            && !part("state").is_empty();
        if !is_right {
            return HttpResponse::BadRequest().body(format!("{:?}", seen.query));
        }
        let grant = Grant {
            redirect_uri: part("redirect_uri").to_owned(),
            challenge: part("code_challenge").to_owned(),
            nonce: seen.query.get("nonce").cloned(),
        };
        let code = format!("code-{}", uuid::Uuid::new_v4());
        let mut back = Url::parse(&grant.redirect_uri).unwrap();
        back.query_pairs_mut()
            .extend_pairs([("code", code.as_str()), ("state", part("state"))]);
        self.codes.lock().unwrap().insert(code, grant);
        HttpResponse::Found()
            .insert_header(("location", String::from(back)))
            .finish()
    }

    /// The grant of a request's code, which is void afterwards, whatever the outcome.
    fn redeemed(&self, seen: &Seen) -> Option<Grant> {
        let part = |name: &str| seen.form.get(name).map_or("", String::as_str);
        let grant = self.codes.lock().unwrap().remove(part("code"))?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(part("code_verifier")));
        let is_right = part("grant_type") == "authorization_code"
            && part("redirect_uri") == grant.redirect_uri
            && challenge == grant.challenge;
        is_right.then_some(grant)
    }

    fn token(&self, seen: &Seen, plan: &Plan) -> HttpResponse {
        if !is_client(seen) {
            return HttpResponse::Unauthorized().json(json!({"error": "invalid_client"}));
        }
        let Some(grant) = self.redeemed(seen) else {
            let error = json!({"error": "invalid_grant", "error_description": "<b>no such code</b>"});
            return HttpResponse::BadRequest().json(error);
        };
        let access = format!("access-{}", uuid::Uuid::new_v4());
        let mut answer = json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self.id_token(plan, &grant, &access),
        });
        merge(&mut answer, &plan.token);
        HttpResponse::Ok().json(answer)
    }

    fn id_token(&self, plan: &Plan, grant: &Grant, access: &str) -> String {
        let now = chrono::Utc::now().timestamp();
        let half = &Sha256::digest(access)[..16];
        let mut claims = json!({
            "iss": self.base(),
            "sub": "248289761001",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": grant.nonce,
            "at_hash": URL_SAFE_NO_PAD.encode(half),
            "email": EMAIL,
            "email_verified": true,
        });
        merge(&mut claims, &plan.claims);
        let keys = self.keys.lock().unwrap();
        let key = keys.last().unwrap();
        let algorithm = match plan.signing {
            Signing::Key | Signing::Stranger => key.algorithm(),
            Signing::Unsigned => "none",
            Signing::Hmac(_) => "HS256",
        };
        let header = json!({"alg": algorithm, "kid": key.id, "typ": "JWT"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = match &plan.signing {
            Signing::Key => key.sign(signed.as_bytes()),
            Signing::Stranger => key.alike().sign(signed.as_bytes()),
            Signing::Unsigned => Vec::new(),
            Signing::Hmac(secret) => hmac(secret, signed.as_bytes()),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// GitHub answers with 200, also to errors.
    fn github_token(&self, seen: &Seen, plan: &Plan) -> HttpResponse {
        let mut answer = if seen.form.get("client_secret").map(String::as_str) != Some(SECRET) {
            json!({"error": "incorrect_client_credentials"})
        } else if self.redeemed(seen).is_none() {
            json!({"error": "bad_verification_code", "error_description": "expired"})
        } else {
            json!({"access_token": "github-access-token", "scope": "user:email", "token_type": "bearer"})
        };
        merge(&mut answer, &plan.token);
        HttpResponse::build(StatusCode::OK).json(answer)
    }
}

/// RFC 6749 section 2.3.1: both parts of the credentials are form-encoded. A public client sends its id alone.
fn is_client(seen: &Seen) -> bool {
    let Some(basic) = &seen.authorization else {
        return seen.form.get("client_id").map(String::as_str) == Some(CLIENT)
            && seen
                .form
                .get("client_secret")
                .is_none_or(|secret| secret == SECRET);
    };
    let decoded = STANDARD.decode(basic.strip_prefix("Basic ").unwrap()).unwrap();
    let mut url = Url::parse("http://x").unwrap();
    url.query_pairs_mut().append_pair(CLIENT, SECRET);
    String::from_utf8(decoded).unwrap() == url.query().unwrap().replacen('=', ":", 1)
}

/// Lays the fields of one object over another; null removes a field.
fn merge(onto: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        let object = onto.as_object_mut().unwrap();
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
}
