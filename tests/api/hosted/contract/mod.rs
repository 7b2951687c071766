//! The hosted contract row by row: its tables Endpoints, Errors and Limits. A failure names the row.

mod endpoints;
mod errors;
mod limits;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use regex::Regex;
use serde_json::{Value, json};

use super::feeds::{self, server::Server};
use crate::helpers::{Client, TestApp, run, settings};
use crate::stix::{object, with};

const PREVIEW: &str = "Fancy Bear used Mimikatz against 198.51.100.7 and exploited CVE-2024-3094.";

/// One row of a table, and what it promises.
struct Row {
    name: &'static str,
    check: for<'w> fn(&'w World) -> LocalBoxFuture<'w, ()>,
}

/// Rows: a name and what is to be checked in a [`World`].
macro_rules! rows {
    ($($name:literal => |$world:ident| $check:block)+) => {
        vec![$($crate::hosted::contract::Row { name: $name, check: |$world| Box::pin(async move $check) }),+]
    };
}
use rows;

/// A service with some content, and a TAXII server.
struct World {
    app: TestApp,
    taxii: Server,
    visitors: AtomicU8,
}

impl World {
    async fn new() -> Self {
        let mut settings = feeds::allowing(settings("mem://"));
        settings.server.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        let app = TestApp::with(settings).await;
        let heron = with(object("tool", "Contract Heron"), json!({"labels": ["tlp:red"]}));
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        app.admin
            .ingest(json!([object("tool", "Contract Hook"), heron]))
            .await;
        Self {
            app,
            taxii: Server::start(&feeds::tools(3)).await,
            visitors: AtomicU8::new(0),
        }
    }

    fn admin(&self) -> &Client {
        &self.app.admin
    }

    /// A client without credentials at an address of its own.
    fn visitor(&self) -> Client {
        let number = self.visitors.fetch_add(1, Ordering::Relaxed);
        self.app
            .anonymous()
            .with_header("x-forwarded-for", &format!("203.0.113.{number}"))
    }

    async fn staged(&self) -> Value {
        self.admin()
            .post("/api/ingest/preview", &json!({"text": PREVIEW}))
            .await
            .expect(200)
            .await
    }
}

/// Runs all rows, then fails with the names of those that failed.
async fn check(rows: Vec<Row>) {
    let world = World::new().await;
    let mut failed = Vec::new();
    for row in rows {
        if AssertUnwindSafe((row.check)(&world))
            .catch_unwind()
            .await
            .is_err()
        {
            failed.push(row.name);
        }
    }
    assert!(failed.is_empty(), "rows that failed: {failed:#?}");
    world.app.stop().await;
}

#[test]
fn every_row_of_the_endpoints_table_holds() {
    run(check(endpoints::rows()));
}

#[test]
fn every_row_of_the_errors_table_holds() {
    run(check(errors::rows()));
}

#[test]
fn every_row_of_the_limits_table_holds() {
    run(check(limits::rows()));
}

/// The rows of a table of the specification: the text of their first cell.
fn first_cells(section: &str) -> Vec<String> {
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.split('|').nth(1).unwrap().trim().to_owned())
        .collect()
}

#[test]
fn no_row_of_the_specification_is_missing() {
    let Some(path) = test_support::shared("spec/hosted-service.md") else {
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let section = |title: &str| {
        let rest = text.split(&format!("\n## {title}\n")).nth(1).unwrap();
        rest.split("\n## ").next().unwrap().to_owned()
    };
    let names = |rows: Vec<Row>| rows.iter().map(|row| row.name).collect::<Vec<_>>();

    let endpoints = section("Endpoints");
    let in_text = Regex::new(r"\*\*(GET|POST|PATCH) (/[^*]+)\*\*").unwrap();
    let in_table = Regex::new(r"(?m)^\| (GET|POST) \| (/\S+) \|").unwrap();
    let found = in_text
        .captures_iter(&endpoints)
        .chain(in_table.captures_iter(&endpoints));
    let promised: Vec<String> = found
        .map(|route| format!("{} {}", &route[1], &route[2]).replace("<sharing_platform>", "misp"))
        .collect();
    assert_eq!(promised.len(), 25, "{promised:?}");
    assert_eq!(missing(&promised, &names(endpoints::rows())), Vec::<&str>::new());
    assert_eq!(
        missing(&first_cells(&section("Errors")), &names(errors::rows())),
        Vec::<&str>::new()
    );
    assert_eq!(
        missing(&first_cells(&section("Limits")), &names(limits::rows())),
        Vec::<&str>::new()
    );
}

fn missing<'p>(promised: &'p [String], rows: &[&str]) -> Vec<&'p str> {
    let promised = promised.iter().map(String::as_str);
    promised
        .filter(|row| !rows.iter().any(|name| name.starts_with(row)))
        .collect()
}
