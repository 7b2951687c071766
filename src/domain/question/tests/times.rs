//! Times, orders and comparisons of questions that ask for nothing related.

use super::*;

/// Where the words in brackets stand, and the question without the brackets.
fn named(question: &str) -> (Question, Vec<Range<usize>>) {
    let text = question.replace(['[', ']'], "");
    let reading = Question::read(&text, now());
    let names = question.split('[').skip(1);
    let names = names.filter_map(|part| part.split(']').next());
    let words = names.map(|name| {
        let from = text.find(name).unwrap();
        let is_in = |word: &&Word| word.span.start >= from && word.span.end <= from + name.len();
        let first = reading.words.iter().position(|word| is_in(&word)).unwrap();
        let last = reading.words.iter().rposition(|word| is_in(&word)).unwrap();
        first..last + 1
    });
    let words = words.collect();
    (reading, words)
}

fn time(question: &str) -> AskedTime {
    let (reading, names) = named(question);
    reading.time_asked(&names)
}

#[test]
fn questions_without_a_plan_have_a_period() {
    for (question, from, until) in [
        ("[Lathe Group] attacks before 2020", "", "2020-01-01"),
        ("[Lathe Group] attacks in 05/2023", "2023-05-01", "2023-06-01"),
        (
            "[Lathe Group] attacks in December 2023",
            "2023-12-01",
            "2024-01-01",
        ),
        ("[Lathe Group] attacks since 2022", "2022-01-01", ""),
        ("[Lathe Group] attacks after 2022", "2023-01-01", ""),
        ("[Lathe Group] 2021", "2021-01-01", "2022-01-01"),
        (
            "[Lathe Group] attacks between January and May 2023",
            "2023-01-01",
            "2023-06-01",
        ),
        (
            "[Lathe Group] attacks from November to February 2023",
            "2022-11-01",
            "2023-03-01",
        ),
        (
            "[Lathe Group] attacks from 3 to 14 May 2023",
            "2023-05-03",
            "2023-05-15",
        ),
        ("[Lathe Group] attacks yesterday", "2026-03-17", "2026-03-18"),
        ("What happened to [Brackenware] until 2019?", "", "2020-01-01"),
        (
            "notes on the [Lathe Group] added in March 2026",
            "2026-03-01",
            "2026-04-01",
        ),
        ("Angriffe der [Lathe Group] vor 2020", "", "2020-01-01"),
        ("Angriffe der [Lathe Group] vor dem Jahr 2020", "", "2020-01-01"),
        ("Angriffe der [Lathe Group] seit März 2021", "2021-03-01", ""),
        (
            "Angriffe der [Lathe Group] zwischen Januar und Mai 2023",
            "2023-01-01",
            "2023-06-01",
        ),
        ("attaques du [Lathe Group] avant 2020", "", "2020-01-01"),
        ("attaques du [Lathe Group] depuis 2021", "2021-01-01", ""),
        ("ataques de [Lathe Group] antes de 2020", "", "2020-01-01"),
        ("ataques de [Lathe Group] después de 2020", "2021-01-01", ""),
        ("attacchi di [Lathe Group] prima del 2020", "", "2020-01-01"),
    ] {
        let period = time(question).period.unwrap_or_else(|| panic!("{question}"));
        let day =
            |at: Option<DateTime<Utc>>| at.map_or(String::new(), |at| at.format("%Y-%m-%d").to_string());
        assert_eq!(
            (day(period.from), day(period.until)),
            (from.into(), until.into()),
            "{question}"
        );
    }
    assert!(
        time("notes on the [Lathe Group] added in March 2026")
            .period
            .unwrap()
            .entered
    );
}

#[test]
fn what_tells_no_time_has_no_period() {
    for question in [
        "[Lathe Group] attacks",
        "Windows Server 2019 and [Lathe Group]",
        "[Operation 2020]",
        "port 2049 of [Brackenware]",
        "Where is the [Lathe Group] based today?",
        "The [Lathe Group] was seen in many networks and in the year 2019 it hit the port of Rushmere with Marrowgate.",
    ] {
        assert_eq!(time(question).period, None, "{question}");
    }
}

#[test]
fn superlatives_of_time_ask_for_an_order() {
    use TimeOrder::{NewestFirst, OldestFirst};
    for (question, order) in [
        ("most recent attack of the [Lathe Group]", NewestFirst),
        (
            "What is the most recent attack of the [Lathe Group]?",
            NewestFirst,
        ),
        ("What did the [Lathe Group] attack most recently?", NewestFirst),
        ("latest attack by [Lathe Group]", NewestFirst),
        ("newest campaign of [Lathe Group]", NewestFirst),
        ("last attack of the [Lathe Group]", NewestFirst),
        ("[Lathe Group] last three confirmed attacks", NewestFirst),
        ("When did the [Lathe Group] last attack?", NewestFirst),
        ("Whom did the [Lathe Group] extort last?", NewestFirst),
        ("first attack of the [Lathe Group]", OldestFirst),
        ("the first reported intrusion of [Lathe Group]", OldestFirst),
        ("earliest activity of [Lathe Group]", OldestFirst),
        ("oldest incident of [Lathe Group]", OldestFirst),
        ("letzter Angriff der [Lathe Group]", NewestFirst),
        ("jüngster Angriff der [Lathe Group]", NewestFirst),
        ("erster Angriff der [Lathe Group]", OldestFirst),
        ("frühester Vorfall der [Lathe Group]", OldestFirst),
        ("dernière attaque du [Lathe Group]", NewestFirst),
        ("l'attaque la plus récente du [Lathe Group]", NewestFirst),
        ("première attaque du [Lathe Group]", OldestFirst),
        ("último ataque de [Lathe Group]", NewestFirst),
        ("el ataque más reciente de [Lathe Group]", NewestFirst),
        ("primer ataque de [Lathe Group]", OldestFirst),
        ("ultimo attacco di [Lathe Group]", NewestFirst),
        ("последняя атака [Lathe Group]", NewestFirst),
    ] {
        assert_eq!(time(question).order, Some(order), "{question}");
        assert!(!time(question).is_of_records, "{question}");
    }
    for question in [
        "latest notes on the [Lathe Group]",
        "last report about [Lathe Group]",
    ] {
        let asked = time(question);
        assert_eq!(
            (asked.order, asked.is_of_records),
            (Some(NewestFirst), true),
            "{question}"
        );
    }
}

#[test]
fn other_uses_of_these_words_ask_for_no_order() {
    for question in [
        "When was [Marrowgate] first seen?",
        "When was the [Lathe Group] first observed in attacks on banks?",
        "[Operation First Light] attacks",
        "[Last Stand] attacks",
        "Which malware is the first stage of [Marrowgate]?",
        "[Lathe Group] attacks last month",
        "What did the [Lathe Group] do in the last 30 days?",
        "[Lathe Group] attacks in the first quarter of 2022",
        "Is the latest version of Chrome exploited by [Lathe Group]?",
        "What must be patched by May at the latest because of [Lathe Group]?",
        "How long did the attack of the [Lathe Group] last?",
        "Who uses [Marrowgate]?",
        "FIRST advisory on [Marrowgate]",
    ] {
        assert_eq!(time(question).order, None, "{question}");
    }
}

#[test]
fn comparisons_are_told_by_their_words() {
    let compares = |question: &str| named(question).0.compares();
    for question in [
        "APT28 vs APT29",
        "APT28 vs. APT29",
        "APT28 versus APT29",
        "difference between APT28 and APT29",
        "What are the differences between APT28 and APT29?",
        "compare APT28 with APT29",
        "How does APT28 differ from APT29?",
        "Unterschied zwischen APT28 und APT29",
        "Vergleiche APT28 mit APT29",
        "différence entre APT28 et APT29",
        "diferencia entre APT28 y APT29",
    ] {
        assert!(compares(question), "{question}");
    }
    for question in ["APT28 and APT29", "Which groups use X-Agent?", "APT28"] {
        assert!(!compares(question), "{question}");
    }
}

#[test]
fn times_of_a_text_are_in_order() {
    let at = |text: &str, order| {
        let times = StatedTimes::in_text(text, now());
        times
            .first_in_order(order, None, now())
            .map(|at| at.format("%Y-%m-%d").to_string())
    };
    let text = "Seen on 14 May 2023, first on 2 June 2021; the certificate expires in 2031.";
    assert_eq!(at(text, TimeOrder::NewestFirst).as_deref(), Some("2023-05-14"));
    assert_eq!(at(text, TimeOrder::OldestFirst).as_deref(), Some("2021-06-02"));
    assert_eq!(
        at("Hit yesterday.", TimeOrder::NewestFirst).as_deref(),
        Some("2026-03-17")
    );
    assert_eq!(
        at("Gestern getroffen", TimeOrder::NewestFirst).as_deref(),
        Some("2026-03-17")
    );
    assert_eq!(at("No time at all", TimeOrder::NewestFirst), None);
    let ambiguous = StatedTimes::in_text("05/06/2020 Lathe Group hit Thistle mill", now());
    for (question, is_in) in [
        ("June 2020", true),
        ("May 2020", true),
        ("2020", true),
        ("before 2020", false),
        ("July 2020", false),
    ] {
        let period = time(question).period.unwrap();
        assert_eq!(ambiguous.are_in(&period), is_in, "{question}");
    }
}

#[test]
fn the_present_is_told_by_its_words() {
    for (question, is_present) in [
        ("Where is the Lathe Group based now?", true),
        ("Where is the Lathe Group currently based?", true),
        ("Wo sitzt die Lathe Group jetzt?", true),
        ("Où est basé le Lathe Group actuellement ?", true),
        ("¿Dónde está el Lathe Group ahora?", true),
        ("Where was the Lathe Group based in 2020?", false),
    ] {
        assert_eq!(named(question).0.asks_about_present(), is_present, "{question}");
    }
}
