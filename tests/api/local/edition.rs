//! The capabilities of this edition, as the API contract defines them.

use serde_json::json;

use crate::helpers::run;
use crate::local::LocalApp;

#[test]
fn the_edition_names_what_is_there_and_what_is_not() {
    run(async {
        let app = LocalApp::spawn().await;
        let edition = app.client.get("/api/edition").await.expect(200).await;
        assert_eq!(
            edition,
            json!({
                "edition": "community",
                "edition_name": "Threat Memory Community",
                "version": "2.8.0",
                "features": {
                    "vector_search": true,
                    "blended_retrieval": true,
                    "intent_adaptive_routing": true,
                    "temporal_graph_queries": true,
                    "graph_traversal": true,
                    "graph_traversal_multihop": true,
                    "entity_extraction_rules": true,
                    "entity_extraction_llm": true,
                    "note_evolution": true,
                    "report_ingestion": true,
                    "direct_answer_synthesis": true,
                    "advanced_synthesis_formats": true,
                    "event_streams": true,
                    "audit_log": true,
                    "pii_detection": true,
                    "platform_integration": false,
                    "graphdb_stix_ontology": false,
                    "alias_resolution_graphdb": false,
                    "sigma_generation": false,
                    "context_injection": false,
                    "multi_tenant_auth": false,
                },
            })
        );
        app.stop().await;
    });
}
