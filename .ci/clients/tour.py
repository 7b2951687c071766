#!/usr/bin/env python3
"""The tour of README.md with a generated Python client (openapi-generator, `-g python`).

    tour.py hosted|local BASE

Needs the client as the package `openapi_client` on PYTHONPATH, and for the hosted service the e-mail address and password of
an administrator in THREAT_MEMORY_ADMIN_EMAIL and THREAT_MEMORY_ADMIN_PASSWORD.
"""

import json
import os
import sys
from pathlib import Path

import openapi_client as client

ROOT = Path(__file__).resolve().parents[2]
TEXT = "Sandworm Team uses Industroyer. Seen at hxxp://198.51.100[.]7/a"


def check(holds, what):
    if not holds:
        raise SystemExit(f"tour: {what}")


def hosted(base):
    """Signs in, ingests, reviews, searches, exports, makes a key and verifies the audit log."""
    settings = client.Configuration(host=base)
    api = client.ApiClient(settings)
    email, password = (os.environ[f"THREAT_MEMORY_ADMIN_{name}"] for name in ("EMAIL", "PASSWORD"))
    signed_in = client.SignInApi(api).login(client.Login.from_dict({"email": email, "password": password}))
    settings.access_token = signed_in.access_token
    check(client.SignInApi(api).me().user.email == email, "the token is that of the administrator")

    bundle = json.loads((ROOT / "assets/demo/bundle.json").read_text("utf-8"))
    ingested = client.IngestApi(api).ingest_stix(client.StixIngest.from_json(json.dumps({"bundle": bundle})))
    check(ingested.results.nodes_created > 200, f"the bundle is ingested: {ingested}")

    staging = client.StagingApi(api)
    staged = staging.preview(client.Preview.from_dict({"text": TEXT, "default_tlp": "TLP:GREEN"}))
    check(len(staged.entities) == 3, f"three entities are staged: {staged}")
    for entity in staging.read_staging_batch(staged.batch_id).entities:
        decision = client.EntityDecision.from_json(json.dumps({"status": "accepted"}))
        check(staging.decide_staged_entity(entity.id, decision).entity.status == "accepted", "an entity is accepted")
    done = staging.commit_staging_batch(staged.batch_id).results
    check((done.nodes_created, done.remaining) == (1, 0), f"the batch is committed: {done}")

    recall = client.RecallApi(api)
    found = recall.search("Fancy Bear", limit=1)
    check(found.results[0].name == "APT28", f"a name finds its group: {found}")
    narrowed = recall.search("which technique abuses remote services", limit=5, node_type=["attck"], explain=True)
    check({node.node_type for node in narrowed.results} == {"attck"}, f"a filter narrows: {narrowed}")
    node = recall.node(found.results[0].id)
    check(node.node.name == "APT28" and node.relationships, "the node has relationships")
    session = recall.search("Industroyer").recall_id
    exported = recall.export(session)
    check(exported.type == "bundle" and exported.objects, f"the session is exported: {exported}")

    key = client.NewApiKey.from_dict({"name": "collector", "scopes": ["ingest"]})
    check(client.AdministrationApi(api).create_key(key).key.startswith("tm_"), "an API key is made")
    audit = client.AuditApi(api)
    check(len(audit.logs(limit=3).logs) == 3, "the audit log is read")
    check(audit.verify().valid, "the audit log is whole")


def local(base):
    """Remembers, recalls, ingests, reads the graph and changes a setting."""
    api = client.ApiClient(client.Configuration(host=base))
    memory, graph = client.MemoryApi(api), client.GraphApi(api)
    note = {"content": "Fancy Bear used Cobalt Strike to exploit CVE-2024-3094"}
    told = memory.remember(client.RememberBody.from_dict(note))
    check(told.status == "created", f"a note is remembered: {told}")
    found = memory.recall(client.RecallBody.from_dict({"query": "What tools does APT 28 use?", "k": 5}))
    check(found.results[0].id == told.note_id, f"the note is recalled: {found}")
    items = [{"content": "Sandworm Team uses Industroyer", "source_type": "report"},
             {"content": "Industroyer speaks IEC 60870-5-104"}]
    memory.ingest(client.IngestBody.from_dict({"items": items}))
    check(graph.list_entities(q="bear").entities, "an entity is found by its alias")
    check(graph.list_nodes(type="actor").nodes and graph.list_edges().edges, "the graph has nodes and edges")
    system, settings = client.SystemApi(api), client.SettingsApi(api)
    check(system.read_health().status == "ok", "the service is healthy")
    change = client.SettingsChange.from_dict({"retrieval": {"default_k": 5}})
    settings.change_config(change)
    check(settings.read_config().retrieval.default_k == 5, "a setting is changed")


if __name__ == "__main__":
    {"hosted": hosted, "local": local}[sys.argv[1]](sys.argv[2])
    print(f"the generated client did the tour of the {sys.argv[1]} service")
