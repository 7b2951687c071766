#!/usr/bin/env python3
"""Proves the TAXII server of a built binary with clients that others wrote, and with our own.

    taxii_clients.py BINARY [--objects FILE ...]

Starts `threat-memory hosted` with a durable store, ingests generated objects and the files, and reads them back with
taxii2-client and cytaxii2, by `next` and by the date header. Then a second workspace of the service pulls the first one's
collection through a proxy that adds the credentials, and every object is compared field by field.

Prints a line per step. Exit code 1 with the first expectation that does not hold. Needs taxii2-client and cytaxii2 in the
Python that runs it.
"""

import argparse
import base64
import json
import sys
import tempfile
import types
import uuid
from pathlib import Path

from cytaxii2 import cytaxii2
from taxii2client.v21 import Server, as_pages
from taxii_servers import EMAIL, PASSWORD, TAXII, Client, Failed, Proxy, Service, check

TIME = "2024-01-01T00:00:00.000Z"
FEEDS, BATCHES = "/api/threat-intel/feeds", "/api/threat-intel/batches"
# An administrator, who sees what is revoked, too.
BASIC = "Basic " + base64.b64encode(f"{EMAIL}:{PASSWORD}".encode()).decode()
TOOLS = 150


def thing(kind, number, **more):
    identifier = f"{kind}--{uuid.uuid5(uuid.NAMESPACE_URL, f'{kind} {number}')}"
    made = {"type": kind, "spec_version": "2.1", "id": identifier, "created": TIME, "modified": TIME}
    return made | more


def generated():
    """An author, a marking, tools and relationships between them."""
    author = thing("identity", 0, name="Harbour desk", identity_class="organization")
    marking = thing("marking-definition", 0, definition_type="statement", definition={"statement": "Copyright 2024"})
    del marking["modified"]
    made = {"created_by_ref": author["id"], "object_marking_refs": [marking["id"]]}
    tools = [thing("tool", number, name=f"Crane {number}", **made) for number in range(TOOLS)]
    edges = [
        thing("relationship", number, relationship_type="uses", source_ref=one["id"], target_ref=other["id"], **made)
        for number, (one, other) in enumerate(zip(tools, tools[1:], strict=False))
    ]
    return [author, marking, *tools, *edges]


def differences(original, given):
    """The fields of an object that are not as they were sent."""
    fields = original.keys() | given.keys()
    return [
        f"{original['id']} {field}: {original.get(field)} became {given.get(field)}"
        for field in sorted(fields)
        if original.get(field) != given.get(field)
        and not (field == "confidence" and field not in original)
        and not (
            field == "object_marking_refs"
            and given.get(field, [])[: len(original.get(field, []))] == original.get(field, [])
        )
    ]


def faithful(sent, given, what):
    """Every object that was sent has come, once, and as it was."""
    sent = {one["id"]: one for one in sent}
    given = [one for one in given if one["id"] in sent]
    check(len(given) == len({one["id"] for one in given}), f"{what}: no object comes twice")
    missing = sent.keys() - {one["id"] for one in given}
    check(not missing, f"{what}: all {len(sent)} objects come", sorted(missing)[:5])
    wrong = [text for one in given for text in differences(sent[one["id"]], one)]
    check(not wrong, f"{what}: every field is as it was sent", wrong[:5])
    print(f"  {what}: {len(sent)} objects, each once and with every field")


def objects_of(pages):
    return [one for page in pages for one in page.get("objects", [])]


def with_taxii2_client(base, sent):
    server = Server(f"{base}/taxii2/", user=EMAIL, password=PASSWORD)
    collection = next(one for one in server.default.collections if one.title == "All objects")
    check(collection.can_read and not collection.can_write, "the collection is to be read")
    for size in (7, 500):
        pages = list(as_pages(collection.get_objects, per_request=size))
        faithful(sent, objects_of(pages), f"taxii2-client, pages of {size}")
    records = objects_of(as_pages(collection.get_manifest, per_request=40))
    dates = [one["date_added"] for one in records]
    check(dates == sorted(set(dates)), "taxii2-client: dates rise strictly")
    one = sent[5]
    check(collection.get_object(one["id"])["objects"][0]["id"] == one["id"], "taxii2-client gets an object")
    versions = collection.object_versions(one["id"])["versions"]
    check(versions == [one["modified"]], "taxii2-client gets versions", versions)
    after = dates[len(dates) // 2]
    later = objects_of(as_pages(collection.get_objects, per_request=50, added_after=after))
    check(len(later) == len(dates) - len(dates) // 2 - 1, "taxii2-client goes on after a date", len(later))


def with_cytaxii2(base, sent):
    client = cytaxii2.cytaxii2(f"{base}/taxii2/", EMAIL, PASSWORD)
    found = client.collection_request()["response"]["collections"]
    collection = next(one["id"] for one in found if one["alias"] == "all")
    objects, following = [], None
    while True:
        answer = client.poll_request(collection, limit=60, next=following)
        check(answer["status"], "cytaxii2 polls", answer)
        objects.extend(answer["response"].get("objects", []))
        following = answer["response"].get("next")
        if not answer["response"].get("more"):
            break
    faithful(sent, objects, "cytaxii2")


def with_a_key(service, base):
    """A key sees what a user of the role sees who may not see what is revoked."""
    key = service.ask("POST", "/api/admin/api-keys", {"name": "read", "scopes": ["read"]}, 201)["key"]
    collection = Server(f"{base}/taxii2/", user="any", password=key).default.collections[0]
    objects = objects_of(as_pages(collection.get_objects, per_request=500))
    check(len(objects) > TOOLS and not any(one.get("revoked") for one in objects), "a key reads what is not revoked")


def by_dates(base, root, sent):
    """As clients page that know no `next` (Elastic) or use both (OpenCTI)."""
    client = Client(base, {"Authorization": BASIC, "Accept": TAXII})
    for with_next in (False, True):
        objects, query = [], "limit=60"
        while True:
            status, page, headers = client.call("GET", f"{root}collections/all/objects/?{query}")
            check(status == 200, "a page by dates", [status, page])
            objects.extend(page.get("objects", []))
            if not page.get("more"):
                break
            query = f"limit=60&added_after={headers['X-TAXII-Date-Added-Last']}"
            if with_next:
                query += f"&next={page['next']}"
        faithful(sent, objects, "by dates and next" if with_next else "by dates")


def pulled_by_our_own(service, root, sent):
    """A second workspace takes in the first one's collection as a feed."""
    email = "second@example.com"
    service.ask(
        "POST",
        "/api/admin/workspaces",
        {"name": "Second", "admin_email": email, "admin_password": PASSWORD, "tier": "enterprise"},
        201,
    )
    second = service.sign_in(email)
    second.ask("PATCH", "/api/admin/workspace", {"tlp_ceiling": "TLP:RED", "elevated_clearance": True})
    port = int(service.process.match[1].rsplit(":", 1)[1])
    with Proxy(types.SimpleNamespace(authorization=BASIC, port=port)) as proxy:
        url = f"http://127.0.0.1:{proxy.port}{root}collections/all/objects/"
        feed = {"name": "first", "connector_config_ref": url, "default_tlp": "TLP:WHITE", "redistribution_state": "allowed"}
        feed = second.ask("POST", FEEDS, feed, 201)["feed"]["id"]
        batch = second.ask("POST", BATCHES, {"input_kind": "taxii_2_1_pull", "feed_source_id": feed}, 201)["batch"]["id"]
        batch = service.eventually(
            lambda: second.ask("GET", f"{BATCHES}/{batch}")["batch"],
            lambda found: found["status"] != "pulling",
            "the pull ends",
        )
    check(batch["status"] == "review", "the pull waits for its review", batch)
    items, after = [], ""
    while True:
        page = second.ask("GET", f"{BATCHES}/{batch['id']}?limit=1000{after}")
        items.extend(page["items"])
        if not page.get("next"):
            break
        after = f"&after={page['next']}"
    for item in items:
        second.ask("POST", f"{BATCHES}/{batch['id']}/items/{item['id']}", {"status": "accepted"})
    second.ask("POST", f"{BATCHES}/{batch['id']}/commit", {})
    server = Server(f"{second.base}/taxii2/", user=email, password=PASSWORD)
    collection = next(one for one in server.default.collections if one.title == "All objects")
    given = objects_of(as_pages(collection.get_objects, per_request=500))
    faithful(sent, given, "our own puller, given out again")


def read_objects(file):
    document = json.loads(file.read_text("utf-8"))
    return document["objects"] if isinstance(document, dict) else document


def run(binary, files):
    sent = generated()
    for file in files:
        sent.extend(read_objects(file))
    # The feeds of the second workspace come from this machine.
    hosts = {"TAXII_ALLOWED_HOSTS": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as data, Service(binary, data, hosts) as service:
        service.ask("PATCH", "/api/admin/workspace", {"tlp_ceiling": "TLP:RED", "elevated_clearance": True})
        service.ask("POST", "/api/ingest/stix", {"bundle": {"type": "bundle", "id": f"bundle--{uuid.uuid4()}", "objects": sent}}, 201)
        base = service.process.match[1]
        root = f"/taxii2/{service.ask('GET', '/api/auth/me')['workspace']['id']}/"
        with_taxii2_client(base, sent)
        with_cytaxii2(base, sent)
        by_dates(base, root, sent)
        with_a_key(service, base)
        pulled_by_our_own(service, root, sent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--objects", type=Path, nargs="*", default=[], metavar="FILE")
    arguments = parser.parse_args()
    try:
        run(arguments.binary.resolve(), arguments.objects)
    except Failed as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    print("the TAXII server serves taxii2-client, cytaxii2 and our own puller")
    return 0


if __name__ == "__main__":
    sys.exit(main())
