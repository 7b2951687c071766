#!/usr/bin/env python3
"""Checks every STIX 2.1 bundle below a directory against judges that are not ours.

    conformance.py DIR [--schemas DIR] [--validate N]

For each *.json file:
  1. strict JSON (no NaN, no duplicate keys), a bundle with the members the API promises,
     unique ids, and every reference resolving inside the bundle;
  2. each object against the OASIS JSON Schema of its type (bundle.json is not used: its list of
     types is incomplete);
  3. stix2-validator with default options: zero errors (warnings are counted only). It is by far the slowest judge;
     with --validate it sees N of the files, spread over all of them;
  4. stix2.parse(..., version="2.1", allow_custom=True).

Prints a line per file and `N passed, M failed`. Exit code 1 on any failure, or without any bundle.
Needs stix2-validator 3.3.2 and stix2 3.0.2 (jsonschema and referencing come with the former).
"""

import argparse
import json
import re
import sys
from pathlib import Path

import stix2
import stix2validator
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

DEFAULT_SCHEMAS = Path(__file__).resolve().parents[2] / "shared/reference/oasis-stix-2.1-schemas"
BUNDLE_ID = re.compile(r"bundle--[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
SHOWN_PER_FILE = 20


class Schemas:
    """The OASIS schemas, one compiled validator per object type."""

    def __init__(self, root):
        contents = {path: json.loads(path.read_text("utf-8")) for path in sorted(root.rglob("*.json"))}
        if not contents:
            raise SystemExit(f"conformance: no schemas in {root}")
        self.registry = Registry().with_resources(
            (schema["$id"], Resource.from_contents(schema)) for schema in contents.values()
        )
        self.by_type = {
            path.stem: schema
            for path, schema in contents.items()
            if path.parent.name in ("sdos", "sros", "observables")
            or path.stem in ("marking-definition", "extension-definition", "language-content")
        }
        self.core = next(schema for path, schema in contents.items() if path.stem == "core")
        self.compiled = {}

    def validator(self, object_type):
        """None for a type the standard does not have; custom `x-` types get the common properties."""
        if object_type not in self.compiled:
            schema = self.by_type.get(object_type)
            if schema is None and object_type.startswith("x-"):
                schema = self.core
            self.compiled[object_type] = schema and Draft202012Validator(schema, registry=self.registry)
        return self.compiled[object_type]


def strict_json(text):
    def no_duplicates(pairs):
        out = dict(pairs)
        if len(out) != len(pairs):
            keys = [key for key, _ in pairs]
            raise ValueError(f"duplicate key {next(k for k in keys if keys.count(k) > 1)!r}")
        return out

    def no_constant(name):
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, object_pairs_hook=no_duplicates, parse_constant=no_constant)


def references(value, where=""):
    """Every (path, id) below `value` whose key ends in _ref or _refs; not those of custom properties,
    which go out as they came in."""
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{where}.{key}" if where else key
            if key.startswith("x_"):
                continue
            if key.endswith("_ref") and isinstance(inner, str):
                yield path, inner
            elif key.endswith("_refs") and isinstance(inner, list):
                yield from ((path, item) for item in inner if isinstance(item, str))
            else:
                yield from references(inner, path)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from references(inner, f"{where}[{number}]")


def check_bundle(bundle):
    """What the API promises of a bundle and what no schema can say."""
    if not isinstance(bundle, dict):
        return ["the document is not an object"]
    problems = []
    if bundle.get("type") != "bundle":
        problems.append(f"type is {bundle.get('type')!r}, not 'bundle'")
    if not BUNDLE_ID.fullmatch(str(bundle.get("id"))):
        problems.append(f"id {bundle.get('id')!r} is not bundle--UUID")
    if bundle.get("spec_version") != "2.1":
        problems.append(f"spec_version is {bundle.get('spec_version')!r}, not '2.1'")
    objects = bundle.get("objects")
    if not isinstance(objects, list) or not objects:
        return problems + ["objects is not a list of at least one element"]
    strangers = [number for number, item in enumerate(objects) if not isinstance(item, dict)]
    if strangers:
        return problems + [f"objects[{number}] is not an object" for number in strangers]
    ids = [item.get("id") for item in objects]
    known = {ident for ident in ids if isinstance(ident, str)}
    if len(known) != len(ids):
        problems.append("object ids are missing or not unique")
    for item in objects:
        for path, target in references(item):
            if target not in known:
                problems.append(f"{item.get('id')}: {path} {target} is not in the bundle")
            elif path == "object_marking_refs" and not target.startswith("marking-definition--"):
                problems.append(f"{item.get('id')}: {path} {target} is not a marking-definition")
    return problems


def check_schemas(bundle, schemas):
    problems = []
    for item in bundle["objects"]:
        name, object_type = item.get("id"), item.get("type")
        validator = schemas.validator(object_type) if isinstance(object_type, str) else None
        if validator is None:
            problems.append(f"{name}: schema: unknown type {object_type!r}")
            continue
        for error in validator.iter_errors(item):
            field = "/".join(map(str, error.absolute_path)) or "(object)"
            problems.append(f"{name}: schema: {field}: {error.message[:200]}")
    return problems


def check_validator(text):
    results = stix2validator.validate_string(text, stix2validator.ValidationOptions())
    results = results if isinstance(results, list) else [results]
    problems = [f"stix2-validator: {error}" for result in results for error in result.errors or []]
    if not problems and not all(result.is_valid for result in results):
        problems.append("stix2-validator: not valid, no reason given")
    return problems, sum(len(result.warnings or []) for result in results)


def check_parse(text):
    try:
        stix2.parse(text, version="2.1", allow_custom=True)
    except Exception as error:  # any exception means that a client could not read it
        return [f"stix2.parse: {type(error).__name__}: {error}"]
    return []


def check_file(path, schemas, validate):
    """(problems, summary) of one file; `validate` tells whether stix2-validator sees it, too."""
    try:
        text = path.read_text("utf-8")
        bundle = strict_json(text)
    except (ValueError, RecursionError) as error:
        return [f"not JSON: {error}"], ""
    problems = check_bundle(bundle)
    objects = bundle.get("objects") if isinstance(bundle, dict) else None
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        return problems, ""
    problems += check_schemas(bundle, schemas)
    summary = f"{len(objects)} objects"
    if validate:
        try:
            found, warnings = check_validator(text)
            problems += found
            summary += f", {warnings} warnings"
        except Exception as error:  # the validator itself gave up on the document
            problems.append(f"stix2-validator: {type(error).__name__}: {error}")
    problems += check_parse(text)
    return problems, summary


def main():
    parser = argparse.ArgumentParser(description="Validate exported STIX 2.1 bundles with independent tools.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--schemas", type=Path, default=DEFAULT_SCHEMAS, help="the OASIS STIX 2.1 JSON Schemas")
    parser.add_argument("--validate", type=int, help="how many files stix2-validator sees; all of them without it")
    arguments = parser.parse_args()

    files = sorted(arguments.directory.rglob("*.json")) if arguments.directory.is_dir() else []
    if not files:
        print(f"conformance: no *.json in {arguments.directory}: nothing was exported", file=sys.stderr)
        return 1
    schemas = Schemas(arguments.schemas)
    failed = 0
    every = max(1, len(files) // arguments.validate) if arguments.validate else 1
    for number, path in enumerate(files):
        problems, summary = check_file(path, schemas, validate=number % every == 0)
        name = path.relative_to(arguments.directory)
        if not problems:
            print(f"ok    {name} ({summary})")
            continue
        failed += 1
        print(f"FAIL  {name} ({summary or 'unreadable'}), {len(problems)} problems")
        for problem in problems[:SHOWN_PER_FILE]:
            print(f"        {problem}")
        if len(problems) > SHOWN_PER_FILE:
            print(f"        and {len(problems) - SHOWN_PER_FILE} more")
    print(f"{-(-len(files) // every)} of them seen by stix2-validator")
    print(f"{len(files) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
