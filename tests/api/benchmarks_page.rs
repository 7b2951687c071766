//! The page docs/benchmarks.md, into which `cargo bench -- --report` writes.

#[allow(dead_code)] // The benchmarks use the rest.
#[path = "../../benches/common/report.rs"]
mod report;

use report::replace_section;

const PAGE: &str = include_str!("../../docs/benchmarks.md");
const BEGIN: &str = "<!-- report: ";

#[test]
fn a_report_replaces_its_section_and_nothing_else() {
    let page = "# A\n<!-- report: one -->\nold <!-- /report -->\n<!-- report: two -->kept<!-- /report -->\n";
    let new = replace_section(page, "one", "| new |\n").unwrap();
    assert_eq!(
        new,
        "# A\n<!-- report: one -->\n\n| new | <!-- /report -->\n<!-- report: two -->kept<!-- /report -->\n"
    );
    assert_eq!(replace_section(&new, "one", "| new |").unwrap(), new);
}

#[test]
fn a_section_that_is_missing_or_has_no_end_is_named() {
    let page = "<!-- report: one -->\n<!-- report: two -->\n<!-- /report -->\n";
    for section in ["one", "three"] {
        let message = replace_section(page, section, "").unwrap_err();
        assert!(message.contains(&format!("section {section}")), "{message}");
    }
}

#[test]
fn every_section_of_the_page_can_be_replaced() {
    let sections: Vec<&str> = PAGE
        .split(BEGIN)
        .skip(1)
        .filter_map(|rest| rest.split_once(" -->"))
        .map(|(section, _)| section)
        .collect();
    assert!(sections.contains(&"hosted") && sections.contains(&"local"));
    for section in sections {
        replace_section(PAGE, section, "new").unwrap();
    }
}
