//! Intended differences from the recorded responses, one field and one reason each. "Defect" refers to the numbered
//! list of defects of the peer that this API does not repeat.

use serde_json::{Value, json};

use super::Exchange;

type Side<'v> = Option<&'v Value>;

/// A field that differs in some exchanges.
pub struct Excuse {
    pub on: fn(&Exchange) -> bool,
    pub field: &'static str,
    /// The condition on the recorded value and ours.
    pub holds: fn(Side<'_>, Side<'_>) -> bool,
    pub reason: &'static str,
}

/// One line per excuse: exchanges, field, condition, reason.
macro_rules! excuses {
    ($($on:expr => $field:literal, $holds:expr, $reason:literal;)+) => {
        &[$(Excuse { on: $on, field: $field, holds: $holds, reason: $reason }),+]
    };
}

/// Our value equals this one.
macro_rules! is {
    ($ours:expr) => {
        |_, ours| ours == Some(&json!($ours))
    };
}

fn any(_: &Exchange) -> bool {
    true
}
fn recall(exchange: &Exchange) -> bool {
    exchange.path == "/api/recall"
}
fn health(exchange: &Exchange) -> bool {
    exchange.path == "/api/health"
}
fn config(exchange: &Exchange) -> bool {
    exchange.path == "/api/config"
}
fn edition(exchange: &Exchange) -> bool {
    exchange.path == "/api/edition"
}
fn entities(exchange: &Exchange) -> bool {
    exchange.path.starts_with("/api/entities")
}
/// The graph has changed and the peer has not been restarted since.
fn stale(exchange: &Exchange) -> bool {
    exchange.note == "after writes"
}
fn restarted(exchange: &Exchange) -> bool {
    exchange.note == "after restart on same store"
}
fn questions(exchange: &Exchange) -> bool {
    exchange.path.starts_with("/api/history") || exchange.path == "/api/telemetry/stream"
}
fn figures(exchange: &Exchange) -> bool {
    exchange.path == "/api/telemetry" || exchange.path == "/api/stats"
}
fn logs(exchange: &Exchange) -> bool {
    exchange.path.starts_with("/api/logs")
}
/// A text that looks like a prompt injection, answered by the peer with a plain-text 500.
fn injection(exchange: &Exchange) -> bool {
    exchange.status == 500 && exchange.note != "NaN"
}
fn nan(exchange: &Exchange) -> bool {
    exchange.note == "NaN"
}
fn refused_item(exchange: &Exchange) -> bool {
    exchange.note == "one refused by guard"
}
fn only_bad_item(exchange: &Exchange) -> bool {
    exchange.path == "/api/ingest" && exchange.body == json!({"items": [{"content": ""}]})
}
fn bad_change(exchange: &Exchange) -> bool {
    let notes = [
        "unknown section",
        "unknown scalar",
        "section replaced by scalar",
        "nested secrets",
    ];
    notes.contains(&exchange.note.as_str())
}
fn secret(exchange: &Exchange) -> bool {
    config(exchange) && exchange.note == "secret"
}
fn sync(exchange: &Exchange) -> bool {
    exchange.path == "/api/sync"
}
/// Pages, documentation and sign-in of the peer.
fn peers_own(exchange: &Exchange) -> bool {
    let paths = ["/redoc", "/docs/", "/auth/", "/static/", "/ui/js/"];
    paths.iter().any(|path| exchange.path.starts_with(path))
}
/// The pages that both have.
fn page(exchange: &Exchange) -> bool {
    matches!(exchange.path.as_str(), "/" | "/docs")
}
/// An invalid body from a caller without the key or over the rate limit.
fn unread(exchange: &Exchange) -> bool {
    exchange.run == "apikey-rl10" && exchange.status == 422
}
fn unknown_path(exchange: &Exchange) -> bool {
    exchange.path == "/api/nope" && exchange.run == "apikey-rl10"
}
fn unreachable_model(exchange: &Exchange) -> bool {
    exchange.run == "default-ollama-unreachable"
}

fn texts(theirs: Side<'_>, ours: Side<'_>) -> bool {
    theirs.is_some_and(Value::is_string) && ours.is_some_and(Value::is_string)
}
fn numbers(theirs: Side<'_>, ours: Side<'_>) -> bool {
    theirs.is_some_and(Value::is_number) && ours.is_some_and(Value::is_number)
}
fn lists(theirs: Side<'_>, ours: Side<'_>) -> bool {
    theirs.is_some_and(Value::is_array) && ours.is_some_and(Value::is_array)
}
fn only_theirs(_: Side<'_>, ours: Side<'_>) -> bool {
    ours.is_none()
}
fn only_ours(theirs: Side<'_>, _: Side<'_>) -> bool {
    theirs.is_none()
}
fn one_side(theirs: Side<'_>, ours: Side<'_>) -> bool {
    theirs.is_none() || ours.is_none()
}
fn grown(theirs: Side<'_>, ours: Side<'_>) -> bool {
    number(ours) > number(theirs)
}
fn number(side: Side<'_>) -> Option<f64> {
    side.and_then(Value::as_f64)
}
fn utc(_: Side<'_>, ours: Side<'_>) -> bool {
    let text = ours.and_then(Value::as_str).unwrap_or_default();
    text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(text).is_ok()
}
fn in_small_letters(theirs: Side<'_>, ours: Side<'_>) -> bool {
    let lower = theirs.and_then(Value::as_str).map(str::to_lowercase);
    lower.as_deref() == ours.and_then(Value::as_str)
}
fn is_in(side: Side<'_>, texts: &[&str]) -> bool {
    let text = side.and_then(Value::as_str);
    text.is_some_and(|text| texts.contains(&text))
}
fn not_found(_: Side<'_>, ours: Side<'_>) -> bool {
    ours == Some(&json!({"detail": "Not Found"}))
}
fn unauthorized_or_limited(_: Side<'_>, ours: Side<'_>) -> bool {
    let bodies = [
        json!({"detail": "Valid API key required"}),
        json!({"detail": "Rate limit exceeded"}),
    ];
    ours.is_some_and(|ours| bodies.contains(ours))
}
fn is_json(_: Side<'_>, ours: Side<'_>) -> bool {
    ours == Some(&json!("application/json"))
}
/// The response to a valid request.
fn answered(_: Side<'_>, ours: Side<'_>) -> bool {
    ours.is_some_and(|ours| ours.is_object() && ours.get("detail").is_none())
}
/// A list of validation issues.
fn issues(_: Side<'_>, ours: Side<'_>) -> bool {
    let first = ours.and_then(|ours| ours.pointer("/detail/0"));
    first.is_some_and(|issue| issue["type"].is_string() && issue["loc"].is_array())
}

fn answered_501(_: Side<'_>, ours: Side<'_>) -> bool {
    ours.is_some_and(|ours| ours["detail"].is_string())
}

pub const EXCUSES: &[Excuse] = excuses! {
    // Values that differ between runs.
    any => ".note_id", texts, "an id is new in each run";
    any => ".results[].note_id", texts, "an id is new in each run";
    recall => ".results[].id", texts, "an id is new in each run";
    questions => "[].query_id", texts, "an id is new in each run";
    questions => "[].timestamp", numbers, "a question is asked now";
    questions => "[].duration_ms", numbers, "how long it took";
    any => ".latency_ms", numbers, "how long it took";
    health => ".uptime_seconds", numbers, "how long it runs";
    health => ".data_dir", texts, "a directory of the test";
    figures => ".avg_latency_ms", numbers, "how long it took";
    figures => ".p50_ms", numbers, "how long it took";
    figures => ".p95_ms", numbers, "how long it took";
    // Components of this program.
    health => ".storage_backend", is!("surrealkv"), "the store of this program";
    health => ".embedding_provider", is!("builtin"), "the model in this program";
    health => ".embedding_model", is!("minilm-static-256"), "the model in this program";
    health => ".llm_provider", is!("none"), "the peer ran with a mock of a model";
    health => ".llm_model", is!(""), "the peer ran with a mock of a model";
    health => ".llm_local_backend", is!(""), "the peer ran with a mock of a model";
    edition => ".features.causal_triple_extraction", only_theirs, "not a capability of the contract";
    edition => ".features.cross_encoder_reranking", only_theirs, "not a capability of the contract";
    edition => ".features.knowledge_graph_jsonl", only_theirs, "not a capability of the contract";
    edition => ".features.mcp_server", only_theirs, "not a capability of the contract";
    edition => ".features.two_phase_extraction", only_theirs, "not a capability of the contract";
    edition => ".features.audit_log", only_ours, "a capability of this program";
    edition => ".features.entity_extraction_rules", only_ours, "a capability of this program";
    edition => ".features.event_streams", only_ours, "a capability of this program";
    edition => ".features.graph_traversal", only_ours, "the contract names it as on";
    edition => ".features.note_evolution", only_ours, "a capability of this program";
    edition => ".features.pii_detection", only_ours, "a capability of this program";
    // Notes.
    recall => ".results[].created_at", utc, "times are RFC 3339 in UTC";
    |exchange| exchange.path == "/api/synthesize" => ".sources_count", numbers, "notes that are likely no answer are no sources";
    recall => ".results[].score", one_side, "each result tells how well it fits";
    recall => ".results[].matched", one_side, "each result tells what made it one";
    recall => ".results[].tier", in_small_letters, "the contract has tiers in small letters";
    recall => ".results[]", one_side, "which notes fit best is the ranking's choice";
    recall => ".results", lists, "which notes fit best is the ranking's choice";
    recall => ".count", numbers, "which notes fit best is the ranking's choice";
    recall => ".results[].entities", lists, "entities stand in the order of the text";
    recall => ".results[].entities[]",
        |theirs, ours| is_in(theirs, &["lazarus", "sandworm"]) || is_in(ours, &["lazarus-group", "sandworm-team"]),
        "whichever name a text gives, an actor is one (defect 7)";
    recall => ".results[].entities[]",
        |theirs, ours| {
            is_in(theirs, &["operation-dreamjob", "operation-blackenergy"]) || is_in(ours, &["blackenergy"])
        },
        "names of campaigns are not among what the rules find, a malware in one is";
    recall => ".results[].entities[]",
        |theirs, _| theirs == Some(&json!("evil.com")),
        "a domain that stands only inside a URL or an address is not named once more";
    any => ".entities", lists, "entities stand in the order of the text";
    unreachable_model => ".entities[]", is!("203.0.113.77"), "a note is stored and read whole (defect 2)";
    unreachable_model => ".status", is!("created"), "nothing waits for the model";
    // Texts that look like prompt injections.
    injection => "status", is!(200), "such a text is data (defect 3)";
    injection => "content-type", is_json, "such a text is data (defect 3)";
    injection => "body", answered, "such a text is data (defect 3)";
    refused_item => ".succeeded", is!(2), "such a text is data (defect 3)";
    refused_item => ".failed", is!(0), "such a text is data (defect 3)";
    refused_item => ".results[].note_id", |theirs, _| theirs == Some(&Value::Null), "such a text is data (defect 3)";
    refused_item => ".results[].status", is!("created"), "such a text is data (defect 3)";
    refused_item => ".results[].success", is!(true), "such a text is data (defect 3)";
    refused_item => ".results[].error", |_, ours| ours == Some(&Value::Null), "such a text is data (defect 3)";
    only_bad_item => "status", is!(200), "the contract: an item fails alone";
    only_bad_item => "body", answered, "the contract: an item fails alone";
    nan => "status", is!(422), "NaN is not JSON (defect 3)";
    nan => "content-type", is_json, "every error is JSON (defect 3)";
    nan => "body", issues, "every error is JSON (defect 3)";
    // The graph: the peer shows changes only after a restart, and some not even then.
    |exchange| entities(exchange) && stale(exchange) => ".entities[]",
        only_ours,
        "what is written shows at once (defect 1)";
    |exchange| entities(exchange) && stale(exchange) => ".total", grown, "what is written shows at once (defect 1)";
    |exchange| stale(exchange) || restarted(exchange) => ".graph_node_count",
        grown,
        "what is written shows at once (defect 1)";
    |exchange| stale(exchange) || restarted(exchange) => ".graph_edge_count",
        grown,
        "what is written shows at once (defect 1)";
    stale => ".entity_count", grown, "what is written shows at once (defect 1)";
    restarted => ".nodes", lists, "what is written shows at once (defect 1)";
    |exchange| restarted(exchange) && !entities(exchange) => ".count",
        grown,
        "what is written shows at once (defect 1)";
    restarted => ".entity_count", numbers, "another extractor finds other entities";
    |exchange| exchange.path.contains("tier=zzz") => ".entities[]", only_theirs, "a filter filters";
    |exchange| exchange.path.contains("tier=zzz") => ".total", is!(0), "a filter filters";
    |exchange| exchange.path.contains("offset=1") && restarted(exchange) => ".entities[]",
        one_side,
        "entities are listed by type and value";
    |exchange| exchange.path.contains("offset=1") && restarted(exchange) => ".total",
        numbers,
        "another extractor finds other entities";
    restarted => ".entities[].name", texts, "the name that people write; the value is canonical";
    restarted => ".entities[].aliases[]", only_ours, "other names are known and matched (defect 7)";
    restarted => ".entities[].confidence", |theirs, _| theirs == Some(&Value::Null), "how sure the rules are";
    restarted => ".entities[].connected_count", grown, "relationships count too (defect 1)";
    restarted => ".entities[].note_count", grown, "a note written later counts too (defect 1)";
    restarted => ".entities[].tier", is!("a"), "the best tier of its notes";
    stale => ".entity_index.*.unique_entities", numbers, "what is written shows at once (defect 1)";
    stale => ".entity_index.*.total_mappings", numbers, "what is written shows at once (defect 1)";
    stale => ".entity_index.*", only_ours, "the rules know more kinds";
    any => ".notes", is!(21), "texts that the peer refuses are notes here (defect 3)";
    // Query history, which the recording only covers in part.
    questions => "[]", only_theirs, "asked in a request that was not recorded, or no question but a note (defect 8)";
    questions => "[]", only_ours, "a question that the peer refuses (defect 3)";
    questions => "body", lists, "the newest is first (defect 8)";
    questions => "[].result_count", numbers, "which notes fit best is the ranking's choice";
    questions => "[].intent", only_ours, "what a question was taken for";
    figures => ".total_queries", numbers, "not all requests were recorded";
    figures => ".queries_today", numbers, "not all requests were recorded";
    figures => ".recall_count", numbers, "not all requests were recorded";
    figures => ".synthesis_count", numbers, "not all requests were recorded";
    figures => ".syntheses_today", numbers, "not all requests were recorded";
    figures => ".retrievals", numbers, "not all requests were recorded";
    figures => ".top_intents.*", only_ours, "questions have an intent here";
    // Logs and settings.
    logs => ".truncated", is!(false), "there are no more lines of that level";
    bad_change => "status", is!(422), "unknown keys and wrong types are refused (defect 5)";
    bad_change => "body", issues, "unknown keys and wrong types are refused (defect 5)";
    secret => ".applied[]", only_theirs, "the way to the model is made at the start";
    secret => ".pending_restart[]", only_ours, "the way to the model is made at the start";
    secret => ".message", texts, "the way to the model is made at the start";
    // Endpoints outside this API.
    sync => "status", is!(501), "the contract: always 501";
    sync => "body", answered_501, "the contract: the body is unspecified";
    sync => ".error", only_theirs, "the contract: the body is unspecified";
    sync => ".detail", only_ours, "the contract: the body is unspecified";
    peers_own => "status", is!(404), "not in the contract";
    peers_own => "content-type", is_json, "every error is JSON";
    peers_own => "body", not_found, "not in the contract";
    page => "body", texts, "our own page: nothing is fetched from elsewhere (defect 10)";
    // Authentication and rate limits.
    unread => "status",
        |_, ours| ours == Some(&json!(401)) || ours == Some(&json!(429)),
        "a body is read once the caller is known";
    unread => "body", unauthorized_or_limited, "a body is read once the caller is known";
    unknown_path => "status", is!(401), "the contract: all paths under /api/ are guarded";
    unknown_path => "body", unauthorized_or_limited, "the contract: all paths under /api/ are guarded";
};
