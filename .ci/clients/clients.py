#!/usr/bin/env python3
"""The API descriptions of both services with the generators and linters that people use, and a generated client at work.

    clients.py BINARY --tools FOLDER [--work FOLDER]

FOLDER of the tools is one in which package.json beside this file was installed. Needs openapi-generator-cli,
openapi-python-client and what a generated Python client imports in the Python that runs it, and Java. A warning is a
failure, except those in NOTICES, which no document can avoid.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from taxii_servers import EMAIL, PASSWORD, Client, Failed, Process, Service, check  # noqa: E402

LANGUAGES = ("python", "java", "go", "typescript-fetch")
# What openapi-generator warns of whatever stands in the document.
NOTICES = re.compile(
    "|".join(
        [
            "OpenAPI 3.1 support is still in beta",
            # Parameters whose names the contract gives: `from`, `type`, `error`, `file`.
            r"\(reserved word\) cannot be used as (?:parameter|model|method) name",
            r"\(model name matches existing language type\) cannot be used as a model name",
            # A value of any type, such as what was sent in a field that is refused.
            "Codegen property is null",
            # Its own look-up of a schema without a name.
            "Failed to get the schema name: null",
            "Ignoring complex example on request body",
        ]
    )
)


def run(command, **options):
    """Runs a tool that must end well; returns what it said."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options
    )
    said = done.stdout + done.stderr
    check(done.returncode == 0, f"{command[0]} ends well; it said:\n{said[-4000:]}")
    return done.stdout, said


def lint(document, tools):
    """redocly, spectral and openapi-typescript."""
    found, _ = run([tools / "redocly", "lint", document, "--format=json"])
    problems = json.loads(found)["problems"]
    check(not problems, f"redocly finds nothing in {document.name}: {json.dumps(problems)[:4000]}")
    ruleset = document.parent / "spectral.yaml"
    ruleset.write_text('extends: ["spectral:oas"]\n')
    run([tools / "spectral", "lint", document, "--ruleset", ruleset, "--fail-severity=hint"])
    _, said = run([tools / "openapi-typescript", document, "--output", document.with_suffix(".ts")])
    check("warn" not in said.lower(), f"openapi-typescript warns of nothing in {document.name}: {said}")


def generate(document, work):
    """openapi-python-client and openapi-generator; returns the folder of the latter's Python client."""
    beside = Path(sys.executable).parent
    path = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    command = [beside / "openapi-python-client", "generate", "--path", document, "--fail-on-warning"]
    run([*command, "--output-path", work / f"{document.stem}-openapi-python-client"], env=path)
    for language in LANGUAGES:
        folder = work / f"{document.stem}-{language}"
        command = [beside / "openapi-generator-cli", "generate", "-g", language, "-i", document, "-o", folder]
        _, said = run(command)
        faults = [line for line in said.splitlines() if re.search("WARN|ERROR", line) and not NOTICES.search(line)]
        check(not faults, f"{language} is generated of {document.name} without a warning:\n" + "\n".join(faults[:20]))
    return work / f"{document.stem}-python"


def judge(name, base, path, arguments, environment=None):
    document = arguments.work / f"{name}.json"
    document.write_text(json.dumps(Client(base).ask("GET", path)), "utf-8")
    lint(document, arguments.tools / "node_modules/.bin")
    client = generate(document, arguments.work)
    environment = {**os.environ, **(environment or {}), "PYTHONPATH": str(client)}
    said, _ = run([sys.executable, HERE / "tour.py", name, base], env=environment)
    print(f"{name}: no tool warns; {said.strip()}", flush=True)


def local(arguments):
    own = ("THREAT_MEMORY_", "LOCAL_", "PLATFORM_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment |= {"LOCAL_WEB_ADMIN_BIND": "127.0.0.1:0", "LOCAL_WEB_RATE_LIMIT_PER_MINUTE": "100000"}
    data = arguments.work / "local"
    command = [str(arguments.binary), "local", "--port", "0", "--data-dir", str(data)]
    process = Process(command, r"API on (http://\S+), metrics on", env=environment, cwd=data)
    try:
        judge("local", process.match[1], "/api/openapi.json", arguments)
    finally:
        process.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("target/clients-work"))
    arguments = parser.parse_args()
    arguments.binary, arguments.tools = arguments.binary.resolve(), arguments.tools.resolve()
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work = arguments.work.resolve()
    for folder in ("hosted", "local"):
        (arguments.work / folder).mkdir(parents=True)
    administrator = {"THREAT_MEMORY_ADMIN_EMAIL": EMAIL, "THREAT_MEMORY_ADMIN_PASSWORD": PASSWORD}
    try:
        with Service(arguments.binary, arguments.work / "hosted", {}) as service:
            judge("hosted", service.admin.base, "/openapi.json", arguments, administrator)
        local(arguments)
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
