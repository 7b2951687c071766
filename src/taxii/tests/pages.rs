use super::*;
use crate::taxii::PullErrorKind;

#[tokio::test]
async fn media_types() {
    let body = envelope(&["a"], "");
    for accepted in [
        "application/taxii+json;version=2.1",
        "Application/TAXII+JSON ; charset=utf-8; version=2.1",
        "application/vnd.oasis.taxii+json; version=2.0",
        "application/stix+json; charset=utf-8; version=2.1",
        "application/vnd.oasis.stix+json",
        "application/json",
    ] {
        let server = Server::script(vec![answer(200, &[("content-type", accepted)], body.clone())]);
        assert_eq!(
            read_all(&mut fresh(&server)).await.unwrap().0,
            ["a"],
            "{accepted}"
        );
    }
    let server = Server::script(vec![answer(200, &[], format!("\u{feff} {body}"))]);
    assert_eq!(read_all(&mut fresh(&server)).await.unwrap().0, ["a"]);

    let html = answer(
        200,
        &[("content-type", "text/html; charset=utf-8")],
        "<html>secret</html>",
    );
    let error = failure(html).await;
    assert_eq!(
        error.to_string(),
        r#"the collection's answer is not TAXII 2.1: its Content-Type is "text/html""#
    );
    assert_eq!(error.kind(), PullErrorKind::FarSide);
    assert!(matches!(
        failure(answer(200, &[], "<html>")).await,
        PullError::NotTaxii(_)
    ));
    assert!(matches!(
        failure(answer(200, &[], "")).await,
        PullError::NotTaxii(_)
    ));
}

#[tokio::test]
async fn bodies_that_are_an_end() {
    for body in [
        "{}",
        r#"{"objects":[]}"#,
        r#"{"objects":null}"#,
        r#"{"more":false}"#,
        r#"{"more":null,"next":null}"#,
        r#"{"next":""}"#,
        r#"{"more":false,"next":"later"}"#,
        r#"{"type":"bundle","id":"bundle--1"}"#,
    ] {
        let server = Server::script(vec![page(body)]);
        let mut pull = fresh(&server);
        let only = pull.next_page().await.unwrap().unwrap();
        assert!(only.last && only.objects.is_empty(), "{body}");
        assert_eq!(only.cursor, PullCursor::default());
        assert!(pull.next_page().await.unwrap().is_none());
        assert_eq!(server.asked().len(), 1, "{body}");
    }
    let server = Server::script(vec![answer(204, &[], "")]);
    assert!(fresh(&server).next_page().await.unwrap().unwrap().last);
}

#[tokio::test]
async fn bodies_that_are_read_leniently() {
    let bundle = format!(
        r#"{{"type":"bundle","id":"bundle--1","objects":[{}]}}"#,
        object("a")
    );
    let items = format!(r#"{{"items":[{}],"more":false}}"#, object("a"));
    for body in [bundle, items] {
        let server = Server::script(vec![answer(206, &[("content-type", TAXII)], body)]);
        assert_eq!(read_all(&mut fresh(&server)).await.unwrap().0, ["a"]);
    }
}

#[tokio::test]
async fn more_and_next_in_the_forms_that_servers_send() {
    for (rest, next) in [
        (r#","more":true,"next":"t""#, "t"),
        (r#","more":"true","next":"t""#, "t"),
        (r#","more":"True","next":50"#, "50"),
        (r#","more":1,"next":9007199254740993123"#, "9007199254740993123"),
        (r#","next":"t""#, "t"),
        (r#","more":null,"next":-1.5e3"#, "-1.5e3"),
    ] {
        let server = Server::script(vec![page(&envelope(&["a"], rest)), page("{}")]);
        read_all(&mut fresh(&server)).await.unwrap();
        // The third request is for the manifest, as the server sends no dates.
        assert_eq!(server.params("next")[1].as_deref(), Some(next), "{rest}");
    }
    for rest in [
        r#","more":"perhaps""#,
        r#","more":[]"#,
        r#","more":true,"next":["a",1]"#,
        r#","next":true"#,
    ] {
        assert!(
            matches!(
                failure(page(&envelope(&["a"], rest))).await,
                PullError::NotTaxii(_)
            ),
            "{rest}"
        );
    }
    let long = format!(r#","next":"{}""#, "x".repeat(8 * 1024 + 1));
    assert!(matches!(
        failure(page(&envelope(&["a"], &long))).await,
        PullError::NotTaxii(_)
    ));
}

#[tokio::test]
async fn entries_that_are_no_objects_are_counted() {
    let body = format!(r#"{{"objects":[ 1,{} , null,[{{}}],"x"]}}"#, object("a"));
    let server = Server::script(vec![page(&body)]);
    let page = fresh(&server).next_page().await.unwrap().unwrap();
    assert_eq!((names(&page), page.unreadable), (vec!["a".to_owned()], 4));
    assert_eq!(page.objects[0].get(), object("a"));
}

#[tokio::test]
async fn bodies_that_are_no_envelope() {
    let description = r#"{"id":"c1","title":"Indicators","can_read":true}"#;
    let error = failure(page(description)).await.to_string();
    assert!(
        error.contains("the feed's URL must be that of a collection's objects"),
        "{error}"
    );
    for body in ["[]", "1", r#""text""#, r#"{"objects":{}}"#, r#"{"objects":"x"}"#] {
        assert!(
            matches!(failure(page(body)).await, PullError::NotTaxii(_)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn invalid_json_is_located_and_not_repeated() {
    let error = failure(page("{\"objects\":[\n{\"secret\": tru}]}")).await;
    assert!(matches!(error, PullError::InvalidJson { line: 2, .. }), "{error}");
    assert!(!error.to_string().contains("secret"));
    for body in [
        &b"{\"objects\":[{\"a\":\"\xff\"}]}"[..],
        b"{\"objects\":[{}",
        b"{} {}",
    ] {
        let error = failure(answer(200, &[("content-type", TAXII)], body)).await;
        assert!(matches!(error, PullError::InvalidJson { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_page_of_ten_thousand_objects() {
    let objects = vec![r#"{"id":"x--1","name":"n"}"#; 10_000].join(",");
    let server = Server::script(vec![page(&format!(r#"{{"objects":[{objects}]}}"#))]);
    let page = fresh(&server).next_page().await.unwrap().unwrap();
    assert_eq!((page.objects.len(), page.last), (10_000, true));
    // Nesting costs no stack.
    let deep = format!(
        r#"{{"objects":[{{"a":{}{}}}]}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    let server = Server::script(vec![super::page(&deep)]);
    assert_eq!(
        fresh(&server).next_page().await.unwrap().unwrap().objects.len(),
        1
    );
}

#[tokio::test]
async fn a_cursor_is_stored_as_json() {
    let server = Server::script(vec![dated(
        &envelope(&["a"], r#","more":true,"next":"t""#),
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00Z",
    )]);
    let cursor = fresh(&server).next_page().await.unwrap().unwrap().cursor;
    assert!(cursor.is_unfinished());
    let json = serde_json::to_string(&cursor).unwrap();
    assert_eq!(serde_json::from_str::<PullCursor>(&json).unwrap(), cursor);
    assert_eq!(
        serde_json::from_str::<PullCursor>("{}").unwrap(),
        PullCursor::default()
    );
}

#[test]
fn a_pull_can_run_on_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    let server = Server::script(vec![page("{}")]);
    let mut pull = fresh(&server);
    is_send(&pull.next_page());
}
