//! The ids of a workspace's rows, which are made from names, so that every ingest gives the same ones.
//!
//! Rule: nobody can compute an id. If a hidden row has the id that a name gives, what a caller without clearance sends
//! under this name gets another id; who could compute the first one would learn that the hidden row exists.

use std::collections::HashSet;
use std::fmt;

use uuid::Uuid;

use super::cursor_seal::CursorSeal;
use super::memory::entity::EntityKey;

/// Makes the ids of one workspace's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceIds {
    namespace: Uuid,
}

/// What the ids of all workspaces are made with: a secret of the installation. Workspaces that are older than the secret
/// keep the ids they have, which anybody can compute who knows the workspace and the name.
#[derive(Clone)]
pub struct IdSecret {
    secret: Uuid,
    public: HashSet<Uuid>,
}

impl IdSecret {
    /// This secret, and the workspaces that are older than it.
    pub fn new(secret: Uuid, public: impl IntoIterator<Item = Uuid>) -> Self {
        Self {
            secret,
            public: public.into_iter().collect(),
        }
    }

    /// The ids of a workspace's rows: those that nobody can compute, unless the workspace is older than the secret.
    pub fn ids_of(&self, ws: Uuid) -> WorkspaceIds {
        if self.public.contains(&ws) {
            return WorkspaceIds { namespace: ws };
        }
        self.secret_ids_of(ws)
    }

    /// What seals the positions in a list of a workspace.
    pub fn seal(&self, list: &str, ws: Uuid) -> CursorSeal {
        CursorSeal::new(self.secret.as_bytes(), list, ws.as_bytes())
    }

    /// Ids that nobody can compute, in a workspace of any age: for rows that have no earlier id to keep.
    pub fn secret_ids_of(&self, ws: Uuid) -> WorkspaceIds {
        WorkspaceIds {
            namespace: Uuid::new_v5(&self.secret, ws.as_bytes()),
        }
    }
}

impl WorkspaceIds {
    /// The id of a node: of a STIX object by its STIX id, of any other by what identifies it.
    pub fn node(self, name: &str) -> Uuid {
        self.row("node", name)
    }

    /// The id of an entity of the memory.
    pub fn entity(self, key: &EntityKey) -> Uuid {
        self.node(&key.identity())
    }

    /// The id of a relationship.
    pub fn edge(self, name: &str) -> Uuid {
        self.row("edge", name)
    }

    /// The id of the edge between two entities of the memory.
    pub fn relation(self, source: Uuid, relationship: &str, target: Uuid) -> Uuid {
        self.row("relation", &format!("{source}\0{relationship}\0{target}"))
    }

    /// The id of an evidence record.
    pub fn evidence(self, name: &str) -> Uuid {
        self.row("evidence", name)
    }

    /// The id of a text about nodes.
    pub fn passage(self, name: &str) -> Uuid {
        self.row("passage", name)
    }

    /// The id of a staging batch of a text that has no session.
    pub fn staging_batch(self, name: &str) -> Uuid {
        self.row("staging batch", name)
    }

    /// The id of a TAXII collection that every workspace has.
    pub fn collection(self, alias: &str) -> Uuid {
        self.row("collection", alias)
    }

    /// The id of what was handed in over TAXII.
    pub fn hand_in(self, name: &str) -> Uuid {
        self.row("hand-in", name)
    }

    fn row(self, kind: &str, name: &str) -> Uuid {
        Uuid::new_v5(&self.namespace, format!("{kind}\0{name}").as_bytes())
    }
}

impl fmt::Debug for WorkspaceIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkspaceIds").finish_non_exhaustive()
    }
}

impl fmt::Debug for IdSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdSecret").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Uuid = Uuid::from_u128(1);
    const OLD: Uuid = Uuid::from_u128(2);
    const NEW: Uuid = Uuid::from_u128(3);

    /// The ids that each workspace gives to rows of one name.
    fn ids(of: WorkspaceIds) -> [Uuid; 4] {
        [of.node("n"), of.edge("n"), of.evidence("n"), of.passage("n")]
    }

    #[test]
    fn ids_follow_from_the_secret_unless_the_workspace_is_older() {
        let (one, other) = (
            IdSecret::new(SECRET, [OLD]),
            IdSecret::new(Uuid::from_u128(9), [OLD]),
        );
        assert_eq!(ids(one.ids_of(OLD)), ids(other.ids_of(OLD)));
        let public = |kind: &str| Uuid::new_v5(&OLD, format!("{kind}\0n").as_bytes());
        assert_eq!(
            ids(one.ids_of(OLD)),
            ["node", "edge", "evidence", "passage"].map(public)
        );

        let all = [
            one.ids_of(NEW),
            other.ids_of(NEW),
            one.secret_ids_of(OLD),
            one.ids_of(OLD),
        ];
        let all: HashSet<Uuid> = all.into_iter().flat_map(ids).collect();
        assert_eq!(all.len(), 16);
        assert_eq!(one.ids_of(NEW), one.secret_ids_of(NEW));
        assert_eq!(format!("{one:?}"), "IdSecret { .. }", "no secret goes to a log");
    }
}
