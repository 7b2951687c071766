"""What schemathesis has to know about the local service, loaded by .ci/openapi_local.py."""

import json
import re

import jsonschema_rs
import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection

NUMBERS, FLAGS = frozenset(["k"]), frozenset(["evolve", "explain"])
WHOLE = re.compile(r"\s*[+-]?\d+(\.0*)?\s*")
# Requests a minute: more than a run sends, so that no answer is a 429 for nothing.
RATE, MOST_RATE = 10_000_000, 100_000_000
RATE_KEY = "rate_limit_per_minute"
TRUE, FALSE = frozenset("true t yes y on 1".split()), frozenset("false f no n off 0".split())


def number(value):
    """A whole number as the service reads it: clients of the API send it as text or as a boolean too."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and WHOLE.fullmatch(value):
        return int(value.split(".")[0])
    return value


def flag(value):
    """A boolean as the service reads it."""
    if isinstance(value, str):
        word = value.lower()
        return word in TRUE if word in TRUE | FALSE else value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    return value


def read(body):
    """A body as the service reads it."""
    if isinstance(body, list):
        return [read(item) for item in body]
    if not isinstance(body, dict):
        return body
    readers = dict.fromkeys(NUMBERS, number) | dict.fromkeys(FLAGS, flag)
    return {key: readers.get(key, read)(value) for key, value in body.items()}


def is_valid_as_read(case):
    """Whether the body fits its schema once it is read."""
    document = case.operation.schema.raw_schema
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    if schema is None or not isinstance(case.body, (dict, list)):
        return False
    whole = {**schema, "components": document["components"]}
    return jsonschema_rs.validator_for(whole).is_valid(read(case.body))


def unlimited(body):
    """A change of settings that leaves the rate limit as high as it is."""
    if not isinstance(body, dict):
        return body
    changed = {key: unlimited(value) for key, value in body.items()}
    for key, value in body.items():
        valid = isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value <= MOST_RATE
        if key.split(".")[-1] == RATE_KEY and valid and value == int(value):
            changed[key] = RATE
    return changed


@schemathesis.hook
def before_call(_, case, __):
    """Keeps a run from locking itself out."""
    if case.operation.definition.raw.get("operationId") == "change_config":
        case.body = unlimited(case.body)


@schemathesis.check
def invalid_data_is_refused(ctx, response, case):
    """`negative_data_rejection` for a service that reads numbers and booleans from text, and that tells the faults of
    the items of an ingest one by one."""
    if response.status_code == 200 and is_valid_as_read(case):
        return None
    if response.status_code == 200 and case.path == "/api/ingest" and response.json()["failed"] > 0:
        return None
    return negative_data_rejection(ctx, response, case)
