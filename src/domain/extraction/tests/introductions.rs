//! Names that no list has are found where a text gives them, and nowhere else.

use super::*;

/// The names in the text, each with its kind.
fn names(text: &str) -> Vec<(EntityKind, &str)> {
    let hits = Extractor::shared().extract(text).into_iter();
    let names = hits.filter(|hit| hit.kind.is_name());
    names
        .map(|hit| (hit.kind, text.get(hit.span).unwrap_or_default()))
        .collect()
}

#[test]
fn a_text_gives_names_to_actors_malware_and_tools() {
    use EntityKind::{Actor, Malware, Tool};
    for (text, expected) in [
        (
            "They used a new backdoor malware dubbed Qobwane.",
            vec![(Malware, "Qobwane")],
        ),
        (
            "In May a new loader, which we dubbed VexaSoul, appeared.",
            vec![(Malware, "VexaSoul")],
        ),
        (
            "We have named this threat actor Fjordfall for its servers.",
            vec![(Actor, "Fjordfall")],
        ),
        ("We dubbed the eCrime gang “Q.X.P.”.", vec![(Actor, "Q.X.P")]),
        (
            "The threat group that Initech tracks as TRX-4471 sent it.",
            vec![(Actor, "TRX-4471")],
        ),
        (
            "An embedded loader, dubbed by Initech as VexaBlast, ran.",
            vec![(Malware, "VexaBlast")],
        ),
        (
            "The intruders ran a tool known as VexaDump on the servers.",
            vec![(Tool, "VexaDump")],
        ),
        (
            "They called it VexaSpy, an information stealing malware.",
            vec![(Malware, "VexaSpy")],
        ),
        (
            "The “TorvoX” loader decrypts the payload.",
            vec![(Malware, "TorvoX")],
        ),
        (
            "It came from the threat actor “Torvold”.",
            vec![(Actor, "Torvold")],
        ),
        (
            "Qobwane is a modular backdoor written in Go.",
            vec![(Malware, "Qobwane")],
        ),
        (
            "Fjordfall is a China-nexus threat group that hits ports.",
            vec![(Actor, "Fjordfall")],
        ),
        (
            "We named the threat actor behind it Fjordfall.",
            vec![(Actor, "Fjordfall")],
        ),
        (
            "Initech is calling this variant VexaBuer.",
            vec![(Malware, "VexaBuer")],
        ),
        (
            "A document builder, known in the underground as “TorvoDoc,” makes malicious files.",
            vec![(Tool, "TorvoDoc")],
        ),
        (
            "The access was sold by a threat actor who goes by the alias “Torvold”.",
            vec![(Actor, "Torvold")],
        ),
        (
            "Attackers buy the document builder VexaDoc to spread malware.",
            vec![(Tool, "VexaDoc")],
        ),
        (
            "Hospitals were hit by the VexaSoul backdoor.",
            vec![(Malware, "VexaSoul")],
        ),
        (
            "The gang calls itself The Torvold Brothers.",
            vec![(Actor, "Torvold Brothers")],
        ),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn a_name_counts_wherever_its_text_has_it() {
    let text = "Qobwane loots ports.\n\nWe dubbed this backdoor Qobwane. Qobwane (see below) waits, and then \
        Qobwane's server answers. A qobwane is a bird, Qobwanes are many, and C:\\Qobwane is a path.";
    let places: Vec<usize> = Extractor::shared()
        .extract(text)
        .into_iter()
        .filter(|hit| hit.kind == EntityKind::Malware)
        .map(|hit| hit.span.start)
        .collect();
    let after = |words: &str| text.find(words).map(|at| at + words.len());
    assert_eq!(
        places.into_iter().map(Some).collect::<Vec<_>>(),
        [after("this backdoor "), after("and then "),]
    );
    let mixed = "VexaSoul came first. A backdoor called VexaSoul was next.";
    assert_eq!(
        names(mixed).len(),
        2,
        "a name with capitals inside may also begin a sentence"
    );
}

#[test]
fn another_name_of_a_known_one_stands_for_it() {
    for (text, expected) in [
        (
            "APT28, also known as Torvold, was back. In spring Torvold left.",
            vec!["APT28", "APT28", "APT28"],
        ),
        (
            "The group Turla (tracked as TRX-4471) hit ports.",
            vec!["Turla", "Turla"],
        ),
        ("Emotet is also known as “VexaSoul”.", vec!["Emotet", "Emotet"]),
        (
            "Emotet, known as Germany's worst malware, was back.",
            vec!["Emotet"],
        ),
        (
            "Emotet, known as one of the Internet's worst, was back.",
            vec!["Emotet"],
        ),
        (
            "The backdoor that APT28 dubbed VexaSoul ran.",
            vec!["APT28", "VexaSoul"],
        ),
    ] {
        let hits = Extractor::shared().extract(text).into_iter();
        let values: Vec<String> = hits
            .filter(|hit| hit.kind.is_name())
            .map(|hit| hit.value)
            .collect();
        assert_eq!(values, expected, "{text}");
    }
}

#[test]
fn what_is_named_must_be_a_threat() {
    for text in [
        "The vulnerability was named Heartfail by its finders.",
        "The campaign, dubbed Operation Nightfall, hit ports.",
        "They added a user to the local group called Power Users.",
        "We use a framework called Rocket for the server.",
        "A tool called Rustfmt formats it.",
        "The actor took the alias Tom Hardy, and the malware closes the handle FileHandle.",
        "The TypedBuilder builder checks its fields, and the WebPack packer joins files.",
        "The malware dropped a file named Update.exe and called CreateProcess.",
        "The trojan opens a named pipe and a mutex called Global\\Torvo.",
        "The group, which has been named as the one responsible for the Initech incident, left.",
        "Ransomware as a Service is a business model.",
        "Phishing is a type of attack, and spyware is a kind of malware.",
        "Below is a graph that tallies the attacks and the gangs behind them.",
        "Initech is a threat research group in Oslo.",
        "This is a backdoor that nobody knows.",
        "It is called “malware as a service”.",
        "The worm is called with the argument -x.",
        "PowerShell malware and a JavaScript backdoor came from a GitHub loader.",
        "OpenLabs malware researchers wrote it.",
        "The WHO named this variant Omicron, and it is no malware.",
        "Iran is a state-sponsored threat actor, the ransomware The Guardian wrote of is another.",
        "She called Anna about the ransomware.",
        "Attackers are sometimes referred to as the 'Advanced Persistent Threat' (APT).",
    ] {
        assert_eq!(names(text), [], "{text}");
    }
}

#[test]
fn a_name_spelled_as_no_word_counts_beside_other_capitals() {
    let text = "We named the botnet VexaBus. Each VexaBus ELF binary is packed. See ![it](/VexaBus/1.png) and VexaBus-like code.";
    assert_eq!(names(text), [(EntityKind::Malware, "VexaBus"); 2]);
}
