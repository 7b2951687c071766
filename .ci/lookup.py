#!/usr/bin/env python3
"""Compares look-up with judges that are not ours: Python's ipaddress and pymispwarninglists.

    lookup.py BINARY [--values N] [--seed N]

Starts the hosted service with MISP's own warninglists (those that pymispwarninglists comes with), stores some thousand
networks, and looks up random addresses, networks and domains, 10,000 at a time. For each value:
  1. its normal form is what ipaddress makes of it;
  2. the networks around it, and whether there are any inside it, are those that ipaddress finds;
  3. its warninglists are those that pymispwarninglists finds, less those whose `matching_attributes` are about other types
     of values (MISP filters by them, pymispwarninglists does not), plus regular expressions, which it does not evaluate.

The service folds the case of hosts, and reads `*.x`, `.x` and `x.` in a list of hosts as x with all hosts below it, as MISP
does: the judge is given the lists so.
pymispwarninglists compares a domain with every entry, so of domains only a few hundred are asked. Prints a line for each
kind of value; exit code 1 on any difference. Needs pymispwarninglists 1.7.0.
"""

import argparse
import ipaddress
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pymispwarninglists

PASSWORD = "a long enough password"
LISTS = Path(pymispwarninglists.__file__).parent / "data/misp-warninglists/lists"
BATCH = 10_000
DOMAINS = 300
TYPES = {
    "ip": {"ip", "ip-src", "ip-dst"},
    "domain": {"domain", "hostname"},
}


class Service:
    """The program in a directory of its own."""

    def __init__(self, binary, home):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("THREAT_MEMORY_")}
        environment |= {
            "THREAT_MEMORY_SERVER__ADMIN_BIND": "127.0.0.1:0",
            "THREAT_MEMORY_ADMIN_EMAIL": "admin@example.com",
            "THREAT_MEMORY_ADMIN_PASSWORD": PASSWORD,
            "THREAT_MEMORY_LIMITS__TIERS__PILOT": "1000000",
            "THREAT_MEMORY_LIMITS__TIERS__ENTERPRISE": "1000000",
            "THREAT_MEMORY_WARNINGLISTS__DIR": str(LISTS),
            "THREAT_MEMORY_ACTORS__GRAPH_STORE__TIMEOUT_MS": "600000",
        }
        command = [binary, "hosted", "--bind", "127.0.0.1:0", "--storage", f"surrealkv://{home}"]
        log = Path(home) / "log"
        with log.open("w") as stderr:
            self.process = subprocess.Popen(command, env=environment, stderr=stderr)
        until = time.monotonic() + 120
        while not (found := re.search(r"^API on (\S+), ", log.read_text(), re.MULTILINE)):
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit(f"the service did not start:\n{log.read_text()}")
            time.sleep(0.1)
        self.base = found.group(1)
        answer = self.post("/api/auth/login", {"email": "admin@example.com", "password": PASSWORD})
        self.token = answer["access_token"]

    token = None

    def post(self, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode())
        request.add_header("content-type", "application/json")
        if self.token:
            request.add_header("authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def look_up(self, values):
        for at in range(0, len(values), BATCH):
            answer = self.post("/api/recall/lookup", {"values": values[at : at + BATCH]})
            yield from answer["results"]


def random_address(rng, near):
    if rng.random() < 0.5:
        network = rng.choice(near)
        spread = network.num_addresses * 2
        number = int(network.network_address) + rng.randrange(-spread // 4, spread)
        bits = network.max_prefixlen
        return ipaddress.ip_address(number % 2**bits) if bits == 32 else ipaddress.IPv6Address(number % 2**bits)
    if rng.random() < 0.7:
        return ipaddress.IPv4Address(rng.getrandbits(32))
    return ipaddress.IPv6Address(0x2000 << 112 | rng.getrandbits(125))


def written_by(address):
    """The address as text; an IPv4 address in an IPv6 one is the IPv4 address."""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def adjusted(path):
    """A list with its hosts as the service reads them: in any case, and `*.x`, `.x` and `x.` as x."""
    one = json.loads(path.read_text("utf-8"))
    if one["type"] == "hostname":
        one["list"] = [entry.strip().lower().removeprefix("*").strip(".") for entry in one["list"]]
    elif one["type"] == "string":
        one["list"] = [entry.strip().lower() if isinstance(entry, str) else str(entry) for entry in one["list"]]
    return one


class Judge:
    def __init__(self, service, rng):
        self.service, self.rng = service, rng
        self.lists = pymispwarninglists.WarningLists(slow_search=True, lists=[adjusted(path) for path in LISTS.glob("*/list.json")])
        self.wrong = 0
        evaluated = {"ip": ("cidr", "string", "substring"), "domain": ("hostname", "string", "substring")}
        self.asked = {
            kind: [one for one in self.lists.values() if one.type in types and self.concerns(one, kind)]
            for kind, types in evaluated.items()
        }
        self.skipped = {one.name for one in self.lists.values() if one.type == "regex"}
        ranges = [entry for one in self.lists.values() if one.type == "cidr" for entry in one.list]
        self.near = [ipaddress.ip_network(entry, strict=False) for entry in rng.sample(ranges, 2000)]
        self.stored = {}

    def concerns(self, one, kind):
        attributes = getattr(one, "matching_attributes", [])
        parts = {part for attribute in attributes for part in attribute.split("|")}
        return not parts or parts & TYPES[kind]

    def listed(self, value, kind):
        """The names of the lists that the value is on, without those of regular expressions."""
        asked = self.asked[kind]
        return {one.name for one in asked if value in one}

    def compare(self, kind, results, want):
        """Compares results with what `want` makes of the sent text: (value, lists or None)."""
        count = 0
        for result in results:
            count += 1
            value, lists = want(result["sent"])
            told = {name for name in result["warninglists"] if name in self.lists and name not in self.skipped}
            if result["value"] != value or (lists is not None and told != lists):
                self.wrong += 1
                if self.wrong <= 20:
                    print(f"{kind} {result['sent']}: {result['value']} {sorted(told)}, not {value} {sorted(lists or [])}")
        print(f"{kind}: {count} compared", flush=True)

    def store_networks(self):
        names = {str(network) for network in self.near if network.num_addresses > 1}
        self.stored = {ipaddress.ip_network(name) for name in names}
        nodes = [{"name": name, "node_type": "ioc"} for name in sorted(names)]
        for at in range(0, len(nodes), 1000):
            self.service.post("/api/ingest/analyst", {"nodes": nodes[at : at + 1000]})

    def addresses(self, count):
        values = list({str(random_address(self.rng, self.near)) for _ in range(count)})
        want = lambda sent: (written_by(ipaddress.ip_address(sent)), self.listed(sent, "ip"))
        results = list(self.service.look_up(values))
        self.compare("addresses", results, want)
        for result in results:
            address = ipaddress.ip_address(result["value"])
            around = {str(outer) for outer in self.around(ipaddress.ip_network(address))}
            told = {hit["value"] for hit in result["hits"] if hit["match"] == "network"}
            self.expect(f"networks around {address}", told, around)

    def networks(self, count):
        def network():
            address = random_address(self.rng, self.near)
            length = self.rng.randrange(8, address.max_prefixlen)
            return f"{address}/{length}"

        values = list({network() for _ in range(count)})
        results = list(self.service.look_up(values))
        canonical = lambda sent: (str(ipaddress.ip_network(sent, strict=False)), None)
        self.compare("networks", results, canonical)
        for result in results:
            network = ipaddress.ip_network(result["value"])
            around = {str(outer) for outer in self.around(network) if outer != network}
            told = {hit["value"] for hit in result["hits"] if hit["match"] == "network"}
            self.expect(f"networks around {network}", told, around)
            inside = any(inner != network and inner.version == network.version and inner.subnet_of(network)
                         for inner in self.stored) if network.prefixlen <= 24 and self.rng.random() < 0.02 else None
            if inside is not None and not result["more_hits"]:
                told = any(hit["match"] == "inside" for hit in result["hits"])
                self.expect(f"something inside {network}", told, inside)

    def around(self, network):
        wider = (network.supernet(new_prefix=length) for length in range(network.prefixlen + 1))
        return (outer for outer in wider if outer in self.stored)

    def domains(self, count):
        hosts = [one for one in self.lists.values() if one.type in ("hostname", "string")]
        entries = [entry.strip(".") for one in hosts for entry in self.rng.sample(one.list, min(len(one.list), 20))]
        entries = [entry for entry in entries if re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.(com|net|org|de|fr)", entry)]
        values = set()
        while len(values) < count:
            entry = self.rng.choice(entries)
            values.add(self.rng.choice([entry, f"www.{entry}", f"x{entry}", f"no{self.rng.getrandbits(40)}.com"]))
        results = self.service.look_up(sorted(values))
        self.compare("domains", results, lambda sent: (sent, self.listed(sent, "domain")))

    def expect(self, what, told, want):
        if told != want:
            self.wrong += 1
            if self.wrong <= 20:
                print(f"{what}: {told}, not {want}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--values", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        service = Service(arguments.binary, home)
        try:
            judge = Judge(service, random.Random(arguments.seed))
            judge.store_networks()
            judge.addresses(arguments.values // 2)
            judge.networks(arguments.values // 2)
            judge.domains(min(DOMAINS, arguments.values))
        finally:
            service.process.terminate()
            service.process.wait()
    print(f"{judge.wrong} differences")
    sys.exit(judge.wrong > 0)


if __name__ == "__main__":
    main()
