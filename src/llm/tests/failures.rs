//! Slow, broken, overloaded or absent endpoints: the rules answer and say why.

use super::*;

#[test]
fn a_slow_model_costs_its_time_out_and_no_more() {
    run(async {
        let slow: Behaviour = |_, _| HttpResponse::build(599.try_into().unwrap()).finish();
        let world = World::with(slow, |settings| {
            // Long enough for a busy machine to send the request.
            settings.llm.timeout_ms = 1500;
            settings.llm.retries = 1;
        });
        let slower = World::with(slow, |settings| {
            settings.llm.timeout_ms = 60_000;
            settings.actors.of_mut("extractor").timeout_ms = 4000;
        });
        let since = Instant::now();
        let (late, later) = tokio::join!(world.extract(TEXT), slower.extract(TEXT));
        assert!(since.elapsed() < Duration::from_secs(30));
        assert_fallback(&late, "no answer within 1500 ms");
        assert_eq!(world.requests(), 2);
        // The actor's own time-out leaves time for the rules.
        assert_fallback(&later, "no answer within ");
    });
}

#[test]
fn an_endpoint_that_is_not_there_falls_back() {
    run(async {
        let world = World::with(
            |_, _| says("{}"),
            |settings| {
                settings.llm.base_url = "http://127.0.0.1:9/v1".into();
                settings.llm.retries = 0;
            },
        );
        assert_fallback(&world.extract(TEXT).await, "the endpoint can't be reached");
    });
}

#[test]
fn overload_is_waited_out_and_other_errors_are_final() {
    run(async {
        let world = World::new(|at, _| match at {
            0 => HttpResponse::TooManyRequests()
                .insert_header(("Retry-After", "1"))
                .finish(),
            1 => HttpResponse::ServiceUnavailable().finish(),
            _ => says(good().to_string()),
        });
        let since = Instant::now();
        assert_eq!(names(&world.extract(TEXT).await), UNITED);
        assert!(since.elapsed() >= Duration::from_secs(1));
        assert_eq!(world.requests(), 3);

        let world = World::new(|_, _| HttpResponse::BadGateway().finish());
        assert_fallback(
            &world.extract(TEXT).await,
            "the endpoint answered with status 502",
        );
        assert_eq!(world.requests(), 3);

        // Longer than the request's time-out: neither waited for nor retried early.
        let world = World::new(|_, _| {
            HttpResponse::TooManyRequests()
                .insert_header(("Retry-After", "3600"))
                .finish()
        });
        assert_fallback(
            &world.extract(TEXT).await,
            "the endpoint answered with status 429",
        );
        assert_eq!(world.requests(), 1);

        let echo: Behaviour = |_, _| HttpResponse::Unauthorized().body(format!("wrong key {KEY}"));
        let world = World::new(echo);
        assert_fallback(
            &world.extract(TEXT).await,
            "the endpoint answered with status 401",
        );
        assert_eq!(world.requests(), 1);

        let world = World::new(|_, _| {
            HttpResponse::TemporaryRedirect()
                .insert_header(("Location", "/v1/chat/completions"))
                .finish()
        });
        assert_fallback(
            &world.extract(TEXT).await,
            "the endpoint answered with status 307",
        );
        assert_eq!(world.requests(), 1);
    });
}

#[test]
fn a_broken_answer_is_repaired_once() {
    run(async {
        let world = World::new(|at, _| match at {
            0 => says("Sure! Here are the entities you asked for:"),
            _ => says(good().to_string()),
        });
        assert_eq!(names(&world.extract(TEXT).await), UNITED);
        let messages = world.body(1)["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), 4);
        assert_eq!(
            messages[2]["content"],
            "Sure! Here are the entities you asked for:"
        );
        assert!(
            messages[3]["content"]
                .as_str()
                .unwrap()
                .contains("it is not JSON")
        );

        let world = World::new(|_, _| says("{\"entities\": [{}], \"relations\": []}"));
        assert_fallback(
            &world.extract(TEXT).await,
            "the answer is unusable, also after one repair: ",
        );
        assert_eq!(world.requests(), 2);
    });
}

#[test]
fn a_truncated_answer_is_repaired_once() {
    run(async {
        let cut: Behaviour = |_, _| {
            let whole = good().to_string();
            let message = json!({"content": whole[..whole.len() / 2]});
            HttpResponse::Ok().json(json!({"choices": [{"message": message, "finish_reason": "length"}]}))
        };
        let world = World::new(cut);
        assert_fallback(
            &world.extract(TEXT).await,
            "the answer is unusable, also after one repair: it was cut off at the length limit",
        );
        assert_eq!(world.requests(), 2);
    });
}

#[test]
fn what_is_no_completion_or_too_large_falls_back() {
    run(async {
        let world = World::new(|_, _| HttpResponse::Ok().body("<html>login</html>"));
        assert_fallback(
            &world.extract(TEXT).await,
            "the endpoint's answer is not a chat completion",
        );
        let world = World::new(|_, _| says("x".repeat(3 << 20)));
        assert_fallback(
            &world.extract(TEXT).await,
            "the answer is larger than 2097152 bytes",
        );
        assert_eq!(world.requests(), 1);
        // Without a Content-Length header.
        let world = World::new(|_, _| {
            let chunk = web::Bytes::from(vec![b' '; 1 << 20]);
            let chunks = futures_util::stream::repeat_with(move || Ok::<_, actix_web::Error>(chunk.clone()));
            HttpResponse::Ok().streaming(chunks)
        });
        assert_fallback(
            &world.extract(TEXT).await,
            "the answer is larger than 2097152 bytes",
        );
    });
}
