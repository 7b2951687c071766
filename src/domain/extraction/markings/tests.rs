use proptest::prelude::*;

use super::*;

#[test]
fn the_rules_compile() {
    assert!(MARKING.is_some());
    assert!(PHRASES.iter().all(|(_, regex)| regex.is_some()));
}

#[test]
fn markings_are_read_however_they_are_written() {
    for (text, want) in [
        ("TLP:RED", Tlp::Red),
        ("Marked tlp: red, sorry", Tlp::Red),
        ("[TLP:AMBER+STRICT]", Tlp::AmberPk),
        ("TLP AMBER+STRICT", Tlp::AmberPk),
        ("TLP:AMBER-STRICT", Tlp::AmberPk),
        ("TLP AMBER STRICT", Tlp::AmberPk),
        ("tlp:amber+pk", Tlp::AmberPk),
        ("AMBER+STRICT applies", Tlp::AmberPk),
        ("TLP AMBER, strict handling", Tlp::Amber),
        ("TLP-GREEN", Tlp::Green),
        ("TLP_WHITE", Tlp::White),
        ("TLP v2.0: CLEAR", Tlp::White),
        ("TLP\u{2011}RED", Tlp::Red),
        ("TLP[:]RED", Tlp::Red),
        ("Traffic Light Protocol (TLP): Amber", Tlp::Amber),
        (
            "TLP:GREEN in part, TLP:RED in the annex, TLP:WHITE else",
            Tlp::Red,
        ),
    ] {
        assert_eq!(tlp_hint(text), Some(want), "{text}");
    }
}

#[test]
fn parts_of_other_words_are_no_marking() {
    for text in [
        "",
        "HTLP:RED",
        "TLPRED",
        "TLP:REDACTED",
        "TLP:GREENHOUSE",
        "TLP is a protocol. Red teams use it.",
        "TLP\n\nRed team exercise",
        "the red light, amber and green",
        "stlp-green",
        "TLP:PINK",
    ] {
        assert_eq!(tlp_hint(text), None, "{text}");
    }
}

#[test]
fn a_marking_above_the_proposed_one_is_warned_of() {
    let warnings = sensitivity("TLP:RED. APT28 uses X-Agent.", Tlp::Green);
    assert_eq!(
        warnings,
        ["TLP sensitivity: the text states TLP:RED, above the proposed TLP:GREEN"]
    );
    assert!(sensitivity("TLP:AMBER", Tlp::Amber).is_empty());
    assert!(sensitivity("TLP:GREEN", Tlp::Red).is_empty());
    assert_eq!(sensitivity("TLP:AMBER+STRICT", Tlp::Amber).len(), 1);
}

#[test]
fn words_that_ask_for_care_are_warned_of() {
    for text in [
        "Do not share.",
        "Intro. DO NOT SHARE outside the team.",
        "Please do not forward this email.",
        "We ask that you do not share this report with anyone.",
        "Partners agreed: don't distribute further.",
        "This report must not be shared.",
        "These indicators may not be redistributed without approval.",
        "This advisory is not to be published.",
        "Not for public release",
        "Not for distribution",
        "not intended for further distribution",
        "No further dissemination, please.",
        "Confidential",
        "** CONFIDENTIAL **\nSummary",
        "CONFIDENTIAL - incident 42",
        "Strictly confidential: incident 42",
        "This report is strictly confidential and names victims.",
        "This incident information is to be kept confidential.",
        "Please treat this as confidential.",
        "commercial-in-confidence",
        "Classification: Restricted",
        "For internal use only",
        "INTERNAL USE ONLY",
        "[internal only] Notes on the incident",
        "Shared on a need-to-know basis.",
        "strictly need to know",
        "For your eyes only.",
        "FIVE EYES ONLY",
        "RESTRICTED\nSummary of findings",
        "NATO RESTRICTED",
        "OFFICIAL-SENSITIVE",
        "Restricted distribution: CERTs",
        "Distribution is limited to members.",
        "Law Enforcement Sensitive",
        "For official use only (FOUO)",
        "Embargoed until Tuesday.",
        "Provided under NDA.",
        "For named recipients only.",
    ] {
        let warnings = sensitivity(text, Tlp::Green);
        assert!(!warnings.is_empty(), "{text}");
        assert!(
            warnings.iter().all(|warning| warning.starts_with(SENSITIVITY)),
            "{warnings:?}"
        );
    }
}

#[test]
fn ordinary_reports_are_not_warned_of() {
    for text in [
        "They do not share infrastructure with APT28.",
        "The two clusters do not share code or tooling.",
        "While the samples overlap, these families do not share a builder.",
        "The actor stole confidential documents and restricted data.",
        "The flaw affects the confidentiality of data.",
        "The lure was named CONFIDENTIAL.docx and CONFIDENTIAL_2024.pdf.",
        "CVE-2024-1 allows access to restricted areas.",
        "Restricted Admin mode was enabled on the host.",
        "The API is reachable from internal-only networks.",
        "An internal tool is used by the group.",
        "What you need to know about Log4Shell",
        "Defenders need to know which ports are open.",
        "Follow the need-to-know principle when granting access.",
        "The group eyes only financial targets.",
        "Samples were not shared publicly until 2023.",
        "The vendor did not release the code.",
        "Confidential VMs protect memory.",
        "Its distribution relies on phishing mails.",
        "Access is restricted to administrators.",
        "The malware does not copy itself.",
        "Law enforcement seized the servers.",
    ] {
        assert_eq!(sensitivity(text, Tlp::White), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn words_ask_for_a_level_and_no_more() {
    assert!(sensitivity("Do not share.", Tlp::Amber).is_empty());
    assert_eq!(sensitivity("For your eyes only.", Tlp::Amber).len(), 1);
    assert!(sensitivity("For your eyes only.", Tlp::Red).is_empty());
    let warnings = sensitivity("Do not share. do  not share! Not for distribution.", Tlp::Green);
    assert_eq!(
        warnings,
        [
            "TLP sensitivity: the text says \"Do not share\", which asks for TLP:AMBER, above the proposed TLP:GREEN",
            "TLP sensitivity: the text says \"Not for distribution\", which asks for TLP:AMBER, above the proposed TLP:GREEN",
        ]
    );
}

proptest! {
    #[test]
    fn nothing_is_above_red_and_the_count_is_bounded(text in r"(TLP:RED |Do not share\. |Confidential\n|[a-z .]{0,9}|FOUO|NOFORN |LIMDIS |embargoed until |internal use only\.){0,30}") {
        prop_assert!(sensitivity(&text, Tlp::Red).is_empty());
        prop_assert!(sensitivity(&text, Tlp::White).len() <= 1 + MAX_PHRASES);
    }
}
