//! An exact rare word of a query leads, and what is hidden neither leads nor decides what is rare.

use super::*;
use crate::search::query::rare::is_code_word;

const SUBJECTS: [&str; 8] = [
    "mail servers",
    "power grids",
    "windows services",
    "admin panels",
    "network drivers",
    "user accounts",
    "update agents",
    "control systems",
];
const CODE_WORDS: &[&str] = &[
    "zusuzuze",
    "server-tucozu",
    "HenyvagiWindows",
    "updmngr_k9",
    "/agent/remote/hetu",
    "Global\\Vx3-lock",
    "msdtcx.dll",
    "fe-63",
    "198.51.100.99",
];

/// Many notes about few things, one of which has the code word in a long text about another thing.
fn library(code_word: &str) -> Arc<WorkspaceIndex> {
    let text = |number: usize| {
        let subject = SUBJECTS[number % SUBJECTS.len()];
        format!("Malware of kind {number} leaves traces on {subject}, agents and servers, remote or not. ")
            .repeat(3)
    };
    let mut docs: Vec<IndexDoc> = (0..160)
        .map(|number| doc(number as u128 + 1, &format!("Report {number}"), &text(number)))
        .collect();
    let noise = "Operators moved from plant to plant and opened breakers by hand. ".repeat(12);
    docs.push(doc(
        999,
        "Plant",
        &format!("{noise} It drops {code_word} there. {noise}"),
    ));
    holding(docs)
}

#[test]
fn the_only_holder_of_a_code_word_comes_first() {
    for word in CODE_WORDS {
        let index = library(word);
        for query in [
            (*word).to_owned(),
            format!("server {word}"),
            format!("which malware leaves {word}"),
            format!("remote agents and servers that leave {word} on windows"),
        ] {
            for mode in [Mode::Blended, Mode::Keyword] {
                let hits = found(&index, &query, mode, &all(), 10);
                assert_eq!(hits.first(), Some(&id(999)), "{query} {mode:?}");
            }
        }
    }
}

#[test]
fn hidden_holders_do_not_make_a_word_common() {
    let index = library("zusuzuze");
    let filter = Filter::up_to(Tlp::Amber);
    let query = "which malware leaves zusuzuze";
    let before = found(&index, query, Mode::Blended, &filter, 10);
    let hidden = (0..8).map(|number| IndexDoc {
        tlp: Tlp::Red,
        ..doc(2_000 + number, "Hidden", "It leaves zusuzuze, too.")
    });
    index.apply(hidden.collect(), 2).unwrap();
    assert_eq!(before.first(), Some(&id(999)));
    assert_eq!(
        found(&index, query, Mode::Blended, &filter, 10).first(),
        before.first()
    );
    // Who sees them all sees a word of many.
    assert!(found(&index, query, Mode::Keyword, &all(), 10).contains(&id(2_001)));
}

#[test]
fn ordinary_words_that_are_rare_by_accident_do_not_lead() {
    assert!(!is_code_word("hospitals") && !is_code_word("exfiltrated") && is_code_word("zusuzuze"));
    let index = library("hospitals");
    let query = "malware of kind 7 on control systems and hospitals";
    let hits = found(&index, query, Mode::Keyword, &all(), 10);
    assert_ne!(hits.first(), Some(&id(999)));
}

#[test]
fn a_made_up_word_leads_in_a_long_question_and_an_identifier_in_a_long_text() {
    let question = "Which kinds of malware leave a trace named zusuzuze on the agents, servers and drivers of remote networks?";
    let statement =
        "The malware left a trace named zusuzuze on the agents, servers and drivers of remote networks.";
    let index = library("zusuzuze");
    let first = |query: &str| found(&index, query, Mode::Keyword, &all(), 10).first().copied();
    assert_eq!(first(question), Some(id(999)));
    assert_ne!(first(statement), Some(id(999)));
    let index = library("updmngr_k9");
    let first = |query: &str| found(&index, query, Mode::Keyword, &all(), 10).first().copied();
    let long = "Malware of some kind left traces on mail servers, power grids, windows services, admin panels, network drivers, \
                user accounts, update agents and control systems, remote or not, and on other agents and servers of each \
                report there was a file named updmngr_k9 beside the traces on remote agents and servers.";
    assert_eq!(first(long), Some(id(999)));
}

#[test]
fn words_of_a_language_that_the_vocabulary_does_not_know_do_not_lead() {
    // Four nodes have what the query is about, so none of their words is rare.
    let mut docs: Vec<IndexDoc> = (0..40)
        .map(|number| {
            let text = match number % 10 {
                0 => "Schadsoftware greift Krankenhäuser und Stromnetze an, meldet der Bericht.",
                _ => "Über das Wetter am Fluss und die Ernte im Tal wurde lange gesprochen.",
            };
            doc(number + 1, &format!("Bericht {number}"), text)
        })
        .collect();
    let noise = "Die Bediener gingen von Anlage zu Anlage und öffneten Schalter von Hand. ".repeat(12);
    docs.push(doc(
        999,
        "Anlage",
        &format!("{noise} Ein Werkzeug lag dort, svcqx17 genannt. {noise}"),
    ));
    let index = holding(docs);
    let first = |query: &str| found(&index, query, Mode::Keyword, &all(), 10).first().copied();
    let query = "Schadsoftware greift Krankenhäuser und Stromnetze mit einem Werkzeug an";
    assert_ne!(first(query), Some(id(999)));
    assert_eq!(first(&format!("{query} svcqx17")), Some(id(999)));
    assert_eq!(first("Werkzeug"), Some(id(999)));
}
