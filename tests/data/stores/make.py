#!/usr/bin/env python3
"""Makes a data directory of each service with the program of some version, and what it answers: the tests open both with
the program of today and compare.

    make.py PROGRAM ARCHIVE     ARCHIVE: schema-N.tar.gz, where N is the last migration of that version
    make.py PROGRAM ARCHIVE --first     of the first version, which had the hosted service and took STIX alone
"""
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ADMIN, PASSWORD = "admin@example.com", "a long enough password"
HOSTED, LOCAL = 18080, 18088
QUERIES = ["Fixture Heron", "Fixture Spade", "198.51.100.7", "what does Fixture Heron 1 use", "reed bed"]
TIME = "2024-01-01T00:00:00.000Z"


def ask(port, path, body=None, token=None):
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{path}: {error.read().decode()}") from error


def start(command, port, directory):
    env = {**os.environ, "THREAT_MEMORY_ADMIN_EMAIL": ADMIN, "THREAT_MEMORY_ADMIN_PASSWORD": PASSWORD}
    process = subprocess.Popen(command, cwd=directory, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            ask(port, "/api/health")
            return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{command}: no answer")


def thing(kind, number, name, modified=TIME, **more):
    return {"type": kind, "spec_version": "2.1", "id": f"{kind}--00000000-0000-4000-8000-{number:012}",
            "created": TIME, "modified": modified, "name": name, **more}


def uses(number, source, target):
    return {"type": "relationship", "spec_version": "2.1", "id": f"relationship--00000000-0000-4000-8000-{number:012}",
            "created": TIME, "modified": TIME, "relationship_type": "uses", "source_ref": source["id"],
            "target_ref": target["id"], "description": "It eats with it in the reed bed."}


def hosted(program, directory):
    service = start([program, "hosted", "--bind", f"127.0.0.1:{HOSTED}", "--storage", f"surrealkv://{directory}"],
                    HOSTED, directory)
    token = ask(HOSTED, "/api/auth/login", {"email": ADMIN, "password": PASSWORD})["access_token"]

    def send(path, body):
        return ask(HOSTED, path, body, token)

    for number in range(4):
        heron = thing("campaign", number, f"Fixture Heron {number}", description="A heron that waits.")
        spade = thing("tool", number, f"Fixture Spade {number}", aliases=[f"Digger {number}"])
        send("/api/ingest/stix", {"bundle": [heron, spade, uses(number, heron, spade)], "default_tlp": "TLP:GREEN"})
    newer = thing("campaign", 1, "Fixture Heron 1", "2024-05-01T00:00:00.000Z", description="It has left the reed bed.")
    send("/api/ingest/stix", {"bundle": [newer], "default_tlp": "TLP:GREEN"})
    unknown = "marking-definition--31b940d4-6f7f-459a-80ea-9c1f17b58abc"
    waits = thing("tool", 9, "Fixture Spade that waits", object_marking_refs=[unknown])
    send("/api/ingest/stix", {"bundle": [waits], "default_tlp": "TLP:GREEN"})
    event = {"info": "Fixture event", "uuid": "5b3d2a10-0000-4000-8000-000000000000", "timestamp": "1704067200", "distribution": "3", "Attribute": [
        {"type": "ip-dst", "value": "198.51.100.7", "uuid": "5b3d2a10-0000-4000-8000-000000000001", "to_ids": True,
         "category": "Network activity", "distribution": "5", "comment": "seen beside Fixture Heron 2"}]}
    send("/api/ingest/misp", {"event": event})
    text = "Fixture Heron 3 used Mimikatz against 203.0.113.9 in the reed bed."
    preview = send("/api/ingest/preview", {"text": text, "session_id": "fixture"})
    answers = {"searches": {}, "nodes": {}, "batch": preview["batch_id"]}
    for query in QUERIES:
        found = send("/api/recall/search?limit=20&q=" + urllib.parse.quote(query), None)
        answers["searches"][query] = sorted(row["id"] for row in found["results"])
        for row in found["results"]:
            answers["nodes"][row["id"]] = send(f"/api/nodes/{row['id']}", None)
    exported = send("/api/recall/search?limit=20&q=" + urllib.parse.quote("Fixture Heron"), None)
    bundle = send(f"/api/recall/sessions/{exported['recall_id']}/export.stix", None)
    answers["exported"] = sorted(bundle["objects"], key=lambda one: one["id"])
    answers["entities"] = send(f"/api/ingest/batch/{preview['batch_id']}", None)["entities"]
    # The last write reaches the store and not the index.
    late = thing("campaign", 8, "Fixture Heron of the last moment")
    send("/api/ingest/stix", {"bundle": [late], "default_tlp": "TLP:GREEN"})
    service.kill()
    service.wait()
    return answers


def first(program, directory):
    service = start([program, "hosted", "--bind", f"127.0.0.1:{HOSTED}", "--storage", f"surrealkv://{directory}"],
                    HOSTED, directory)
    token = ask(HOSTED, "/api/auth/login", {"email": ADMIN, "password": PASSWORD})["access_token"]
    key = ask(HOSTED, "/api/admin/api-keys", {"name": "of the fixture", "scopes": ["read"]}, token)["key"]
    for number in range(4):
        heron = thing("campaign", number, f"Fixture Heron {number}", description="A heron that waits.")
        spade = thing("tool", number, f"Fixture Spade {number}", aliases=[f"Digger {number}"])
        bundle = {"type": "bundle", "id": f"bundle--00000000-0000-4000-8000-{number:012}",
                  "objects": [heron, spade, uses(number, heron, spade)]}
        ask(HOSTED, "/api/ingest/stix", {"bundle": bundle, "default_tlp": "TLP:GREEN"}, token)
    answers = {"searches": {}, "key": key}
    for query in QUERIES[:2]:
        found = {"results": []}
        # What that version wrote was found a moment later.
        while len(found["results"]) < 8:
            found = ask(HOSTED, "/api/recall/search?limit=20&q=" + urllib.parse.quote(query), None, token)
        answers["searches"][query] = sorted(row["id"] for row in found["results"])
        if query == QUERIES[0]:
            bundle = ask(HOSTED, f"/api/recall/sessions/{found['recall_id']}/export.stix", None, token)
            answers["exported"] = sorted(bundle["objects"], key=lambda one: one["id"])
    service.kill()
    service.wait()
    return answers


def local(program, directory):
    service = start([program, "local", "--port", str(LOCAL), "--data-dir", directory], LOCAL, directory)
    for number in range(12):
        ask(LOCAL, "/api/remember", {"content": f"Fixture note {number}: APT2{number % 3 + 8} used Mimikatz against "
                                                f"host{number}.example.org.", "source_type": "report"})
    answers = {"recalls": {}}
    for path in ["entities", "graph/nodes", "graph/edges"]:
        answers[path] = ask(LOCAL, f"/api/{path}")
    for query in ["host3.example.org", "APT29", "Who used Mimikatz?"]:
        found = ask(LOCAL, "/api/recall", {"query": query, "k": 20})
        answers["recalls"][query] = sorted(row.get("note_id") or row["id"] for row in found["results"])
    service.send_signal(signal.SIGTERM)
    service.wait()
    return answers


def main(program, archive, *options):
    services = [("hosted", first)] if options == ("--first",) else [("hosted", hosted), ("local", local)]
    with tempfile.TemporaryDirectory() as root:
        answers = {}
        for name, make in services:
            directory = os.path.join(root, name)
            os.mkdir(directory)
            answers[name] = make(os.path.abspath(program), directory)
        with open(os.path.join(root, "answers.json"), "w") as file:
            json.dump(answers, file, indent=1)
        with tarfile.open(archive, "w:gz") as tar:
            for name in [*answers, "answers.json"]:
                tar.add(os.path.join(root, name), name, filter=lambda one: None if "/logs" in one.name else one)


main(*sys.argv[1:])
