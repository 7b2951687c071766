#!/usr/bin/env python3
"""Passes the output of `cargo test` on and tells which tests took long.

    cargo test | test_times.py [--most SECONDS] [--threads N]

`cargo test` does not print how long a test took. It starts tests in the order of their names, the next one whenever one of
its N threads (RUST_TEST_THREADS) is free, and prints a line when one ends. So the k-th test began when the (k - N)-th one
ended.

Prints the twenty tests that took longest. Exit code 1 with the names of those that took more than SECONDS.
"""

import argparse
import os
import re
import sys
import time

BEGUN = re.compile(r"^running (\d+) tests?$")
ENDED = re.compile(r"^test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<result>ok|FAILED|ignored)")
SHOWN = 20


class Binary:
    """The tests of one test binary, from its line `running N tests`."""

    def __init__(self, expected):
        self.expected, self.begun, self.ends = expected, time.monotonic(), {}

    def end(self, name):
        self.ends[name] = time.monotonic()

    def times(self, threads):
        """(seconds, name) of each test; nothing of a binary that was cut off, whose order is not known."""
        if len(self.ends) != self.expected:
            return
        ended = sorted(self.ends.values())
        for place, name in enumerate(sorted(self.ends)):
            begun = self.begun if place < threads else ended[place - threads]
            yield self.ends[name] - begun, name


def read(lines):
    """Passes lines on and returns the test binaries that they tell of. Documentation tests run on other terms."""
    binaries, documentation = [], False
    for line in lines:
        sys.stdout.write(line)
        sys.stdout.flush()
        documentation = documentation or line.strip().startswith("Doc-tests")
        if begun := BEGUN.match(line):
            binaries.append(Binary(int(begun[1])))
        elif binaries and not documentation and (ended := ENDED.match(line)):
            binaries[-1].end(ended["name"])
    return binaries


def main():
    parser = argparse.ArgumentParser(description="Tell which tests took long.")
    parser.add_argument("--most", type=float, default=10.0, help="seconds that a test may take")
    parser.add_argument("--threads", type=int, default=int(os.environ.get("RUST_TEST_THREADS") or os.cpu_count()))
    arguments = parser.parse_args()
    binaries = read(sys.stdin)
    times = sorted((time for binary in binaries for time in binary.times(arguments.threads)), reverse=True)
    print(f"\nThe tests that took longest, of {len(times)}:")
    for seconds, name in times[:SHOWN]:
        print(f"{seconds:6.1f} s  {name}")
    slow = [f"{name} ({seconds:.0f} s)" for seconds, name in times if seconds > arguments.most]
    if slow:
        print(f"took over {arguments.most:.0f} s, and belong into .ci/long: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
