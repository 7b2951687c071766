use super::*;
use crate::taxii::date::AddedAt;

fn head(id: &str, version: &str, added: &str) -> String {
    format!(r#"{{"id":"indicator--{id}","version":"{version}","date_added":"{added}"}}"#)
}

const VERSION: &str = "2024-01-01T00:00:00Z";

#[test]
fn dates_and_the_step_before_them() {
    for (text, kept, before) in [
        (
            "2024-01-01T00:00:00.123456Z",
            "2024-01-01T00:00:00.123456Z",
            "2024-01-01T00:00:00.123455Z",
        ),
        // Six digits of a server that stores milliseconds, or seconds.
        (
            "2024-01-01T00:00:00.123000Z",
            "2024-01-01T00:00:00.123000Z",
            "2024-01-01T00:00:00.122000Z",
        ),
        (
            "2024-01-01T00:00:00.000000Z",
            "2024-01-01T00:00:00.000000Z",
            "2023-12-31T23:59:59.000000Z",
        ),
        (
            "2024-01-01T00:00:00.123Z",
            "2024-01-01T00:00:00.123Z",
            "2024-01-01T00:00:00.122Z",
        ),
        (
            "2024-01-01T00:00:00Z",
            "2024-01-01T00:00:00Z",
            "2023-12-31T23:59:59Z",
        ),
        (
            "2024-01-01T00:00:00.123456789Z",
            "2024-01-01T00:00:00.123456789Z",
            "2024-01-01T00:00:00.123455789Z",
        ),
        (
            "2024-01-01T02:00:00.5+02:00",
            "2024-01-01T02:00:00.5+02:00",
            "2024-01-01T00:00:00.499Z",
        ),
        (
            "2024-01-01T00:00:00.123456",
            "2024-01-01T00:00:00.123456",
            "2024-01-01T00:00:00.123455",
        ),
        (
            "Thu Feb 20 2020 22:10:20 GMT+0000 (Coordinated Universal Time)",
            "2020-02-20T22:10:20Z",
            "2020-02-20T22:10:19Z",
        ),
        (
            "Thu, 20 Feb 2020 22:10:20 GMT",
            "2020-02-20T22:10:20Z",
            "2020-02-20T22:10:19Z",
        ),
    ] {
        let date = AddedAt::parse(text).unwrap();
        assert_eq!((date.text.as_str(), date.step_back().as_str()), (kept, before));
    }
    for text in [
        "",
        "undefined",
        "null",
        "2024-01-01",
        "1704067200",
        &"9".repeat(5000),
    ] {
        assert!(AddedAt::parse(text).is_none(), "{text}");
    }
}

#[tokio::test]
async fn the_latest_date_of_the_pull_is_kept_as_written() {
    let more = |name: &str| envelope(&[name], &format!(r#","more":true,"next":"{name}""#));
    let server = Server::script(vec![
        dated(&more("a"), "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"),
        dated(&more("b"), "2024-01-01T00:00:00Z", "2024-01-01T00:30:00.000Z"),
        dated(&envelope(&["c"], ""), "2024-01-01T00:00:00Z", "undefined"),
    ]);
    let (_, cursor) = read_all(&mut fresh(&server)).await.unwrap();
    assert_eq!(cursor.added_after(), Some("2024-01-01T00:30:00.000Z"));
    // The manifest is asked for the date of the last page, and does not know it.
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn a_date_without_objects_or_before_the_start_moves_nothing() {
    let start = "2024-05-01T00:00:00.000Z";
    let cursor = PullCursor {
        added_after: Some(start.into()),
        unfinished: None,
    };
    let later = "2030-01-01T00:00:00Z";
    let early = "2020-01-01T00:00:00Z";
    for reply in [
        dated(r#"{"objects":[]}"#, later, later),
        dated(&envelope(&["a"], ""), early, early),
    ] {
        let server = Server::script(vec![reply]);
        let (_, after) = read_all(&mut pull_of(&server, cursor.clone())).await.unwrap();
        assert_eq!(after, cursor);
    }
}

#[tokio::test]
async fn without_headers_the_manifest_tells_the_date() {
    let server = Server::new(|asked| match (asked.is_manifest(), asked.param("next")) {
        (true, _) => {
            assert_eq!(asked.param("match[id]").as_deref(), Some("indicator--b"));
            let entries = [
                head("x", VERSION, "2024-09-01T00:00:00Z"),
                // Another version, added since.
                head("b", "2024-06-01T00:00:00.000Z", "2024-08-01T00:00:00Z"),
                head("b", VERSION, "2024-02-02T00:00:00.000000Z"),
            ];
            page(&format!(r#"{{"objects":[{}]}}"#, entries.join(",")))
        }
        (false, None) => page(&envelope(&["a"], r#","more":true,"next":"t""#)),
        (false, Some(_)) => page(&envelope(&["b"], "")),
    });
    let (_, cursor) = read_all(&mut fresh(&server)).await.unwrap();
    assert_eq!(cursor.added_after(), Some("2024-02-02T00:00:00.000000Z"));
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].param("limit").as_deref(), Some("100"));
    assert_eq!(asked[2].accept, TAXII);
}

#[tokio::test]
async fn a_manifest_that_does_not_help_moves_nothing() {
    let other = format!(
        r#"{{"objects":[{}]}}"#,
        head("a", "2024-06-01T00:00:00Z", "2024-08-01T00:00:00Z")
    );
    for reply in [
        page("{}"),
        page(&other),
        page(r#"{"objects":[{"id":"indicator--a"}]}"#),
        page("[]"),
        answer(404, &[], ""),
        answer(200, &[("content-type", "text/html")], "<html>"),
        Err(OutboundError::Timeout { ms: 8000 }),
    ] {
        let server = Server::script(vec![page(&envelope(&["a"], "")), reply]);
        let (names, cursor) = read_all(&mut fresh(&server)).await.unwrap();
        assert_eq!((names.len(), cursor), (1, PullCursor::default()));
        assert_eq!(server.asked().len(), 2);
    }
    // No manifest beside it, or objects without id.
    for (url, body) in [
        ("https://f.example/feed", envelope(&["a"], "")),
        (OBJECTS, r#"{"objects":[{}]}"#.into()),
    ] {
        let server = Server::script(vec![page(&body)]);
        let mut pull = Pull::new(
            server.clone(),
            collection(url),
            PullCursor::default(),
            PullSettings::default(),
        );
        pull.next_page().await.unwrap();
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn without_token_and_headers_the_manifest_pages_by_date() {
    let dates = [
        "2024-01-01T00:00:00.100Z",
        "2024-01-02T00:00:00.100Z",
        "2024-01-03T00:00:00.100Z",
    ];
    let server = Server::new(move |asked| {
        let after = asked.param("added_after").unwrap_or_default();
        let rest: Vec<usize> = (0..3).filter(|at| dates[*at] > after.as_str()).collect();
        if asked.is_manifest() {
            let id = asked.param("match[id]").unwrap();
            let at: usize = id.trim_start_matches("indicator--").parse().unwrap();
            return page(&format!(
                r#"{{"objects":[{}]}}"#,
                head(&at.to_string(), VERSION, dates[at])
            ));
        }
        let shown: Vec<String> = rest.iter().take(2).map(usize::to_string).collect();
        let names: Vec<&str> = shown.iter().map(String::as_str).collect();
        page(&envelope(&names, &format!(r#","more":{}"#, rest.len() > 2)))
    });
    let (names, cursor) = read_all(&mut fresh(&server)).await.unwrap();
    assert_eq!(names, ["0", "1", "1", "2"]);
    assert_eq!(cursor.added_after(), Some(dates[2]));
}
