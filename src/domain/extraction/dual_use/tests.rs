//! Common software is found, and told from tools that somebody used.

use super::super::{EntityKind, Gazetteer, entities_of};
use super::*;
use crate::domain::staging::ExtractedEntity;

fn tool(text: &str, name: &str) -> ExtractedEntity {
    let found = entities_of(text).entities;
    let tool = found
        .into_iter()
        .find(|entity| program_name(&entity.name) == program_name(name));
    tool.unwrap_or_else(|| panic!("{name} is not found in {text:?}"))
}

#[test]
fn common_software_that_is_only_named_waits_for_a_review() {
    for (text, name) in [
        (
            "Figure 3 shows the icons of TeamViewer and PuTTY on the desktop.",
            "TeamViewer",
        ),
        (
            "Figure 3 shows the icons of TeamViewer and PuTTY on the desktop.",
            "PuTTY",
        ),
        ("Administrators use PsExec to manage their servers.", "PsExec"),
        (
            "Monitor the execution of rundll32 and mshta on all hosts.",
            "rundll32",
        ),
        (
            "Monitor the execution of rundll32 and mshta on all hosts.",
            "mshta",
        ),
        ("Attackers could use certutil to download files.", "certutil"),
        ("There is no evidence that the attackers used PsExec.", "PsExec"),
        ("MSBuild is a part of Visual Studio.", "MSBuild"),
        ("We used TeamViewer to help the customer.", "TeamViewer"),
        ("Did the attackers use AnyDesk?", "AnyDesk"),
        ("AnyDesk is used by administrators of many companies.", "AnyDesk"),
    ] {
        let tool = tool(text, name);
        assert_eq!(tool.properties["dual_use"], true, "{text}");
        assert!(
            tool.is_unstated_dual_use() && tool.confidence <= NAMED,
            "{text}: {tool:?}"
        );
    }
}

#[test]
fn common_software_that_somebody_used_is_a_tool() {
    for (text, name) in [
        ("APT28 used PsExec to move laterally.", "PsExec"),
        (
            "The attackers used a renamed copy of PsExec to reach the servers.",
            "PsExec",
        ),
        (
            "The actor executed rundll32 with a DLL from the share.",
            "rundll32",
        ),
        ("Then they ran mshta to fetch the next stage.", "mshta"),
        (
            "The ransomware runs vssadmin to delete shadow copies.",
            "vssadmin",
        ),
        ("AnyDesk was installed on two servers in the night.", "AnyDesk"),
        ("PsExec and AdFind were used in the second week.", "PsExec"),
        ("The intruders moved laterally via PsExec.", "PsExec"),
        (
            "The attackers called the help desk and installed TeamViewer.",
            "TeamViewer",
        ),
        ("Tools used by the group: Mimikatz, PsExec, AdFind.", "PsExec"),
    ] {
        let tool = tool(text, name);
        assert_eq!(tool.properties["dual_use"], true, "{text}");
        assert!(!tool.is_unstated_dual_use(), "{text}: {tool:?}");
        assert!(tool.confidence <= USED && tool.confidence > NAMED, "{text}");
    }
}

#[test]
fn malware_and_tools_of_attackers_stay_as_they_were() {
    for (text, name) in [
        ("The report names Mimikatz.", "Mimikatz"),
        ("The report names Industroyer.", "Industroyer"),
    ] {
        let tool = tool(text, name);
        assert!(
            !tool.properties.contains_key("dual_use") && tool.confidence > 0.8,
            "{text}"
        );
    }
}

#[test]
fn the_list_holds_no_malware_and_marking_twice_changes_nothing() {
    let lines = DATA.lines().map(str::trim);
    for name in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let entry = Gazetteer::shared().resolve(name);
        assert!(entry.is_none_or(|entry| entry.kind == EntityKind::Tool), "{name}");
    }
    let text = "APT28 used PsExec. PuTTY is on the desktop.";
    let mut twice = entities_of(text);
    mark_dual_use(text, &mut twice);
    assert_eq!(twice, entities_of(text));
}
