#!/usr/bin/env python3
"""Proves that the local service of a built binary does what its OpenAPI document says.

    openapi_local.py BINARY [--cases N] [--seed N]

Runs `threat-memory local` with a fresh data directory and schemathesis against it: once with a key, once without, and
once more for changes of settings alone. Needs schemathesis 4 in the Python that runs it, and nothing else.

Prints a line per run. Exit code 1 with the report of the first run that found a fault.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openapi_local_checks import RATE
from taxii_servers import Client, Failed, Process, check

KEY = "a key of the tests"
CHANGE = "change_config"
# With fewer cases per operation, the thousands that cover every setting one by one are left out.
FULL_CASES = 20
RUN_SECONDS = 3600
# schemathesis.toml, the same for every run.
CONFIGURATION = """
# Streams never end: one event shows their form.
max-stream-events = 1
request-timeout = 30
continue-on-failure = true

[generation]
database = "none"

# Its own form of this check, which knows what the service reads all the same, is in openapi_local_checks.py.
[checks.negative_data_rejection]
enabled = false

# `since` after `until`.
[[operations]]
include-path = "/api/recall"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429, "5xx"]

# Either `values` or `text`: the schema is made of the fields that the service reads, and has both.
[[operations]]
include-path = "/api/lookup"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429, "5xx"]

# A chunk of an archive that is not among `archives`.
[[operations]]
include-path = "/api/backup"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429, "5xx"]

# A correction that changes nothing, a note that stands in its own place, entities of two types, and one that is not merged.
[[operations]]
include-path = ["/api/notes/{id}", "/api/notes/{id}/supersede", "/api/entities/merge", "/api/entities/unmerge"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 422, 429, "5xx"]

# A position that no answer gave, and `since` after `until`.
[[operations]]
include-path = "/api/changes"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 422, 429, "5xx"]

# Not part of this edition, as its document says.
[[operations]]
include-path = "/api/sync"
checks.not_a_server_error.enabled = false

# Rules between settings, and those of texts such as addresses, can't be said in a schema.
[[operations]]
include-operation-id = "change_config"
checks.positive_data_acceptance.enabled = false
"""


class LocalService:
    """threat-memory local on a free port."""

    def __init__(self, binary, data, key):
        own = ("THREAT_MEMORY_", "LOCAL_", "PLATFORM_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(own)} | {
            "LOCAL_WEB_ADMIN_BIND": "127.0.0.1:0",
            "LOCAL_WEB_RATE_LIMIT_PER_MINUTE": str(RATE),
        }
        if key:
            self.environment["LOCAL_WEB_API_KEY"] = key
        self.headers = {"X-API-Key": key} if key else {}
        self.command = [str(binary), "local", "--port", "0", "--data-dir", str(data)]
        self.data, self.process, self.client = data, None, None

    def __enter__(self):
        self.process = Process(self.command, r"API on (http://\S+), metrics on", env=self.environment, cwd=self.data)
        self.client = Client(self.process.match[1], self.headers)
        return self

    def __exit__(self, kind, *_):
        self.process.stop()
        if kind:
            print("The last lines of the service:\n" + "".join(self.process.lines), file=sys.stderr)


def schemathesis(service, folder, arguments, selected):
    """Runs schemathesis against the operations selected, and returns the number of its cases."""
    configuration = folder / "schemathesis.toml"
    configuration.write_text(CONFIGURATION, "utf-8")
    here = Path(__file__).resolve().parent
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration), "run"]
    command += [f"{service.client.base}/api/openapi.json", "--no-color"]
    command += ["--max-examples", str(arguments.cases), *selected]
    for name, value in service.headers.items():
        command += ["--header", f"{name}: {value}"]
    if arguments.seed is not None:
        command += ["--seed", str(arguments.seed)]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "openapi_local_checks", "PYTHONPATH": str(here)}
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS, env=environment, cwd=folder
    )
    if run.returncode != 0:
        raise Failed(f"schemathesis finds no fault\n{run.stdout}{run.stderr}")
    return summary(run.stdout)


def summary(output):
    """The line of the report that counts the cases."""
    lines = output.splitlines()
    return next((after.strip() for line, after in zip(lines, lines[1:]) if line.strip() == "Test cases:"), "no cases")


def seed(service):
    """Notes to find, and an entry in each stream."""
    for text in ("APT28 (Fancy Bear) used X-Agent against 203.0.113.7.", "Turla uses Snake."):
        service.client.ask("POST", "/api/remember", {"content": text})
    service.client.ask("POST", "/api/recall", {"query": "Which tools does APT28 use?"})


def proven(arguments, what, key, selected):
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        data = folder / "data"
        data.mkdir()
        with LocalService(arguments.binary.resolve(), data, key) as service:
            document = service.client.ask("GET", "/api/openapi.json")
            check(document["openapi"].startswith("3.1"), "the document is of OpenAPI 3.1", document["openapi"])
            seed(service)
            cases = schemathesis(service, folder, arguments, selected)
            health = service.client.ask("GET", "/api/health")
            check(health["status"] == "ok", "the service is well in the end", health)
    print(f"{time.monotonic() - begun:6.1f} s  {what}: {cases}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Prove the OpenAPI document of the local service.")
    parser.add_argument("binary", type=Path)
    parser.add_argument("--cases", type=int, default=100, help="cases per operation and phase")
    parser.add_argument("--seed", type=int, help="repeats a run")
    arguments = parser.parse_args()
    # Ends as after an error, so that no child outlives this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Changed settings would change what other operations take, such as the longest query.
    others = ["--exclude-operation-id", CHANGE]
    # There is no link to follow, which the stateful phase would call an error.
    phases = "examples,coverage,fuzzing" if arguments.cases >= FULL_CASES else "examples,fuzzing"
    settings = ["--include-operation-id", CHANGE, "--phases", phases]
    try:
        proven(arguments, "without a key", None, others)
        proven(arguments, "with a key", KEY, others)
        proven(arguments, "changes of settings", KEY, settings)
    except Failed as failed:
        print(f"openapi_local: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
