//! Servers whose pages lead nowhere.

use super::*;

fn stuck(result: Result<(Vec<String>, PullCursor), PullError>) -> String {
    match result {
        Err(PullError::Stuck(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_same_page_for_ever() {
    let server = Server::script(vec![page(&envelope(&["a"], r#","more":true,"next":"t""#))]);
    stuck(read_all(&mut fresh(&server)).await);
    assert!(server.asked().len() <= 3);
}

#[tokio::test]
async fn pages_in_a_circle() {
    for length in [2, 3, 7, 50] {
        let server = Server::new(move |asked| {
            let (at, next) = (asked.number % length, (asked.number + 1) % length);
            page(&envelope(
                &[&format!("n{at}")],
                &format!(r#","more":true,"next":"{next}""#),
            ))
        });
        stuck(read_all(&mut fresh(&server)).await);
        assert!(
            server.asked().len() <= 4 * length + 3,
            "{length}: {}",
            server.asked().len()
        );
    }
}

#[tokio::test]
async fn the_same_objects_under_ever_new_tokens() {
    let server = Server::new(|asked| {
        page(&envelope(
            &["a", "b"],
            &format!(r#","more":true,"next":"{}""#, asked.number),
        ))
    });
    stuck(read_all(&mut fresh(&server)).await);
    assert!(server.asked().len() < 12);
}

#[tokio::test]
async fn one_token_with_new_content_is_in_order() {
    let server = Server::new(|asked| {
        let rest = if asked.number < 300 {
            r#","more":true,"next":"scroll""#
        } else {
            ""
        };
        page(&envelope(&[&format!("n{}", asked.number)], rest))
    });
    let (names, _) = read_all(&mut fresh(&server)).await.unwrap();
    assert_eq!(names.len(), 301);
}

#[tokio::test]
async fn a_page_that_repeats_the_last_object_is_in_order() {
    let server = Server::new(|asked| {
        let (a, b) = (format!("n{}", asked.number), format!("n{}", asked.number + 1));
        let rest = if asked.number < 20 {
            format!(r#","more":true,"next":{}"#, asked.number)
        } else {
            String::new()
        };
        page(&envelope(&[&a, &b], &rest))
    });
    let (names, _) = read_all(&mut fresh(&server)).await.unwrap();
    assert_eq!((names.len(), names[41].as_str()), (42, "n21"));
}

#[tokio::test]
async fn more_without_token_and_date() {
    for body in [r#"{"more":true}"#, r#"{"more":true,"objects":[]}"#] {
        let text = stuck(read_all(&mut fresh(&Server::script(vec![page(body)]))).await);
        assert!(text.contains("neither a page token nor the date"), "{text}");
    }
    let server = Server::new(|asked| match asked.is_manifest() {
        true => answer(404, &[], ""),
        false => page(&envelope(&["a"], r#","more":true"#)),
    });
    stuck(read_all(&mut fresh(&server)).await);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn an_endless_collection_ends_at_the_limit_and_goes_on_later() {
    let server = Server::new(|asked| {
        let at: u32 = asked.param("next").map_or(0, |next| next.parse().unwrap());
        page(&envelope(
            &[&format!("n{at}")],
            &format!(r#","more":true,"next":"{}""#, at + 1),
        ))
    });
    // One page would not show whether the next pull can go on: 2 is the least.
    let settings = PullSettings {
        max_pages: 1,
        ..PullSettings::default()
    };
    let mut cursor = PullCursor::default();
    for number in 0..5 {
        let mut pull = pull_with(&server, OBJECTS, cursor, settings);
        let first = pull.next_page().await.unwrap().unwrap();
        let second = pull.next_page().await.unwrap().unwrap();
        assert_eq!(
            [names(&first), names(&second)],
            [[format!("n{}", number * 2)], [format!("n{}", number * 2 + 1)]]
        );
        assert_eq!(
            pull.next_page().await.unwrap_err(),
            PullError::TooManyPages { max_pages: 2 }
        );
        cursor = second.cursor;
    }
}
