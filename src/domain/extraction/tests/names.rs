//! Ordinary words are no names, names are found where a sentence says what they are.

use super::*;

fn names(text: &str) -> Vec<String> {
    Extractor::shared()
        .extract(text)
        .into_iter()
        .filter(|hit| hit.kind.is_name())
        .map(|hit| hit.text(text).to_owned())
        .collect()
}

#[test]
fn ordinary_sentences_name_nobody() {
    let sentences: Vec<&str> = include_str!("../../../../tests/data/ordinary_sentences.txt")
        .lines()
        .collect();
    assert!(sentences.len() >= 300, "{} sentences", sentences.len());
    let mut wrong = Vec::new();
    for sentence in sentences {
        for text in [sentence.to_owned(), sentence.to_lowercase()] {
            let found = names(&text);
            if !found.is_empty() {
                wrong.push(format!("{found:?} in {text:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_words_name_nobody_in_one_long_text() {
    let text = include_str!("../../../../tests/data/ordinary_sentences.txt").replace('\n', " ");
    assert_eq!(names(&text), Vec::<String>::new());
}

#[test]
fn an_ordinary_word_is_a_name_beside_a_word_for_a_threat() {
    for (text, expected) in [
        ("The Royal ransomware hit a city.", vec!["Royal ransomware"]),
        ("Analysts linked the Zeus banking trojan to it.", vec!["Zeus"]),
        ("It was the backdoor Carbon that gave them away.", vec!["Carbon"]),
        ("They ran a malware called Snake for years.", vec!["Snake"]),
        (
            "The ransomware gang known as Play hit two hospitals.",
            vec!["Play"],
        ),
        (
            "Ransomware groups such as Play, Royal and Akira hit hospitals.",
            vec!["Play", "Royal", "Akira"],
        ),
        (
            "Attackers deployed Sliver and Havoc on the servers.",
            vec!["Sliver", "Havoc"],
        ),
        (
            "The intruders installed Mimikatz, Sliver and AnyDesk.",
            vec!["Mimikatz", "Sliver", "AnyDesk"],
        ),
        (
            "Groups such as Play, Royal and Akira extort their victims.",
            vec!["Play", "Royal", "Akira"],
        ),
        ("Turla (Snake) was seen again.", vec!["Turla", "Snake"]),
        ("Victims of the Akira group paid.", vec!["Akira group"]),
        ("The Havoc framework was used.", vec!["Havoc framework"]),
        ("The Mythic framework was used.", vec!["Mythic"]),
        ("Akira's affiliates bought access.", vec![]),
        ("Victims blamed Akira's affiliates.", vec!["Akira"]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn a_longer_name_or_a_company_is_none() {
    for text in [
        "Royal Mail was hit by ransomware.",
        "The Phoenix Group reported malware.",
        "Silver Carbon malware",
        "Ransomware at Royal-Bank",
        "Click Play. Malware was found.",
        "The malware was removed as Royal staff looked on.",
        "The attackers wrote to Royal Caribbean and Orion Energy.",
    ] {
        assert_eq!(names(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_text_that_names_a_malware_may_go_on_with_the_bare_word() {
    let text = "Hive ransomware appeared in 2021. Later Hive was rewritten in Rust. Hive boxes are for bees.";
    assert_eq!(names(text), ["Hive ransomware", "Hive"]);
    assert_eq!(names("Later Hive was rewritten in Rust."), Vec::<String>::new());
}

#[test]
fn the_file_of_a_program_names_the_tool_in_any_case() {
    for (text, expected) in [
        (
            "They ran net.exe, AT.EXE and Ping.exe.",
            vec!["net.exe", "AT.EXE", "Ping.exe"],
        ),
        ("They ran evil-net.exe and C:\\Temp\\ping.exe.", vec![]),
        ("At the net of it, ping me on the best route.", vec![]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn names_of_the_galaxies_are_found_with_their_kind() {
    let hits = found(
        "SparklingGoblin used Squirrelwaffle, and sqlmap was run by a group that Talos calls YoroTrooper.",
    );
    assert_eq!(
        hits,
        [
            (EntityKind::Actor, "SparklingGoblin".to_owned()),
            (EntityKind::Malware, "Squirrelwaffle".to_owned()),
            (EntityKind::Tool, "sqlmap".to_owned()),
            (EntityKind::Actor, "YoroTrooper".to_owned()),
        ]
    );
}

#[test]
fn a_name_in_another_case_counts_where_the_text_tells_what_it_is() {
    for (text, expected) in [
        (
            "TA415 is also known as Barium and APT41.",
            vec!["TA415", "Barium", "APT41"],
        ),
        (
            "Attackers deployed Sliver on the servers. With SLIVER, they moved on.",
            vec!["Sliver", "SLIVER"],
        ),
        ("Barium is an element, and a SLIVER of it glows.", vec![]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn a_name_in_the_address_of_a_link_is_no_mention() {
    for (text, expected) in [
        ("![A chart](/blogs/Emotet%20again/chart.png)", vec![]),
        (
            "[Emotet](/blogs/emotet \"Emotet\") is back.",
            vec!["Emotet", "Emotet"],
        ),
        ("See [this](/blogs/emotet), then Emotet.", vec!["Emotet"]),
        ("Emotet [1](a) and Emotet(b)", vec!["Emotet", "Emotet"]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn markdown_and_other_spellings_are_read() {
    for (text, expected) in [
        (r"It dropped more\_eggs.", vec![r"more\_eggs"]),
        ("It talks to TOR domains.", vec!["TOR"]),
        ("They paid for the RIG EK.", vec!["RIG"]),
        ("It calls WScript.Shell, an AutoIt script.", vec![]),
        (
            "It runs wscript.exe and rundll32.",
            vec!["wscript.exe", "rundll32"],
        ),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}
