#!/usr/bin/env python3
"""Runs the conformance suite of the Model Context Protocol and its inspector against a built binary.

    conformance.py BINARY --tools DIRECTORY [--fixtures BINARY]

DIRECTORY has the packages of package.json beside this file. Each scenario that revisions 2025-11-25 and 2026-07-28 require
runs against `threat-memory local`; those that need things of the suite itself run against the binary with the feature
`mcp-fixtures`, if it is given; left_out.json beside this file says which are left out, and why. A scenario that neither
fails nor is left out must pass every one of its checks. Then the inspector lists and calls every tool.

Prints a line per scenario. Exit code 1 if one failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from taxii_servers import Failed, Process, check  # noqa: E402

HERE = Path(__file__).parent
LISTED = json.loads((HERE / "left_out.json").read_text("utf-8"))
REVISIONS = ["2025-11-25", "2026-07-28"]
CALLS = {
    "remember": ["content=APT28 uses X-Agent against 203.0.113.7."],
    "recall": ["query=X-Agent"],
    "synthesize": ["query=X-Agent"],
    "entity": ["type=actor", "value=APT28"],
    "graph": ["type=actor", "value=APT28", "max_depth=2"],
    "stats": [],
    "sync": [],
    "lookup": ['values=["203.0.113.7"]'],
    "changes": ["since=0"],
}


class Memory:
    """`threat-memory local` on a free port, without a limit of requests."""

    def __init__(self, binary):
        self.directory = tempfile.TemporaryDirectory()
        settings = Path(self.directory.name) / "local.toml"
        settings.write_text('web.rate_limit_per_minute = 1000000\nweb.admin_bind = "127.0.0.1:0"\n', "utf-8")
        data = Path(self.directory.name) / "data"
        command = [str(binary), "local", "--config", str(settings), "--port", "0", "--data-dir", str(data)]
        self.process = Process(command, r"API on (http://\S+), metrics on")
        self.url = f"{self.process.match[1]}/mcp"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()
        self.directory.cleanup()


class Tools:
    """The programs of the packages."""

    def __init__(self, directory):
        self.bin = Path(directory).resolve() / "node_modules/.bin"
        self.environment = os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(Path(directory).resolve())}

    def run(self, program, *arguments):
        command = [str(self.bin / program), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)

    def scenarios(self, revision):
        """The scenarios of a revision for servers."""
        listed = self.run("conformance", "list").stdout
        servers = listed.split("Client scenarios")[0].splitlines()
        named = [line.split(maxsplit=2) for line in servers if line.startswith("  - ")]
        return [name for _, name, revisions in named if revision in revisions]

    def failures(self, url, scenario, revision):
        """The checks that fail, each with what it says."""
        with tempfile.TemporaryDirectory() as results:
            arguments = ["--url", url, "--scenario", scenario, "--spec-version", revision, "-o", results]
            ran = self.run("conformance", "server", *arguments)
            found = list(Path(results).rglob("checks.json"))
            check(found, f"{scenario} leaves its checks", ran.stdout + ran.stderr)
            checks = json.loads(found[0].read_text("utf-8"))
        failed = [one for one in checks if one["status"] == "FAILURE"]
        return {one["id"]: one.get("errorMessage", "") for one in failed}


def judge(tools, memory, fixtures, revision):
    """Runs the scenarios of a revision; returns those that failed."""
    failed = []
    for scenario in tools.scenarios(revision):
        if why := LISTED["left_out"].get(scenario):
            print(f"{revision} {scenario}: left out: {why}")
            continue
        needs_fixtures = scenario in LISTED["fixtures"]["scenarios"]
        if needs_fixtures and not fixtures:
            print(f"{revision} {scenario}: left out: needs the build with fixtures")
            continue
        place = fixtures if needs_fixtures else memory
        wrong = tools.failures(place.url, scenario, revision)
        elsewhere = {name for name in wrong if name in LISTED["checks"]}
        if elsewhere and fixtures:
            known = {name for name, why in LISTED["checks"].items() if why != "fixtures"}
            there = tools.failures(fixtures.url, scenario, revision)
            elsewhere = {name for name in elsewhere if name in known or name not in there}
        wrong = {name: said for name, said in wrong.items() if name not in elsewhere}
        print(f"{revision} {scenario}: {'passed' if not wrong else wrong}", flush=True)
        if wrong:
            failed.append(scenario)
    return failed


def inspect(tools, memory):
    """Lists and calls every tool with the inspector."""
    said = tools.run("mcp-inspector", "--cli", memory.url, "--transport", "http", "--method", "tools/list")
    check(said.returncode == 0, "the inspector lists the tools", said.stdout + said.stderr)
    listed = {tool["name"] for tool in json.loads(said.stdout)["tools"]}
    check(listed == CALLS.keys() | {"note"}, "the inspector lists all tools", sorted(listed))
    note = None
    for tool, arguments in [*CALLS.items(), ("note", None)]:
        arguments = [f"id={note}"] if arguments is None else arguments
        given = [part for argument in arguments for part in ("--tool-arg", argument)]
        command = ["--cli", memory.url, "--transport", "http", "--method", "tools/call", "--tool-name", tool, *given]
        said = tools.run("mcp-inspector", *command)
        try:
            answer = json.loads(said.stdout)
        except ValueError:
            raise Failed(f"the inspector calls {tool}: {said.stdout}{said.stderr}") from None
        check(bool(answer.get("isError")) == (tool == "sync"), f"the inspector calls {tool}", answer)
        note = answer.get("structuredContent", {}).get("note_id", note)
    print(f"the inspector listed {len(listed)} tools and called each", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--tools", required=True)
    parser.add_argument("--fixtures")
    options = parser.parse_args()
    tools = Tools(options.tools)
    try:
        with Memory(Path(options.binary).resolve()) as memory:
            fixtures = Memory(Path(options.fixtures).resolve()) if options.fixtures else None
            try:
                failed = [name for revision in REVISIONS for name in judge(tools, memory, fixtures, revision)]
            finally:
                if fixtures:
                    fixtures.process.stop()
            inspect(tools, memory)
        check(not failed, "all scenarios pass", failed)
    except Failed as failed:
        sys.exit(f"failed: {failed}")


main()
