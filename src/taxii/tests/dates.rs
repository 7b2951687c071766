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
async fn the_next_pull_begins_a_step_before_the_latest_date() {
    let more = |name: &str| envelope(&[name], &format!(r#","more":true,"next":"{name}""#));
    let server = Server::script(vec![
        dated(&more("a"), "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"),
        dated(&more("b"), "2024-01-01T00:00:00Z", "2024-01-01T00:30:00.000Z"),
        dated(&envelope(&["c"], ""), "2024-01-01T00:00:00Z", "undefined"),
    ]);
    let (_, cursor) = read_all(&mut fresh(&server)).await.unwrap();
    assert_eq!(cursor.added_after(), Some("2024-01-01T00:29:59.000Z"));
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
    let later = "2025-01-01T00:00:00Z";
    let early = "2020-01-01T00:00:00Z";
    let soon = "2024-05-01T00:00:00.001Z";
    for reply in [
        dated(r#"{"objects":[]}"#, later, later),
        dated(&envelope(&["a"], ""), early, early),
        // A server that includes the date it is asked for, and one whose next date is a step away.
        dated(&envelope(&["a"], ""), start, start),
        dated(&envelope(&["a"], ""), soon, soon),
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
    assert_eq!(cursor.added_after(), Some("2024-02-01T23:59:59.000000Z"));
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
        let mut pull = pull_with(&server, url, PullCursor::default(), PullSettings::default());
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
    assert_eq!(cursor.added_after(), Some("2024-01-03T00:00:00.099Z"));
}

/// A bulk load with one date that outlasts the pull, or a server that counts in seconds.
#[tokio::test]
async fn what_is_added_later_at_the_latest_instant_is_delivered() {
    for (inclusive, again) in [(false, &["1", "2"][..]), (true, &["0", "1", "2"])] {
        let (first, last) = ("2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z");
        let added = Arc::new(Mutex::new(vec![first, last]));
        let known = Arc::clone(&added);
        let server = Server::new(move |asked| {
            let after = asked.param("added_after").unwrap_or_default();
            let all = known.lock().unwrap().clone();
            let behind = |date: &str| date > after.as_str() || (inclusive && date == after);
            let shown = (0..all.len()).filter(|at| behind(all[*at]));
            let shown: Vec<String> = shown.map(|at| at.to_string()).collect();
            let names: Vec<&str> = shown.iter().map(String::as_str).collect();
            dated(&envelope(&names, ""), first, last)
        });
        let (names, cursor) = read_all(&mut fresh(&server)).await.unwrap();
        assert_eq!((names.len(), cursor.added_after()), (2, Some(first)));
        added.lock().unwrap().push(last);
        for _ in 0..3 {
            let (names, after) = read_all(&mut pull_of(&server, cursor.clone())).await.unwrap();
            assert_eq!(names, again);
            assert_eq!(after, cursor);
        }
    }
}

#[tokio::test]
async fn a_date_in_the_future_counts_as_missing() {
    let sunday = Some("Sun, 01 Jun 2025 12:00:00 GMT");
    for (date, added, reached) in [
        // The server's clock decides, whatever the caller's is.
        (sunday, "2025-06-02T12:00:00Z", Some("2025-06-02T11:59:59Z")),
        (sunday, "2025-06-02T12:00:00.001Z", None),
        (
            Some("Sat, 01 Jun 2030 12:00:00 GMT"),
            "2030-06-01T11:00:00Z",
            Some("2030-06-01T10:59:59Z"),
        ),
        (None, "2026-01-02T00:00:00Z", Some("2026-01-01T23:59:59Z")),
        (None, "2026-01-02T00:00:01Z", None),
        (
            Some("today"),
            "2026-01-02T00:00:00Z",
            Some("2026-01-01T23:59:59Z"),
        ),
        (Some("today"), "2026-01-02T00:00:01Z", None),
        (sunday, "9999-12-31T23:59:59.999999Z", None),
        (None, "9999-12-31T23:59:59.999999Z", None),
    ] {
        let with_date = |rest: &[(&'static str, &str)], body: String| {
            let mut headers = vec![(CONTENT_TYPE.as_str(), TAXII)];
            headers.extend(date.map(|date| ("date", date)));
            headers.extend(rest);
            answer(200, &headers, body)
        };
        let objects = envelope(&["a"], "");
        let told = with_date(&[("x-taxii-date-added-last", added)], objects.clone());
        let server = Server::script(vec![told, answer(404, &[], "")]);
        let (_, cursor) = read_all(&mut fresh(&server)).await.unwrap();
        assert_eq!(cursor.added_after(), reached, "{date:?} {added}");
        assert_eq!(server.asked().len(), if reached.is_some() { 1 } else { 2 });
        // The same date in the manifest.
        let entries = format!(r#"{{"objects":[{}]}}"#, head("a", VERSION, added));
        let server = Server::script(vec![page(&objects), with_date(&[], entries)]);
        let (_, cursor) = read_all(&mut fresh(&server)).await.unwrap();
        assert_eq!(cursor.added_after(), reached, "{date:?} {added}");
    }
}

#[tokio::test]
async fn a_date_in_the_future_is_replaced_by_the_manifests() {
    let absurd = "9999-12-31T23:59:59Z";
    let manifest = format!(
        r#"{{"objects":[{},{}]}}"#,
        head("b", VERSION, absurd),
        head("b", VERSION, "2024-02-02T00:00:00.5Z")
    );
    let early = "2024-02-01T00:00:00Z";
    let first = envelope(&["a"], r#","more":true,"next":"t""#);
    for (manifest, reached) in [
        (page(&manifest), "2024-02-02T00:00:00.499Z"),
        // The date of the page before is left.
        (answer(404, &[], ""), "2024-01-31T23:59:59Z"),
    ] {
        let server = Server::script(vec![
            dated(&first, early, early),
            dated(&envelope(&["b"], ""), early, absurd),
            manifest,
        ]);
        let (_, cursor) = read_all(&mut fresh(&server)).await.unwrap();
        assert_eq!(cursor.added_after(), Some(reached));
    }
}
