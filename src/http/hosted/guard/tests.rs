//! Public limits, through routes of a test.

use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, HttpResponse};

use super::*;
use crate::app::hosted::Application;
use crate::config::{Flags, Settings};

fn settings() -> Settings {
    let flags = Flags {
        bind: Some("127.0.0.1:0".into()),
        storage: Some("mem://".into()),
        ..Flags::default()
    };
    let mut settings = Settings::load(None, &flags).unwrap();
    settings.server.admin_bind.set_port(0);
    settings.server.trusted_proxies = vec!["10.0.0.1".parse().unwrap()];
    settings
}

async fn open<L: PublicLimits>(caller: Public<L>) -> HttpResponse {
    HttpResponse::Ok().body(caller.ip.to_string())
}

async fn failing(_: Public<DemoLimits>) -> Result<HttpResponse, HostedError> {
    Err(DomainError::NotFound("result").into())
}

/// A caller's requests: path, peer and X-Forwarded-For, and the status, limit and remaining requests to expect.
type Case = (&'static str, &'static str, &'static str, (u16, u32, u32));

async fn answer_as_told(state: AppState, cases: &[Case]) {
    let app = App::new()
        .app_data(web::Data::new(state))
        .wrap(from_fn(crate::http::observe))
        .route("/demo-recall", web::to(open::<DemoLimits>))
        .route("/demo-export", web::to(failing))
        .route("/pilot", web::to(open::<PilotLimits>))
        .route("/openapi.json", web::to(open::<DocumentLimits>))
        .route("/oauth", web::to(open::<OauthLimits>));
    let app = init_service(app).await;
    for (n, (path, peer, forwarded, want)) in cases.iter().enumerate() {
        let request = TestRequest::with_uri(path)
            .peer_addr(format!("{peer}:4711").parse().unwrap())
            .insert_header(("x-forwarded-for", *forwarded));
        let answer = call_service(&app, request.to_request()).await;
        let figure = |name: &str| answer.headers().get(name).unwrap().to_str().unwrap();
        let number = |name| figure(name).parse::<u32>().unwrap();
        let got = (
            answer.status().as_u16(),
            number("ratelimit-limit"),
            number("ratelimit-remaining"),
        );
        assert_eq!(got, *want, "request {n} for {path} of {peer} {forwarded}");
        assert!(number("ratelimit-reset") > 0);
        if got.0 == 429 {
            assert_eq!(figure("retry-after"), figure("ratelimit-reset"));
        }
    }
}

#[test]
fn groups_of_routes_share_a_count_per_address_and_every_answer_says_what_is_left() {
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all();
        runtime.thread_stack_size(16 << 20).build().unwrap()
    };
    actix::System::with_tokio_rt(runtime).block_on(async {
        let service = Application::start(settings()).await.unwrap();
        let mut cases = Vec::new();
        for left in (0..10).rev() {
            let failing = left % 2 == 0;
            let (path, status) = if failing {
                ("/demo-export", 404)
            } else {
                ("/demo-recall", 200)
            };
            cases.push((path, "192.0.2.1", "203.0.113.1", (status, 10, left)));
        }
        let (demo, full) = ("/demo-recall", (429, 10, 0));
        cases.extend([
            (demo, "192.0.2.1", "203.0.113.2", full),
            ("/demo-export", "192.0.2.1", "203.0.113.3", full),
            // Other groups and other addresses count for themselves.
            ("/pilot", "192.0.2.1", "203.0.113.1", (200, 5, 4)),
            ("/openapi.json", "192.0.2.1", "203.0.113.1", (200, 60, 59)),
            ("/oauth", "192.0.2.1", "203.0.113.1", (200, 60, 59)),
            (demo, "192.0.2.2", "203.0.113.1", (200, 10, 9)),
            // Behind a trusted proxy.
            (demo, "10.0.0.1", "203.0.113.1", (200, 10, 9)),
            (demo, "10.0.0.1", "203.0.113.2", (200, 10, 9)),
            (demo, "10.0.0.1", "203.0.113.9, 203.0.113.2", (200, 10, 8)),
            (demo, "10.0.0.1", "2001:db8::1", (200, 10, 9)),
            (demo, "10.0.0.1", "2001:db8::2", (200, 10, 8)),
            (demo, "[2001:db8::3]", "203.0.113.1", (200, 10, 7)),
            (demo, "10.0.0.1", "192.0.2.1", full),
        ]);
        answer_as_told(service.state().clone(), &cases).await;
        service.stop().await;
    });
}
