//! What a caller may not see is unknown to a look-up, and the audit log holds no value.

use serde_json::{Value, json};

use super::lookup::{enter, indicator, look_up};
use crate::helpers::{TestApp, run};
use crate::stix::{object, relationship, text, with};

#[test]
fn what_is_hidden_is_unknown_and_one_audit_entry_has_the_number_of_values() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let clear =
            |ceiling: &str, elevated: bool| json!({"tlp_ceiling": ceiling, "elevated_clearance": elevated});
        admin.settings(clear("TLP:RED", true)).await;
        enter(
            admin,
            &["45.148.10.0/24", "45.148.10.7", "hidden-parent.com"],
            "TLP:RED",
        )
        .await;
        let (seen, unseen) = (
            indicator("Seen", "[domain-name:value = 'seen-lookup.com']"),
            object("malware", "Unseen"),
        );
        let unseen = with(unseen, json!({"x_mitre_tlp": "TLP:RED"}));
        let link = relationship(&seen, "indicates", &unseen);
        admin.ingest(json!([seen, unseen, link])).await;
        let asked = [
            "45.148.10.7",
            "45.148.0.0/16",
            "a.hidden-parent.com",
            "seen-lookup.com",
            "Global\\Hidden",
        ];
        let all = look_up(admin, &asked).await;
        let told = |answer: &Value| -> Vec<String> {
            let results = answer["results"].as_array().unwrap().iter();
            results.map(|result| text(result, "verdict").to_owned()).collect()
        };
        assert_eq!(told(&all), ["known", "contained", "parent", "known", "invalid"]);
        assert_eq!(all["results"][3]["hits"][0]["indicates"][0]["name"], "Unseen");

        admin.settings(clear("TLP:AMBER", false)).await;
        let some = look_up(admin, &asked).await;
        assert_eq!(told(&some), ["unknown", "unknown", "unknown", "known", "invalid"]);
        let results = &some["results"];
        assert_eq!(results[3]["hits"][0]["indicates"], json!([]));
        assert_eq!(results[3]["hits"][0]["more_indicated"], false);
        let elsewhere = app.workspace("elsewhere").await;
        let none = look_up(&elsewhere, &asked).await;
        assert_eq!(none["summary"]["unknown"], 4);

        let logs = admin.audit_logs().await;
        let entries: Vec<&Value> = logs
            .iter()
            .filter(|entry| entry["action"] == "recall.lookup")
            .collect();
        assert_eq!(entries.len(), 2);
        assert_eq!(
            (
                &entries[0]["metadata"]["values"],
                &entries[0]["metadata"]["known"]
            ),
            (&json!(5), &json!(1))
        );
        assert_eq!(entries[0]["resource_id"], some["recall_id"]);
        let written = Value::from_iter(entries.into_iter().cloned()).to_string();
        assert!(
            !written.contains("45.148") && !written.contains("hidden"),
            "{written}"
        );
        app.stop().await;
    });
}
