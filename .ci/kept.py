#!/usr/bin/env python3
"""Proves that a built binary throws nothing of STIX away, on what other tools make.

    kept.py BINARY [--shared DIR] [--exports DIR]

Each document is ingested into a workspace of its own: every MISP event of the shared folder as misp-stix converts it,
both releases of ATT&CK for ICS, every STIX example, and sectors and regions as OpenCTI's connectors send them. Then every
object is asked for by its id, twenty ids at a time, and exported; what comes out is compared with what went in, field by
field. ATT&CK's own library has to read the same from the export of its collection as from the original. Some of the
bundles are left in the directory of --exports for the conformance check.

Prints a line per document. Exit code 1 if an object or a field is missing or different. Needs misp-stix and
mitreattack-python in the Python that runs it.
"""

import argparse
import json
import logging
import re
import sys
import tempfile
import uuid
import warnings
from pathlib import Path

from misp_stix_converter import MISPtoSTIX21Parser
from mitreattack.stix20 import MitreAttackData

from taxii_servers import PASSWORD, Failed, Service, check

IDS_PER_QUERY = 20
# They come with what refers to them.
COMPANIONS = frozenset(["marking-definition", "extension-definition", "language-content"])
# The converter refuses these events itself: no title, or a value that its own library does not take.
NOT_CONVERTED = frozenset(
    [
        "mispevent_testfiles_galaxy",
        "mispevent_testfiles_sighting",
        "reportlab_testfiles_japanese_test",
        "sednit_2018-11-20_Zebrocy",
    ]
)
# Its objects name markings that nobody defines, so they are kept and don't leave.
HELD_BACK = "interop-objectmarking-test"


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def converted(path):
    """The objects that misp-stix makes of an event."""
    event = read_json(path)
    event = event[0] if isinstance(event, list) else event
    event = event.get("response", event)
    event = event[0] if isinstance(event, list) else event
    parser = MISPtoSTIX21Parser()
    parser.parse_misp_event(event if "Event" in event else {"Event": event})
    return json.loads(parser.bundle.serialize())["objects"]


def sectors_and_regions():
    """What OpenCTI's data sets of sectors, regions and countries are made of."""
    made = "2024-01-01T00:00:00.000Z"

    def one(kind, name, **more):
        ident = f"{kind}--{uuid.uuid5(uuid.NAMESPACE_URL, f'{kind}:{name}')}"
        return {"type": kind, "spec_version": "2.1", "id": ident, "created": made, "modified": made, "name": name, **more}

    def related(source, kind, target):
        ident = uuid.uuid5(uuid.NAMESPACE_URL, f"{source['id']}{kind}{target['id']}")
        ends = {"source_ref": source["id"], "target_ref": target["id"], "relationship_type": kind}
        common = {"type": "relationship", "spec_version": "2.1", "id": f"relationship--{ident}"}
        return {**common, "created": made, "modified": made, **ends}

    author = one("identity", "Data sets", identity_class="organization")
    sectors = [one("identity", f"Sector {n}", identity_class="class", sectors=["energy"]) for n in range(40)]
    companies = [one("identity", f"Company {n}", identity_class="organization") for n in range(200)]
    regions = [one("location", f"Region {n}", region="eastern-europe", x_opencti_order=n) for n in range(20)]
    countries = [one("location", f"Country {n}", country="UA", x_opencti_aliases=[f"C{n}"]) for n in range(200)]
    made_of = [related(one_of, "part-of", sectors[n % 40]) for n, one_of in enumerate(companies)]
    within = [related(country, "located-at", regions[n % 20]) for n, country in enumerate(countries)]
    authored = [{**each, "created_by_ref": author["id"]} for each in [*sectors, *companies, *regions, *countries]]
    return [author, *authored, *made_of, *within]


def documents(shared):
    """The objects of each document, by its name."""
    for path in sorted((shared / "data/misp").glob("*.json")):
        try:
            yield f"misp-stix {path.stem}", converted(path)
        except Exception as refusal:  # The converter raises what its libraries raise.
            check(path.stem in NOT_CONVERTED, f"misp-stix converts {path.name}", repr(refusal))
    for folder in ("attack", "stix"):
        for path in sorted((shared / "data" / folder).glob("*.json")):
            if path.stem == HELD_BACK:
                continue
            document = read_json(path)
            objects = document.get("objects", [document]) if isinstance(document, dict) else document
            yield path.stem, [one for one in objects if "id" in one]
    yield "sectors and regions", sectors_and_regions()


def workspace(service):
    """A new workspace that may see and export everything, as its administrator."""
    email = f"{uuid.uuid4().hex}@example.org"
    new = {"name": email, "admin_email": email, "admin_password": PASSWORD}
    service.ask("POST", "/api/admin/workspaces", new, status=201)
    admin = service.sign_in(email)
    cleared = {"tlp_ceiling": "TLP:RED", "elevated_clearance": True, "red_export_grant": True}
    admin.ask("PATCH", "/api/admin/workspace", cleared)
    return admin


def newest(objects):
    """The last version of each object, by id."""
    kept = {}
    for one in objects:
        before = kept.get(one["id"])
        if before is None or one.get("modified", "") > before.get("modified", ""):
            kept[one["id"]] = one
    return kept


def batches(objects):
    """Sets of ids, so that every object is in one, and both ends of every relationship are in one together."""
    known = {ident for ident, one in objects.items() if one["type"] not in COMPANIONS | {"relationship"}}
    asked, ids = set(), []
    pairs = [(one["source_ref"], one["target_ref"]) for one in objects.values() if one["type"] == "relationship"]
    for group in [*sorted(pairs), *((ident,) for ident in sorted(known))]:
        new = [ident for ident in group if ident in known and ident not in ids]
        if len(group) == 1 and asked.issuperset(group):
            continue
        if len(ids) + len(new) > IDS_PER_QUERY:
            yield ids
            ids, new = [], [ident for ident in group if ident in known]
        ids.extend(new)
        asked.update(new)
    if ids:
        yield ids


def exported(admin, objects, name, folder):
    """All that leaves, by id."""
    out = {}
    for number, ids in enumerate(batches(objects)):
        query = "%20".join(ids)
        found = admin.ask("GET", f"/api/recall/search?q={query}&limit=100&include_rejected=true")
        bundle = admin.ask("GET", f"/api/recall/sessions/{found['recall_id']}/export.stix")
        if folder and number % 20 == 0:
            path = folder / f"{name.replace(' ', '-')}-{number}.json"
            path.write_text(json.dumps(bundle), "utf-8")
        out.update({one["id"]: one for one in bundle["objects"]})
    return out


def without(value, refused):
    """The value without references to refused objects, and the lists that these leave empty."""
    if isinstance(value, list):
        return [without(item, refused) for item in value if not (isinstance(item, str) and item in refused)]
    if isinstance(value, dict):
        kept = {key: without(inner, refused) for key, inner in value.items() if not (isinstance(inner, str) and inner in refused)}
        return {key: inner for key, inner in kept.items() if inner != [] or value[key] == []}
    return value


def differences(sent, given):
    """The fields that are not as they were. An object without a marking or a confidence gains them."""
    for field in sent.keys() | given.keys():
        if field == "object_marking_refs":
            lost = set(sent.get(field, [])) - set(given.get(field, []))
            if lost:
                yield f"{field} lost {sorted(lost)}"
        elif sent.get(field) != given.get(field) and (field in sent or field != "confidence"):
            yield f"{field}: {str(sent.get(field))[:80]} -> {str(given.get(field))[:80]}"


def never_sent(objects):
    """Ids that reports of the document name and that are not in it."""
    named = {ident for one in objects for ident in one.get("object_refs", [])}
    return named - {one["id"] for one in objects}


# References without which an object is none.
NEEDED = {"observed-data": ["object_refs"], "relationship": ["source_ref", "target_ref"]}


def expected(objects, results):
    """What has to come back: all but what breaks the standard and is named with the rule, and what is only about that."""
    sent = newest(objects)
    refused = {one["id"] for one in results.get("skipped_objects", [])} | never_sent(objects)
    while True:
        left = {ident: without(one, refused) for ident, one in sent.items() if ident not in refused}
        lost = {i for i, one in left.items() if any(need not in one for need in NEEDED.get(one["type"], []))}
        if not lost:
            return left, refused
        refused |= lost


# Calls of ATT&CK's library over detections of both models, assets and tactics.
ATTACK_CALLS = [
    "get_all_datacomponents_detecting_all_techniques",
    "get_all_detection_strategies_detecting_all_techniques",
    "get_all_assets_targeted_by_all_techniques",
    "get_all_groups_using_all_techniques",
    "get_analytics",
    "get_tactics",
]


def attack_answers(objects):
    """What ATT&CK's library answers, in ids."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"type": "bundle", "id": f"bundle--{uuid.uuid4()}", "objects": objects}, file)
        file.flush()
        data = MitreAttackData(file.name)
    identifiers = re.compile(r"(?<![a-z-])(?!marking-definition)[a-z][a-z-]*--[0-9a-f-]{36}")
    return {call: sorted(identifiers.findall(str(getattr(data, call)()))) for call in ATTACK_CALLS}


def judge_attack(admin, objects):
    """Whether the export of the collection is read as the original is."""
    collections = [one["id"] for one in objects if one["type"] == "x-mitre-collection"]
    found = admin.ask("GET", f"/api/recall/search?q={collections[0]}&limit=1&include_rejected=true")
    bundle = admin.ask("GET", f"/api/recall/sessions/{found['recall_id']}/export.stix")
    sent, given = attack_answers(objects), attack_answers(bundle["objects"])
    for call in ATTACK_CALLS:
        verdict = "the same" if sent[call] == given[call] else f"different from {len(given[call])}"
        print(f"  {call}: {len(sent[call])} ids, {verdict}", flush=True)
    return sent == given


def judge(service, name, objects, folder):
    admin = workspace(service)
    objects = [{**one, "id": one["id"].lower()} for one in objects]
    bundle = {"type": "bundle", "id": f"bundle--{uuid.uuid4()}", "objects": objects}
    results = admin.ask("POST", "/api/ingest/stix", {"bundle": bundle}, status=201)["results"]
    sent, refused = expected(objects, results)
    given = exported(admin, sent, name, folder)
    used = json.dumps(list(given.values()))
    missing = [
        ident
        for ident, one in sent.items()
        if ident not in given and (one["type"] not in COMPANIONS or ident in used)
    ]
    wrong = [
        f"{ident} {difference}"
        for ident, one in sent.items()
        if ident in given
        for difference in differences(one, given[ident])
    ]
    print(f"{name}: {len(sent)} objects sent, {len(refused)} refused, {len(given)} given back", flush=True)
    for line in [*(f"missing: {ident}" for ident in missing[:20]), *wrong[:20]]:
        print(f"  {line}", flush=True)
    is_attack = any(one["type"] == "x-mitre-collection" for one in objects)
    return not missing and not wrong and (not is_attack or judge_attack(admin, objects))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--exports", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    with tempfile.TemporaryDirectory() as data, Service(arguments.binary.resolve(), data, {}) as service:
        verdicts = [judge(service, name, objects, arguments.exports) for name, objects in documents(arguments.shared)]
    print(f"{sum(verdicts)} documents whole, {len(verdicts) - sum(verdicts)} not")
    return not all(verdicts)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        sys.exit(1)
