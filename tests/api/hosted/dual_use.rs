//! Common software in a text: found, marked, and committed by automatic mode only where somebody used it.

use serde_json::json;

use super::staging::entity;
use crate::helpers::{TestApp, run};

#[test]
fn automatic_mode_commits_common_software_only_if_somebody_used_it() {
    run(async {
        let app = TestApp::shared().await;
        let text =
            "APT28 used PsExec and X-Agent. The screenshot also shows the icons of TeamViewer and PuTTY.";
        let read = json!({"text": text, "ingest_mode": "auto", "default_tlp": "TLP:GREEN"});
        let found = app.admin.preview(&read).await;
        for (name, is_committed) in [
            ("APT28", true),
            ("X-Agent", true),
            ("PsExec", true),
            ("TeamViewer", false),
            ("PuTTY", false),
        ] {
            let found = entity(&found, name);
            assert_eq!(found["node_id"].is_string(), is_committed, "{found}");
            let is_marked = found["warnings"].to_string().contains("Dual use: ");
            assert_eq!(is_marked, !matches!(name, "APT28" | "X-Agent"), "{found}");
        }
        let batch = app.admin.batch(&found["batch_id"]).await;
        assert_eq!(batch["batch"]["status"], "open");
        app.admin
            .decide(entity(&found, "TeamViewer"), json!({"status": "accepted"}))
            .await;
        app.admin.commit(&found["batch_id"]).await;
        for name in ["PsExec", "TeamViewer"] {
            let path = format!("/api/recall/search?q={name}&limit=1");
            let answer = app.admin.get(&path).await.expect(200).await;
            let node = &answer["results"][0];
            assert_eq!(node["name"], name);
            assert_eq!(node["properties"]["dual_use"], true, "{node}");
        }
    });
}
