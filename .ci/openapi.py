#!/usr/bin/env python3
"""Tests a built binary against its own description, /openapi.json, with schemathesis.

    openapi.py BINARY [--cases N] [--seed SEED]

Checks the document against the OpenAPI 3.1 meta-schema. Starts `threat-memory hosted` with a durable store, ingests
the demo bundle, stages a text, pulls a feed, and then runs schemathesis
with every check: with an API key that may only read, with no credential, and with an administrator's token. Repeats
this with the next seed until at least N cases were generated. Below 2,000 the phase is left out that goes through what the
document says of every parameter one by one: it generates thousands in each run.

Prints a line per run. Exit code 1 with the findings of the first run that has any. Needs schemathesis and
openapi-spec-validator in the Python that runs it.
"""

import argparse
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from openapi_spec_validator import validate
from taxii_servers import PASSWORD, TAXII, Client, Failed, Service, check

ROOT = Path(__file__).resolve().parents[1]
# Cases per operation of the phase that generates at random; the other phases generate a fixed number.
EXAMPLES = 4
# Cases from which on nothing is left out.
FULL_CASES = 2000
RUN_SECONDS = 3600
# They end the sessions, or lower the rights, of the very caller; tested in a workspace of their own.
OF_THE_CALLER = {"/api/admin/workspace", "/api/admin/users/{id}"}
# Hosts of the examples in the description; a feed may only be registered for a host that the operator allows.
EXAMPLE_HOST = "taxii.example.com"

# What else may be answered to a body that fits its schema.
EXCEPTIONS = """
# The service answers 400 where a value is refused for what it refers to, which no schema can tell:
[[operations]]
include-path = [
    "/api/admin/erasures",                # none of the fields, or several
    "/api/admin/api-keys",                # a time that is in the past
    "/api/admin/backup",                  # a chunk of an archive that is not among `archives`
    "/api/admin/collections",             # a key, feed or session that is not there
    "/api/admin/collections/{id}",
    "/api/admin/users",                   # a password that anyone would guess
    "/api/admin/users/{id}",
    "/api/admin/workspace",               # none of the fields that it knows
    "/api/admin/workspaces",
    "/api/admin/workspaces/{id}",
    "/api/audit/export",                  # `from` after `to`, and days that no calendar has
    "/api/audit/logs",
    "/api/auth/password",                 # a wrong current password, or a new one that is the same
    "/api/auth/login",                    # credentials that fit several workspaces
    "/api/auth/oauth/{provider}/callback",  # neither a code nor an error
    "/api/changes",                       # a position that no answer gave, or `since` after `until`
    "/api/edges/{id}",                    # merged, which only a merge sets
    "/api/evidence/{id}",
    "/api/nodes/{id}/merge",              # a node of another type, the node itself, or one that is marked more strictly
    "/api/nodes/{id}/unmerge",            # none of the fields that it knows
    "/api/nodes/{id}/distinct",           # the node itself
    "/api/nodes/{id}/distinct/{other}",
    "/api/recall/search",                 # `since` after `until`
    "/api/recall/semantic",
    "/api/ingest/staging/{id}",           # a node that is not there, or of another type
    "/api/threat-intel/batches",          # a feed that is not there
    "/api/threat-intel/batches/{id}",     # an item that is not of this batch
    "/api/threat-intel/batches/{id}/commit",
    "/api/threat-intel/batches/{id}/items/{item}",  # none of the fields that it knows
    "/api/threat-intel/feeds/{id}",
    "/api/threat-intel/feeds",            # a host that the operator does not allow
]
[operations.checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 429, "5xx"]
# The server of a feed may fail: that of the examples does not exist.
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 502, 504]

# A correction sets nothing, sets and clears the same, or lowers a marking without a reason; and a tag that is not the node's.
[[operations]]
include-path = "/api/nodes/{id}"
[operations.checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 412, 429, "5xx"]

# One object that is none does not lose the rest: it is skipped with its reason, and the answer is a success.
[[operations]]
include-path = ["/api/ingest/stix", "/api/ingest/misp", "/api/threat-intel/batches"]
[operations.checks]
negative_data_rejection.enabled = false

# A look-up of what nobody knows leaves a session without results, and a bundle needs an object.
[[operations]]
include-path = "/api/recall/sessions/{id}/export.stix"
[operations.checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429, "5xx"]

[[operations]]
include-path = "/api/threat-intel/batches/{id}/resume"
[operations.checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 429, "5xx"]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 502, 504]
"""


class Collection(http.server.BaseHTTPRequestHandler):
    """A TAXII collection of one object."""

    OBJECT = {
        "type": "malware",
        "spec_version": "2.1",
        "id": "malware--8c1f0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b",
        "created": "2024-01-01T00:00:00.000Z",
        "modified": "2024-01-01T00:00:00.000Z",
        "name": "Industroyer",
        "is_family": True,
    }

    def do_GET(self):
        body = json.dumps({"more": False, "objects": [self.OBJECT]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", TAXII)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def prepare(service, port):
    """Fills the store, so that there is something behind the ids; returns known ids by path."""
    rights = {"tlp_ceiling": "TLP:RED", "elevated_clearance": True, "red_export_grant": True}
    service.ask("PATCH", "/api/admin/workspace", rights)
    bundle = json.loads((ROOT / "assets/demo/bundle.json").read_text("utf-8"))
    service.ask("POST", "/api/ingest/stix", {"bundle": bundle}, 201)
    text = {"text": "Sandworm Team uses Industroyer. Seen at hxxp://198.51.100[.]7/a"}
    staged = service.ask("POST", "/api/ingest/preview", text)
    feed = {
        "name": "Feed",
        "connector_config_ref": f"http://127.0.0.1:{port}/collections/1/objects/",
        "default_tlp": "TLP:GREEN",
        "redistribution_state": "allowed",
    }
    feed = service.ask("POST", "/api/threat-intel/feeds", feed, 201)["feed"]
    pull = {"input_kind": "taxii_2_1_pull", "feed_source_id": feed["id"]}
    pulled = service.ask("POST", "/api/threat-intel/batches", pull, 201)
    found = service.ask("GET", "/api/recall/search?q=remote+services")
    node = found["results"][0]
    batches = "/api/threat-intel/batches/{id}"
    return {
        "/api/nodes/{id}": {"id": node["id"]},
        "/api/evidence/{id}": {"id": node["linked_evidence_ids"][0]},
        "/api/recall/sessions/{id}": {"id": found["recall_id"]},
        "/api/recall/sessions/{id}/export.stix": {"id": found["recall_id"]},
        "/api/ingest/batch/{id}": {"id": staged["batch_id"]},
        "/api/ingest/batch/{id}/commit": {"id": staged["batch_id"]},
        "/api/ingest/staging/{id}": {"id": staged["entities"][0]["id"]},
        "/api/threat-intel/feeds/{id}": {"id": feed["id"]},
        batches: {"id": pulled["batch"]["id"]},
        batches + "/commit": {"id": pulled["batch"]["id"]},
        batches + "/items/{item}": {"id": pulled["batch"]["id"], "item": pulled["items"][0]["id"]},
    }


def configuration(known):
    """A schemathesis configuration: the exceptions, and ids that exist for half of the cases."""
    text = ["warnings = false", "[generation]", 'database = "none"', "with-security-parameters = false"]
    dictionaries, operations = [], [EXCEPTIONS]
    for path, ids in known.items():
        operations += ["[[operations]]", f"include-path = {json.dumps(path)}", "[operations.parameters]"]
        for name, value in ids.items():
            dictionary = f"known-{len(dictionaries)}"
            dictionaries += [f"[dictionaries.{dictionary}]\nvalues = [{json.dumps(value)}]"]
            operations += [f'"path.{name}" = {{ dictionary = "{dictionary}", probability = 0.5 }}']
    return "\n".join([*text, *dictionaries, *operations, ""])


class Runs:
    """Runs schemathesis, and counts the cases."""

    def __init__(self, base, folder, is_full):
        self.base, self.folder, self.is_full, self.cases = base, Path(folder), is_full, 0

    def run(self, name, seed, headers, only=(), without=()):
        report = self.folder / "report.json"
        command = [Path(sys.executable).with_name("schemathesis"), "--config-file", self.folder / "schemathesis.toml"]
        command += ["run", self.base + "/openapi.json", "--checks", "all", "--continue-on-failure", "--no-color"]
        command += ["--seed", str(seed), "--max-examples", str(EXAMPLES), "--report-json-path", report]
        # Each seed is a client of its own: failing credentials are limited per address.
        address = {"X-Forwarded-For": f"198.51.100.{seed % 250}"}
        command += [f"--header={key}:{value}" for key, value in (headers | address).items()]
        command += [f"--include-path={path}" for path in only] + [f"--exclude-path={path}" for path in without]
        # No link leads from one of the operations of `only` to another.
        phases = ["examples", "fuzzing", *(["coverage"] if self.is_full else []), *([] if only else ["stateful"])]
        command += ["--phases", ",".join(phases)]
        own = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        ended = subprocess.run(
            command, cwd=self.folder, env=own, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
        if ended.returncode != 0:
            print(ended.stdout, ended.stderr, sep="\n")
        check(ended.returncode == 0, f"schemathesis finds nothing with {name} and seed {seed}")
        counted = json.loads(report.read_text("utf-8"))
        cases = counted["test_cases"]["generated"]
        self.cases += cases
        print(f"{counted['running_time']:6.1f} s  {cases} cases with {name}, seed {seed}: nothing found", flush=True)


def another_workspace(service):
    """The administrator of a new workspace."""
    email = "other@example.com"
    body = {"name": "Other", "admin_email": email, "admin_password": PASSWORD}
    service.ask("POST", "/api/admin/workspaces", body, 201)
    return service.sign_in(email).headers


def test(service, port, folder, arguments):
    (Path(folder) / "schemathesis.toml").write_text(configuration(prepare(service, port)), "utf-8")
    validate(service.ask("GET", "/openapi.json"))
    runs, seed = Runs(service.admin.base, folder, arguments.cases >= FULL_CASES), arguments.seed
    runs.run("an administrator's token in another workspace", seed, another_workspace(service), only=OF_THE_CALLER)
    while runs.cases < arguments.cases or seed == arguments.seed:
        # An administrator's run may revoke it.
        key = service.ask("POST", "/api/admin/api-keys", {"name": "read", "scopes": ["read"]}, 201)["key"]
        runs.run("a key that may only read", seed, {"X-API-Key": key})
        runs.run("no credential", seed, {})
        # Signing out would end the run.
        without = (*OF_THE_CALLER, "/api/auth/logout")
        runs.run("an administrator's token", seed, service.admin.headers, without=without)
        seed += 1
    answer = Client(service.admin.base).ask("GET", "/health")
    check(answer == {"status": "healthy"}, "the service is healthy", answer)
    print(f"{runs.cases} cases, nothing found")


def main():
    parser = argparse.ArgumentParser(description="Test a binary against its own description.")
    parser.add_argument("binary", type=Path)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # Ends as after an error, so that no child outlives this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collection)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    environment = {
        "TAXII_ALLOWED_HOSTS": f"127.0.0.1:{port},{EXAMPLE_HOST}",
        "THREAT_MEMORY_SERVER__TRUSTED_PROXIES": '["127.0.0.1"]',
    }
    try:
        with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as folder:
            with Service(arguments.binary.resolve(), data, environment) as service:
                test(service, port, folder, arguments)
    except Failed as failed:
        print(f"openapi: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
