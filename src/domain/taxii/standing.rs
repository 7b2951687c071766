//! The collections that every workspace has: all objects, and those of each marking.

use super::view::{CollectionView, Contents};
use crate::domain::ids::WorkspaceIds;
use crate::domain::permission::Permission;
use crate::domain::principal::Principal;
use crate::domain::tlp::Tlp;

/// The alias of the collection with all objects.
const ALL: &str = "all";

/// The collections of the caller's workspace that nobody has defined, those of markings above the caller's clearance
/// excepted. Nobody may write to them.
pub fn standing_collections(by: &Principal, ids: WorkspaceIds) -> Vec<CollectionView> {
    let can_read = by.holds(Permission::RecallRead);
    let standing = |alias: String, title: String, description: &str, contents| CollectionView {
        id: ids.collection(&alias),
        title,
        description: Some(description.to_owned()),
        can_read: can_read && may_leave(by, &contents),
        can_write: false,
        contents,
        alias: Some(alias),
    };
    let all = standing(
        ALL.to_owned(),
        "All objects".to_owned(),
        "Everything that you may see and that may leave this workspace.",
        Contents::All,
    );
    let highest = by.workspace.clearance().highest();
    let levels = Tlp::ALL.into_iter().filter(|level| *level <= highest);
    let of_levels = levels.map(|level| {
        let description = match level {
            Tlp::Red => {
                "Objects with this marking. They leave only while the workspace has red_export_grant."
            }
            Tlp::White | Tlp::Green | Tlp::Amber | Tlp::AmberPk => "Objects with this marking.",
        };
        standing(
            alias_of(level),
            level.as_str().to_owned(),
            description,
            Contents::Level(level),
        )
    });
    [all].into_iter().chain(of_levels).collect()
}

/// Whether anything of a collection may leave the workspace.
fn may_leave(by: &Principal, contents: &Contents) -> bool {
    *contents != Contents::Level(Tlp::Red) || by.workspace.red_export_grant
}

/// Such as `tlp-amber-pk`.
fn alias_of(level: Tlp) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    level.as_str().chars().map(plain).collect()
}
