//! Statuses, waits and lost tokens.

use futures_util::FutureExt;

use super::*;
use crate::outbound::Policy;
use crate::taxii::PullErrorKind;

const LAST: &str = "2024-02-01T00:00:00.000000Z";
const BEFORE_LAST: &str = "2024-01-31T23:59:59.000000Z";

fn status(status: u16) -> Reply {
    answer(status, &[("content-type", "text/html")], "<html>secret</html>")
}

fn more(name: &str, next: &str) -> Reply {
    dated(
        &envelope(&[name], &format!(r#","more":true,"next":"{next}""#)),
        LAST,
        LAST,
    )
}

fn end(name: &str) -> Reply {
    dated(&envelope(&[name], ""), LAST, LAST)
}

/// The cursor of page `number` (from 1) of a script.
async fn cursor_after(number: usize, replies: Vec<Reply>) -> PullCursor {
    let mut pull = fresh(&Server::script(replies));
    let mut cursor = PullCursor::default();
    for _ in 0..number {
        cursor = pull.next_page().await.unwrap().unwrap().cursor;
    }
    cursor
}

#[tokio::test]
async fn statuses_fail_in_plain_words() {
    for (code, text) in [
        (
            401,
            "the collection answered 401 Unauthorized; this service sends no credentials",
        ),
        (
            403,
            "the collection answered 403 Forbidden; this service sends no credentials",
        ),
        (404, "the collection answered 404 Not Found; check the feed's URL"),
        (
            406,
            "the collection answered 406 Not Acceptable; it does not offer application/taxii+json;version=2.1",
        ),
        (304, "the collection answered 304 Not Modified"),
        (416, "the collection answered 416 Range Not Satisfiable"),
        (499, "the collection answered 499"),
    ] {
        let server = Server::script(vec![status(code)]);
        let error = fresh(&server).next_page().await.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(error.kind(), PullErrorKind::FarSide);
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn of_an_error_message_only_the_title_is_told() {
    let title = format!("bad\u{1b}[31m \u{202e}filter\n {}", "x".repeat(500));
    let body = serde_json::json!({"title": title, "description": "secret", "http_status": "400"});
    let reply = answer(
        400,
        &[("content-type", "application/json; charset=utf-8")],
        body.to_string(),
    );
    let text = failure(reply).await.to_string();
    assert!(text.contains(r#"it says "bad[31m filter xxx"#), "{text}");
    assert!(
        !text.contains("secret") && text.len() < 300 && !text.contains(char::is_control),
        "{text}"
    );
}

#[tokio::test]
async fn what_the_http_client_says_keeps_its_kind() {
    let elsewhere = Policy::for_endpoint(&Url::parse("https://other.example").unwrap());
    let refused = OutboundError::Refused(elsewhere.check(OBJECTS).unwrap_err());
    for (error, kind) in [
        (refused, PullErrorKind::Policy),
        (OutboundError::Timeout { ms: 8000 }, PullErrorKind::Timeout),
        (
            OutboundError::Unreachable("no route".into()),
            PullErrorKind::FarSide,
        ),
        (OutboundError::Broken("reset".into()), PullErrorKind::FarSide),
    ] {
        let server = Server::script(vec![Err(error)]);
        assert_eq!(fresh(&server).next_page().await.unwrap_err().kind(), kind);
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_server_error_is_retried_once() {
    let server = Server::script(vec![status(502), end("a")]);
    assert_eq!(read_all(&mut fresh(&server)).await.unwrap().0, ["a"]);
    assert_eq!(server.waits(), [1]);
    let server = Server::script(vec![status(500)]);
    let error = fresh(&server).next_page().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the collection answered 500 Internal Server Error"
    );
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it_within_bounds() {
    let date = "Sun, 22 Nov 2026 10:22:29 GMT";
    let until = "Sun, 22 Nov 2026 10:22:59 GMT";
    let busy = |headers: &[(&'static str, &str)]| answer(429, headers, "");
    for (reply, wait) in [
        (busy(&[("retry-after", "7")]), 7),
        (busy(&[("retry-after", "0")]), 1),
        (busy(&[("retry-after", until), ("date", date)]), 30),
        (busy(&[("retry-after", date), ("date", until)]), 1),
        // No clock to compare with, or no time at all.
        (busy(&[("retry-after", until)]), 5),
        (busy(&[]), 5),
        (answer(503, &[("retry-after", "60")], ""), 60),
        (answer(503, &[], ""), 1),
    ] {
        let server = Server::script(vec![reply, end("a")]);
        assert_eq!(read_all(&mut fresh(&server)).await.unwrap().0, ["a"]);
        assert_eq!(server.waits(), [wait]);
    }
    let server = Server::script(vec![busy(&[("retry-after", "600")])]);
    let error = fresh(&server).next_page().await.unwrap_err().to_string();
    assert!(error.contains("asks to wait 600 s"), "{error}");
    assert_eq!(server.asked().len(), 1);
    // The bound is for the whole pull.
    let server = Server::script(vec![busy(&[("retry-after", "25")])]);
    fresh(&server).next_page().await.unwrap_err();
    assert_eq!(server.waits(), [25, 25]);
    let server = Server::script(vec![busy(&[("retry-after", "0")])]);
    fresh(&server).next_page().await.unwrap_err();
    assert_eq!(server.waits().len(), 60);
}

#[tokio::test]
async fn a_forgotten_token_begins_the_pull_again_once() {
    let cursor = cursor_after(2, vec![more("a", "t1"), more("b", "t2"), end("c")]).await;
    for code in [400, 404, 410, 416, 500] {
        let server = Server::new(move |asked| match asked.param("next").as_deref() {
            Some("t2") => status(code),
            Some("n1") => end("b"),
            None => more("a", "n1"),
            Some(_) => status(418),
        });
        let (names, _) = read_all(&mut pull_of(&server, cursor.clone())).await.unwrap();
        assert_eq!(names, ["a", "b"], "{code}");
        assert_eq!(server.params("next")[0].as_deref(), Some("t2"), "{code}");
    }
    // A server that forgets every token is not asked for ever.
    let server = Server::new(|asked| match asked.param("next") {
        Some(_) => status(400),
        None => more("a", "n"),
    });
    let mut pull = pull_of(&server, cursor);
    assert_eq!(names(&pull.next_page().await.unwrap().unwrap()), ["a"]);
    assert!(matches!(pull.next_page().await, Err(PullError::Status { .. })));
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_busy_server_has_not_forgotten_the_token() {
    let cursor = cursor_after(2, vec![more("a", "t1"), more("b", "t2"), end("c")]).await;
    let server = Server::script(vec![answer(503, &[("retry-after", "600")], "")]);
    assert!(matches!(
        pull_of(&server, cursor).next_page().await,
        Err(PullError::Status { .. })
    ));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn behind_a_token_of_this_pull_416_is_the_end() {
    let server = Server::script(vec![more("a", "t1"), status(416)]);
    let mut pull = fresh(&server);
    assert!(!pull.next_page().await.unwrap().unwrap().last);
    let last = pull.next_page().await.unwrap().unwrap();
    assert!(last.last && last.objects.is_empty());
    assert_eq!(last.cursor.added_after(), Some(BEFORE_LAST));
}

#[tokio::test]
async fn a_token_that_may_have_been_used_is_not_used_again() {
    // One page: not known whether tokens are per page. Two with the same token: they are not.
    let one = cursor_after(1, vec![more("a", "t"), end("b")]).await;
    let shared = cursor_after(2, vec![more("a", "t"), more("b", "t"), end("c")]).await;
    for cursor in [one, shared] {
        assert!(cursor.is_unfinished());
        let server = Server::script(vec![end("a")]);
        read_all(&mut pull_of(&server, cursor)).await.unwrap();
        assert_eq!(server.params("next"), [None]);
    }
    let own = cursor_after(2, vec![more("a", "t1"), more("b", "t2"), end("c")]).await;
    let server = Server::script(vec![end("c")]);
    read_all(&mut pull_of(&server, own)).await.unwrap();
    assert_eq!(server.params("next"), [Some("t2".to_owned())]);
}

#[tokio::test]
async fn a_page_that_was_lost_on_the_way_is_read_again() {
    let timeout = || Err(OutboundError::Timeout { ms: 8000 });
    let server = Server::script(vec![more("a", "t"), timeout(), more("a", "u"), end("b")]);
    let mut pull = fresh(&server);
    pull.next_page().await.unwrap();
    assert_eq!(
        pull.next_page().await.unwrap_err(),
        PullError::Timeout { ms: 8000 }
    );
    assert_eq!(read_all(&mut pull).await.unwrap().0, ["a", "b"]);
    let next = |text: &str| Some(text.to_owned());
    assert_eq!(server.params("next"), [None, next("t"), None, next("u")]);
    // A server error that may have used the token up.
    let server = Server::script(vec![more("a", "t"), status(502), more("a", "u"), end("b")]);
    assert_eq!(read_all(&mut fresh(&server)).await.unwrap().0, ["a", "a", "b"]);
    // A token per page is asked for again.
    let server = Server::script(vec![more("a", "t"), more("b", "u"), timeout(), end("c")]);
    let mut pull = fresh(&server);
    pull.next_page().await.unwrap();
    pull.next_page().await.unwrap();
    pull.next_page().await.unwrap_err();
    assert_eq!(read_all(&mut pull).await.unwrap().0, ["c"]);
}

#[tokio::test]
async fn a_call_that_was_dropped_skips_nothing() {
    let server = Server::script(vec![more("a", "t"), more("a", "u"), end("b")]);
    let mut pull = fresh(&server);
    pull.next_page().await.unwrap();
    assert!(pull.next_page().now_or_never().is_none());
    // The request went out, so the server may have moved on.
    assert_eq!(
        read_all(&mut pull).await.unwrap().1.added_after(),
        Some(BEFORE_LAST)
    );
    assert_eq!(server.params("next")[..3], [None, Some("t".to_owned()), None]);
}
