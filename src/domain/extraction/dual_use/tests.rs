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
            tool.needs_reviewer() && tool.confidence <= NAMED,
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
        assert!(!tool.needs_reviewer(), "{text}: {tool:?}");
        assert!(tool.confidence <= USED && tool.confidence > NAMED, "{text}");
    }
}

#[test]
fn doubt_counts_only_where_it_is_about_the_use() {
    for (text, name) in [
        ("In May 2023 the attackers used PsExec.", "PsExec"),
        (
            "Because there was no segmentation, the attackers used PsExec.",
            "PsExec",
        ),
        (
            "Because there was no segmentation the attackers used PsExec.",
            "PsExec",
        ),
        ("Without triggering alarms, they used PsExec.", "PsExec"),
        ("The actor, likely APT28, used PsExec.", "PsExec"),
        ("The attackers (possibly APT28) used PsExec.", "PsExec"),
        ("The attackers exfiltrated data to MEGA with Rclone.", "Rclone"),
        ("APT29 dumped LSASS with ProcDump.", "ProcDump"),
        ("They archived it with WinRAR.", "WinRAR"),
        (
            "The group compressed the documents with 7-Zip before it left.",
            "7-Zip",
        ),
        ("The attackers exfiltrated data using Rclone.", "Rclone"),
        ("Data was exfiltrated with Rclone.", "Rclone"),
        (
            "LSASS was dumped with ProcDump on the domain controller.",
            "ProcDump",
        ),
        ("On May 12 the intruders ran PsExec on all servers.", "PsExec"),
        (
            "The intruders had no credentials and used PsExec with a stolen hash.",
            "PsExec",
        ),
        (
            "The group could not reach the server, so it used AnyDesk.",
            "AnyDesk",
        ),
        (
            "Although it is unclear how they got in, the intruders used PsExec.",
            "PsExec",
        ),
        ("If antivirus was off, the malware ran vssadmin.", "vssadmin"),
        (
            "APT28, which is suspected of ties to the GRU, used PsExec.",
            "PsExec",
        ),
        (
            "The group, which had not been seen before, used AnyDesk.",
            "AnyDesk",
        ),
        (
            "The attackers did not use malware but relied on PsExec.",
            "PsExec",
        ),
        (
            "Not a single alarm was raised while the attackers used AnyDesk.",
            "AnyDesk",
        ),
        ("No malware was found: the attackers used PsExec.", "PsExec"),
        (
            "Researchers at ESET found that the attackers used PsExec.",
            "PsExec",
        ),
        ("We saw APT41 use PsExec.", "PsExec"),
        ("Analysts observed the actor using AnyDesk.", "AnyDesk"),
        ("The attackers' use of PsExec was not detected.", "PsExec"),
        ("Researchers documented the use of PsExec by APT28.", "PsExec"),
        ("The group made use of AnyDesk to stay in the network.", "AnyDesk"),
        ("The attackers not only used Mimikatz but also PsExec.", "PsExec"),
        ("The operators connected to the server with PuTTY.", "PuTTY"),
        ("In hospitals, attackers used TeamViewer.", "TeamViewer"),
        ("Attackers moved to other hosts using PsExec.", "PsExec"),
        (
            "Attacks on hospitals used PsExec and AnyDesk; the group ran PsExec at night.",
            "PsExec",
        ),
        ("The group tunneled RDP with ngrok.", "ngrok"),
        ("The malicious document runs mshta.", "mshta"),
        ("Ransomware affiliates deployed AnyDesk.", "AnyDesk"),
        (
            "Several users were phished, then the attackers installed TeamViewer.",
            "TeamViewer",
        ),
        (
            "Should defenders look away, they are lost: the attackers used PsExec.",
            "PsExec",
        ),
        (
            "A user may have clicked the link, and the attackers installed AnyDesk.",
            "AnyDesk",
        ),
        (
            "The victim could not pay, and the gang used PsExec to wipe it.",
            "PsExec",
        ),
        ("AnyDesk was installed in May 2022.", "AnyDesk"),
        (
            "Without any alarm, AnyDesk was installed on two servers.",
            "AnyDesk",
        ),
        ("PsExec, which is no malware, was used on all hosts.", "PsExec"),
        (
            "The attackers never touched the OT network and used PsExec only in IT.",
            "PsExec",
        ),
        (
            "Scattered Spider calls help desks and installs AnyDesk.",
            "AnyDesk",
        ),
        ("The threat actor exfiltrated 40 GB via Rclone.", "Rclone"),
        ("Black Basta affiliates copied files with WinSCP.", "WinSCP"),
        ("The loader downloads a script that runs mshta.", "mshta"),
    ] {
        let tool = tool(text, name);
        assert!(!tool.needs_reviewer(), "{text}: {tool:?}");
    }
}

#[test]
fn who_works_with_a_program_and_who_doubts_its_use_states_none() {
    for (text, name) in [
        (
            "The report documents use of TeamViewer in hospitals.",
            "TeamViewer",
        ),
        ("Build scripts run MSBuild.", "MSBuild"),
        ("User groups use TeamViewer.", "TeamViewer"),
        (
            "Plant operators use TeamViewer to reach their HMIs.",
            "TeamViewer",
        ),
        ("Hospitals often use TeamViewer.", "TeamViewer"),
        ("MSBuild is run by build scripts.", "MSBuild"),
        ("TeamViewer is used by user groups.", "TeamViewer"),
        ("The paper describes the use of PsExec in companies.", "PsExec"),
        ("The advisory warns of the use of AnyDesk.", "AnyDesk"),
        ("Administrators archive logs with WinRAR.", "WinRAR"),
        ("The vendor delivers its product with TeamViewer.", "TeamViewer"),
        ("The attackers may have used PsExec.", "PsExec"),
        ("The attackers did not use PsExec.", "PsExec"),
        ("There is no evidence that the attackers used PsExec.", "PsExec"),
        ("It is unclear whether the attackers used PsExec.", "PsExec"),
        ("Reportedly, the attackers used PsExec.", "PsExec"),
        ("Most likely, the attackers used PsExec.", "PsExec"),
        (
            "According to unconfirmed reports, the attackers used PsExec.",
            "PsExec",
        ),
        ("Perhaps the attackers used PsExec.", "PsExec"),
        ("No attackers used PsExec.", "PsExec"),
        ("Neither APT28 nor APT29 used PsExec.", "PsExec"),
        ("The attackers used Mimikatz but not PsExec.", "PsExec"),
        ("The attackers used a tool similar to PsExec.", "PsExec"),
        ("If the attackers used PsExec, isolate the host.", "PsExec"),
        ("They could have archived it with WinRAR.", "WinRAR"),
        ("The attackers did not archive the files with WinRAR.", "WinRAR"),
        ("Data was not exfiltrated with Rclone.", "Rclone"),
        ("There is no evidence that PsExec was used.", "PsExec"),
        ("PsExec may have been used.", "PsExec"),
        ("PsExec was never used.", "PsExec"),
        ("The attackers did not look around and use PsExec.", "PsExec"),
        ("The attackers may have gained access and used PsExec.", "PsExec"),
        ("In May 2023 the attackers may have used PsExec.", "PsExec"),
        ("It is common to use TeamViewer in hospitals.", "TeamViewer"),
        ("IT staff use TeamViewer for support.", "TeamViewer"),
        ("Attackers target companies that use TeamViewer.", "TeamViewer"),
        ("Attackers scan for hosts running TeamViewer.", "TeamViewer"),
        (
            "The attackers dumped passwords from hosts with TeamViewer installed.",
            "TeamViewer",
        ),
        ("Users connect to the plant with TeamViewer.", "TeamViewer"),
        ("We archived the evidence with 7-Zip.", "7-Zip"),
        ("Researchers tracking APT41 used PsExec in a test.", "PsExec"),
        ("Detect the use of PsExec on servers.", "PsExec"),
        ("It is possible that the attackers used PsExec.", "PsExec"),
        (
            "The group's report lists use of TeamViewer among the risks.",
            "TeamViewer",
        ),
        ("Login scripts run rundll32 on each workstation.", "rundll32"),
        ("The company works with TeamViewer.", "TeamViewer"),
        ("Working groups meet with TeamViewer.", "TeamViewer"),
        ("Did the group archive it with WinRAR?", "WinRAR"),
        (
            "The attackers, researchers believe, may have used PsExec.",
            "PsExec",
        ),
        ("AnyDesk was not installed by the attackers.", "AnyDesk"),
    ] {
        let tool = tool(text, name);
        assert!(tool.needs_reviewer(), "{text}: {tool:?}");
    }
}

#[test]
fn a_confidence_stated_for_all_raises_none_of_common_software() {
    let named = tool("Figure 3 shows the icon of TeamViewer.", "TeamViewer");
    assert!(named.confidence_or(Some(0.9)) <= NAMED);
    assert!(named.confidence_or(Some(0.1)) < 0.2 && named.confidence_or(None) <= NAMED);
    let used = tool("The attackers used PsExec.", "PsExec");
    assert!(used.confidence_or(Some(0.9)) <= USED);
    let other = tool("The report names Mimikatz.", "Mimikatz");
    assert!(other.confidence_or(Some(0.95)) > 0.9);
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
