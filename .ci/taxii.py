#!/usr/bin/env python3
"""Proves the threat feeds of a built binary against a TAXII 2.1 server that is not ours.

    taxii.py BINARY [--shared DIR] [--exports DIR]

Runs medallion 3.0.0 with the data of the shared folder, a proxy in front of it that adds the credentials, and
`threat-memory hosted` with a durable store. Registers feeds and pulls, reviews, commits and exports them; kills the
service in the middle of a pull, and restarts medallion in the middle of others.

Prints a line per step. Exit code 1 with the first expectation that does not hold. Exported bundles are left in the
directory of --exports for the conformance check. Needs medallion in the Python that runs it, and nothing else.
"""

import argparse
import collections
import datetime
import json
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

from taxii_servers import REQUEST_SECONDS, TAXII, Failed, Medallion, Proxy, Service, check

HIGH_VALUE = "/trustgroup1/collections/91a7b528-80eb-42ed-a74d-c6fbd5a26116/objects/"
# Empty in the data file, and writable.
REPORTS = "/trustgroup1/collections/365fed99-08fa-fdcd-a1b3-fb247eb41d01/objects/"
PAGE_OBJECTS = 25
DEFAULT_TLP = "TLP:GREEN"
COUNTED = frozenset(
    "threat-actor intrusion-set campaign malware tool vulnerability attack-pattern course-of-action indicator".split()
)
NO_NODES = frozenset("marking-definition extension-definition language-content relationship".split())
LEVELS = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK"]
AMBER = "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82"
MARKINGS = {
    "marking-definition--613f2e26-407d-48c7-9eca-b8e91df99dc9": "TLP:WHITE",
    "marking-definition--34098fce-860f-48ae-8e50-ebd3cc5e41da": "TLP:GREEN",
    AMBER: "TLP:AMBER",
    "marking-definition--939a9414-2ddd-4d32-a0cd-375ea402b003": "TLP:AMBER+PK",
    "marking-definition--72184654-c883-58d2-9bff-a49a8715138b": "TLP:AMBER+PK",
}
STATEMENT = {
    "type": "marking-definition",
    "spec_version": "2.1",
    "id": "marking-definition--0d8cf1c6-5d7f-4f0e-9a39-5f1f7a3e2b10",
    "created": "2024-01-01T00:00:00.000Z",
    "definition_type": "statement",
    "definition": {"statement": "Copyright 2024, Example"},
}
UPDATED, NEWS = "Malicious site hosting downloader", "Taken down in June 2024"
MARKED_LATER = "Marked before its marking is defined"
FEEDS, BATCHES = "/api/threat-intel/feeds", "/api/threat-intel/batches"


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def indicator(ident, name, domain, modified, **more):
    return {
        "type": "indicator",
        "spec_version": "2.1",
        "id": f"indicator--{ident}",
        "created": "2024-01-01T00:00:00.000Z",
        "modified": modified,
        "name": name,
        "pattern": f"[domain-name:value = '{domain}']",
        "pattern_type": "stix",
        "valid_from": "2024-01-01T00:00:00Z",
        **more,
    }


def reports(shared):
    """The objects of the second collection: a real report, and objects with markings, one defined only at the end."""
    report = read_json(shared / "data/stix/poisonivy.json")
    marked = read_json(shared / "data/golden/export_golden.json")
    marked_later = indicator(
        "3f0a7b52-6c1d-4e8e-9b0f-7a4d2c5e1f60",
        MARKED_LATER,
        "early.example.com",
        "2024-01-01T00:00:00.000Z",
        object_marking_refs=[STATEMENT["id"]],
    )
    return [marked_later, *report["objects"], *marked["objects"], STATEMENT]


def high_value(shared):
    """The objects that medallion offers of its own data: the newest version in the newest format."""
    data = read_json(shared / "data/taxii/default_data.json")
    collection = next(one for one in data["trustgroup1"]["collections"] if one["id"] in HIGH_VALUE)

    def version(one):
        return one.get("spec_version", "2.0"), one.get("modified", one["created"])

    return list({one["id"]: one for one in sorted(collection["objects"], key=version)}.values())


def stageable(objects):
    """The objects that are reviewed: nodes, and relationships between nodes."""

    def taken(one):
        ends = [one["source_ref"], one["target_ref"]] if one["type"] == "relationship" else [one["id"]]
        return all(end.split("--")[0] not in NO_NODES for end in ends)

    return {one["id"]: one for one in objects if taken(one)}


def counted_edge(item):
    """Whether an item is a relationship between nodes that an ingest counts."""
    ends = [item.get("source_ref", ""), item.get("target_ref", "")]
    return item["stix_type"] == "relationship" and all(end.split("--")[0] in COUNTED for end in ends)


def marking(one):
    """What an object states, or else the feed's default."""
    levels = [MARKINGS[ref] for ref in one.get("object_marking_refs", []) if ref in MARKINGS]
    return max(levels, key=LEVELS.index, default=DEFAULT_TLP)


def pull_of(feed):
    return {"input_kind": "taxii_2_1_pull", "feed_source_id": feed["id"]}


def item_path(item):
    return f"{BATCHES}/{item['batch_id']}/items/{item['id']}"


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Scenario:
    def __init__(self, shared, exports, medallion, proxy, service):
        self.shared, self.exports = shared, exports
        self.medallion, self.proxy, self.service = medallion, proxy, service
        self.begun = time.monotonic()
        self.objects = reports(shared)

    def done(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def register(self, name, path, port=None, status=201):
        body = {
            "name": name,
            "connector_config_ref": f"http://127.0.0.1:{port or self.proxy.port}{path}",
            "default_tlp": DEFAULT_TLP,
            "redistribution_state": "allowed",
        }
        answer = self.service.ask("POST", FEEDS, body, status)
        return answer.get("feed", answer)

    def pull(self, feed, status="review"):
        """Pulls a feed to the end and returns the batch with all its items."""
        started = self.service.ask("POST", BATCHES, pull_of(feed), 201)
        return self.ended(started["batch"]["id"], status)

    def pull_in_background(self, feed):
        """Starts a pull whose answer comes later, or never; `answers` gets what came."""
        answers, service = [], self.service.admin

        def start():
            try:
                answers.append(service.call("POST", BATCHES, pull_of(feed)))
            except OSError as error:
                answers.append(error)

        thread = threading.Thread(target=start, daemon=True)
        thread.start()
        return thread, answers

    def ended(self, batch, status="review"):
        view = self.service.eventually(
            lambda: self.service.ask("GET", f"{BATCHES}/{batch}?limit=1000"),
            lambda view: view["batch"]["status"] != "pulling",
            "the pull ends",
        )
        check(view["batch"]["status"] == status, f"the batch is {status}", view["batch"])
        return view["batch"], view["items"]

    def check_staged(self, batch, items, objects):
        """Every object that ingest takes is staged once, as it is, with the marking that it states."""
        expected = stageable(objects)
        times = collections.Counter(item["stix_id"] for item in items)
        twice = [ident for ident, number in times.items() if number > 1]
        check(not twice, "nothing is staged twice", twice)
        missing, strange = sorted(expected.keys() - times.keys()), sorted(times.keys() - expected.keys())
        check(not missing, f"{len(expected)} objects are staged, nothing is missing", [len(missing), batch, missing])
        check(not strange, "nothing else is staged", [strange, batch])
        for item in items:
            one = expected[item["stix_id"]]
            check(item["status"] == "pending", "an item is pending", item)
            if "modified" in one:  # Observables have no time.
                newest = instant(item["modified"]) == instant(one["modified"])
                check(newest, "an item is the newest version", [item, one])
            check(item["proposed_tlp"] == marking(one), f"{marking(one)} is proposed", [item, one])
            undefined = [warning for warning in item["warnings"] if warning.startswith("undefined marking")]
            check(not undefined, "no marking is undefined in the end", item)

    def search(self, query):
        return self.service.ask("GET", "/api/recall/search?" + urllib.parse.urlencode({"q": query, "limit": 100}))

    def first_pulls(self):
        answer = self.register("Not allowed", HIGH_VALUE, self.medallion.port, 400)
        refused = answer["error"].startswith("connector_config_ref: is refused")
        check(refused, "a port that is not allowed is refused", answer)
        # Without the last slash, medallion redirects each request.
        self.high = self.register("High value", HIGH_VALUE.rstrip("/") + "?limit=2")
        self.reports = self.register("Poison Ivy and others", REPORTS)
        self.high_batch, items = self.pull(self.high)
        self.check_staged(self.high_batch, items, high_value(self.shared))
        check(self.high_batch["pages"] >= 3, "the first feed has three pages", self.high_batch)
        self.reports_batch, items = self.pull(self.reports)
        self.check_staged(self.reports_batch, items, self.objects)
        check(self.reports_batch["pages"] >= 5, "the second feed has many pages", self.reports_batch)
        self.check_object(next(item for item in items if item["name"] == "th3bug"))
        for query in ("Poison Ivy", "th3bug", "Mimikatz"):
            check(self.search(query)["results"] == [], f"a search for {query} finds nothing before the commit")
        requests = len(self.proxy.requests)
        self.done(f"pulled {self.high_batch['item_count']} and {len(items)} items with {requests} requests")

    def check_object(self, item):
        sent = next(one for one in self.objects if one["id"] == item["stix_id"])
        read = self.service.ask("GET", item_path(item))["item"]["object"]
        changed = {key: read.get(key) for key in sent if read.get(key) != sent[key]}
        check(not changed, "an item holds its object as it was sent", changed)

    def later_pulls(self):
        for feed in (self.high, self.reports):
            # Nothing is left to decide.
            batch, items = self.pull(feed, "committed")
            check(not items and batch["item_count"] == 0, "a second pull stages nothing", [batch, items])
        before = next(one for one in high_value(self.shared) if one.get("name") == UPDATED)
        newer = before | {"modified": "2024-06-01T00:00:00.000Z", "description": NEWS}
        added = indicator(
            "6a9d0b1e-2f3c-4d5e-8f60-718293a4b5c6", "Landing page", "new.example.com", "2024-06-01T00:00:00.000Z"
        )
        self.medallion.add(HIGH_VALUE, [newer, added])
        self.update_batch, items = self.pull(self.high)
        changes = sorted((item["stix_id"], item["change"], item["modified"][:10]) for item in items)
        expected = sorted([(newer["id"], "update", "2024-06-01"), (added["id"], "new", "2024-06-01")])
        check(changes == expected, f"exactly {expected} are staged", items)
        self.done("pulled again: nothing, then an update and a new object")

    def decide(self, item, body, status=200):
        answer = self.service.ask("POST", item_path(item), body, status)
        return answer.get("item", answer)

    def commit(self, batch):
        """Commits the accepted items."""
        answer = self.service.ask("POST", f"{BATCHES}/{batch['id']}/commit", {})
        check(answer["success"], "a commit succeeds", answer)
        return answer["results"]

    def review(self):
        _, items = self.ended(self.reports_batch["id"])
        nodes = {item["name"]: item for item in items if item["stix_type"] != "relationship"}
        rejected = nodes["menuPass"]
        answer = self.decide(nodes["Mimikatz"], {"resolved_tlp": "TLP:WHITE"}, 400)
        check("resolved_tlp" in answer["error"], "a marking below the stated one is refused by name", answer)
        for item in items:
            self.decide(item, {"status": "rejected" if item is rejected else "accepted"})
        marked = self.decide(nodes["th3bug"], {"resolved_tlp": "TLP:AMBER"})
        check((marked["resolved_tlp"], marked["status"]) == ("TLP:AMBER", "accepted"), "an item is marked", marked)
        path = f"{BATCHES}/{self.reports_batch['id']}/commit"
        answer = self.service.ask("POST", path, {"item_ids": [rejected["id"]]}, 400)
        check(answer["error"].startswith("item_ids[0]: "), "a rejected item is not committed", answer)

        results = self.commit(self.reports_batch)
        waiting = {
            item["id"] for item in items if rejected["stix_id"] in (item.get("source_ref"), item.get("target_ref"))
        }
        check(set(results["waiting"]) == waiting, "the relationships of the rejected item wait", results)
        numbers = {
            "nodes_created": sum(1 for item in items if item["stix_type"] in COUNTED) - 1,
            "edges_created": sum(1 for item in items if counted_edge(item)) - len(waiting),
            "committed": len(items) - 1 - len(waiting),
        }
        for key, number in numbers.items():
            check(results[key] == number, f"{key} is {number}", results)
        self.commit_again(self.reports_batch)
        self.commit_all(self.high_batch, nodes_created=3, edges_created=1)
        self.commit_all(self.update_batch, nodes_created=1, nodes_updated=1)
        self.done(f"committed {numbers['committed']} of {len(items)} items; {len(waiting)} wait, 1 is rejected")

    def commit_again(self, batch):
        again = self.commit(batch)
        written = {key: value for key, value in again.items() if key.endswith(("_created", "_updated")) and value}
        check(not written and again["committed"] == 0, "a second commit changes nothing", again)

    def commit_all(self, batch, **expected):
        _, items = self.ended(batch["id"])
        for item in items:
            self.decide(item, {"status": "accepted"})
        results = self.commit(batch)
        for key, number in expected.items():
            check(results[key] == number, f"{key} is {number}", results)
        batch, _ = self.ended(batch["id"], "committed")
        check(batch["committed"] == len(items), "the batch is committed", batch)
        self.commit_again(batch)

    def exported(self, found, status=200):
        return self.service.ask("GET", f"/api/recall/sessions/{found['recall_id']}/export.stix", None, status)

    def recall(self):
        found = self.search("menuPass")
        names = [node["name"] for node in found["results"]]
        check("menuPass" not in names, "the rejected campaign is not found", names)
        marked = self.search("th3bug")
        best = marked["results"][0]
        check((best["name"], best["tlp"]) == ("th3bug", "TLP:AMBER"), "the marked campaign is found as marked", best)
        objects = self.kept("taxii-marked.json", marked)
        check("menuPass" not in objects, "the rejected campaign is not exported", sorted(objects))
        check(AMBER in objects["th3bug"]["object_marking_refs"], "it is exported as marked", objects["th3bug"])
        objects = self.kept("taxii-updated.json", self.search(UPDATED))
        check(objects[UPDATED]["description"] == NEWS, "the update is exported", objects[UPDATED])
        self.done("searched, and exported two sessions")
        return marked

    def kept(self, name, session):
        """The objects of an exported session by name; the bundle is kept for the conformance check."""
        bundle = self.exported(session)
        if self.exports:
            self.exports.mkdir(parents=True, exist_ok=True)
            (self.exports / name).write_text(json.dumps(bundle), "utf-8")
        return {one["name"]: one for one in bundle["objects"] if "name" in one}

    def redistribution(self, found):
        path = f"{FEEDS}/{self.reports['id']}"
        changed = self.service.ask("PATCH", path, {"redistribution_state": "internal_only"})["feed"]
        check(changed["redistribution_state"] == "internal_only", "the feed is internal", changed)
        answer = self.exported(found, 403)
        check(self.reports["name"] in json.dumps(answer), f"the refusal names the feed {self.reports['name']}", answer)
        self.service.ask("PATCH", path, {"redistribution_state": "allowed"})
        self.exported(found)
        self.done("what an internal feed brought is not exported")

    def interrupted(self, name, place):
        """A new feed whose pull stops at its fourth request."""
        feed = self.register(name, REPORTS)
        hold = self.proxy.hold_at(4, place)
        thread, answers = self.pull_in_background(feed)
        check(hold.reached.wait(REQUEST_SECONDS), "the pull sends its fourth request", answers)
        running = self.service.ask("GET", f"{FEEDS}/{feed['id']}")["feed"]["running_batch_id"]
        return feed, running, thread, answers

    def let_go(self, thread):
        self.proxy.let_go()
        thread.join(REQUEST_SECONDS)
        check(not thread.is_alive(), "the request for a pull ends")

    def resume(self, feed, batch):
        batches = self.service.ask("GET", f"{BATCHES}?feed={feed['id']}")["batches"]
        check([one["id"] for one in batches] == [batch], "the pull has one batch", batches)
        partial, items = self.ended(batch, "failed")
        check(0 < len(items) < len(stageable(self.objects)), "a part is staged", partial)
        check(partial["error"], "the batch says why it failed", partial)
        early = next(item for item in items if item["name"] == MARKED_LATER)
        undefined = f"undefined marking: {STATEMENT['id']}"
        check(early["proposed_tlp"] == "TLP:AMBER" and undefined in early["warnings"], "a marking is undefined", early)
        self.service.ask("POST", f"{BATCHES}/{batch}/resume")
        self.check_staged(*self.ended(batch), self.objects)
        self.service.ask("POST", f"{BATCHES}/{batch}/resume", None, 409)

    def killed(self):
        # medallion has moved on to the next page when the service dies without this one.
        feed, batch, thread, _ = self.interrupted("Killed", "after")
        answer = self.service.ask("POST", BATCHES, pull_of(feed), 409)
        is_told = answer["error"] == "the feed is being pulled" and batch not in json.dumps(answer)
        check(is_told, "a second pull is refused, and the batch is not named", answer)
        self.service.kill()
        self.let_go(thread)
        self.service.start()
        self.resume(feed, batch)
        self.done("killed the service in a pull: resumed, nothing twice, nothing missing")

    def restart_medallion(self):
        """It forgets its page tokens, and what was added since it started."""
        self.medallion.stop()
        self.medallion.start()
        self.medallion.add(REPORTS, self.objects)

    def medallion_gone(self):
        feed, batch, thread, answers = self.interrupted("Gone", "before")
        self.medallion.stop()
        self.let_go(thread)
        check(isinstance(answers[0], tuple), "the service answers", answers)
        status, answer, headers = answers[0]
        check(status == 502 and answer["error"].startswith("the pull failed"), "the pull fails", [status, answer])
        check(batch in answer["details"], "the refusal names the batch", answer)
        check(headers["Location"] == f"{BATCHES}/{batch}", "Location is the batch", headers.items())
        self.restart_medallion()
        self.resume(feed, batch)
        self.done("stopped medallion in a pull: failed, resumed, nothing twice, nothing missing")

    def tokens_lost(self):
        _, batch, thread, answers = self.interrupted("Forgotten", "before")
        self.restart_medallion()
        self.let_go(thread)
        check(isinstance(answers[0], tuple) and answers[0][0] == 201, "the pull goes on by itself", answers)
        self.check_staged(*self.ended(batch), self.objects)
        self.done("restarted medallion between two pages: the pull goes on, nothing twice, nothing missing")

    def requests(self):
        for path, headers in self.proxy.requests:
            secret = [name for name in ("authorization", "cookie", "referer") if name in headers]
            check(not secret, f"the service sends no credentials to {path}", headers)
            check(headers.get("accept") == TAXII, f"the service asks {path} for {TAXII}", headers)
        self.done(f"none of the {len(self.proxy.requests)} requests carried credentials")

    def audit(self):
        logs = self.service.ask("GET", "/api/audit/logs?limit=1000")["logs"]
        seen = collections.Counter(entry["action"] for entry in logs)
        expected = {
            "feed.register": 5,
            "feed.change": 2,
            # Five first pulls, two without news, one with, and two resumed.
            "feed.pull": 10,
            "feed.pull_done": 8,
            "feed.pull_failed": 2,
            # Three batches, and once more what waits.
            "feed.commit": 4,
            "recall.export_denied": 1,
        }
        for action, number in expected.items():
            check(seen[action] == number, f"{number} audit entries {action}", seen)
        check(seen["feed.item_change"] >= 10, "audit entries of decisions", seen)
        verified = self.service.ask("GET", "/api/audit/verify")
        check(verified["valid"] is True, "the audit chain is valid", verified)
        self.done(f"the audit chain of {verified['entries']} entries is valid")

    def run(self):
        self.service.ask("PATCH", "/api/admin/workspace", {"tlp_ceiling": "TLP:AMBER+PK", "elevated_clearance": True})
        self.medallion.add(REPORTS, self.objects)
        self.first_pulls()
        self.later_pulls()
        # Before the commit: what is a node already is not staged by another feed.
        self.killed()
        self.medallion_gone()
        self.tokens_lost()
        self.requests()
        self.review()
        self.redistribution(self.recall())
        self.audit()


def main():
    parser = argparse.ArgumentParser(description="Prove the threat feeds against medallion.")
    parser.add_argument("binary", type=Path)
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--exports", type=Path, default=os.environ.get("THREAT_MEMORY_EXPORT_DIR"))
    arguments = parser.parse_args()
    # Ends as after an error, so that no child outlives this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    exports = arguments.exports and Path(arguments.exports)
    shared = arguments.shared.resolve()
    try:
        with tempfile.TemporaryDirectory() as data, Medallion(shared) as medallion, Proxy(medallion) as proxy:
            environment = {
                "TAXII_ALLOWED_HOSTS": f"127.0.0.1:{proxy.port}",
                "THREAT_MEMORY_FEEDS__PAGE_OBJECTS": str(PAGE_OBJECTS),
                # A request is held back while medallion restarts, which takes long on a busy machine.
                "THREAT_MEMORY_FEEDS__TIMEOUT_MS": str(REQUEST_SECONDS * 1000),
                "THREAT_MEMORY_FEEDS__ANSWER_MS": str(REQUEST_SECONDS * 1000),
            }
            with Service(arguments.binary.resolve(), data, environment) as service:
                Scenario(shared, exports, medallion, proxy, service).run()
    except Failed as failed:
        print(f"taxii: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
