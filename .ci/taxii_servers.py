"""What .ci/taxii.py and .ci/openapi.py run: medallion, a proxy in front of it, and threat-memory.

Each ends with its `with` block.
"""

import base64
import collections
import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

START_SECONDS = 120
STOP_SECONDS = 40
REQUEST_SECONDS = 120
TAXII = "application/taxii+json;version=2.1"
EMAIL, PASSWORD = "admin@example.com", "a long enough password"


class Failed(Exception):
    """A step that did not hold; the text says what was expected and what came."""


def check(holds, expected, found=None):
    if not holds:
        raise Failed(expected if found is None else f"{expected}; found: {json.dumps(found, default=str)[:1500]}")


class Process:
    """A child process that is ready once a line of its standard error matches `ready`."""

    def __init__(self, command, ready, **options):
        self.lines, self.found = collections.deque(maxlen=20), threading.Event()
        self.match = None
        self.child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options
        )
        self.reader = threading.Thread(target=self._read, args=(re.compile(ready),), daemon=True)
        self.reader.start()
        try:
            self.found.wait(START_SECONDS)
            check(self.match, f"{command[0]} starts; it said:\n{''.join(self.lines)}")
        except BaseException:
            self.kill()
            raise

    def _read(self, ready):
        # Drains the pipe to the end, so that the child never blocks on a full one.
        for line in self.child.stderr:
            self.lines.append(line)
            self.match = self.match or ready.search(line)
            if self.match:
                self.found.set()
        self.found.set()

    def kill(self):
        """Ends the process at once, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def _end(self, how):
        if self.child.poll() is None:
            self.child.send_signal(how)
        try:
            self.child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.reader.join(STOP_SECONDS)
        self.child.stderr.close()


class Medallion:
    """medallion with the configuration and data of the shared folder, on a free port of the loopback interface."""

    def __init__(self, shared):
        self.shared = shared
        self.configuration = shared / "data/taxii/medallion-3.0.0.json"
        user, password = next(iter(json.loads(self.configuration.read_text("utf-8"))["users"].items()))
        self.authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.process, self.port = None, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        command = [sys.executable, "-m", "medallion.scripts.run", "--host", "127.0.0.1", "--port", "0"]
        # The name of its data file is relative to the folder above the shared one.
        self.process = Process(
            [*command, str(self.configuration)], r"Running on http://127\.0\.0\.1:(\d+)", cwd=self.shared.parent
        )
        self.port = int(self.process.match[1])

    def stop(self):
        if self.process:
            self.process.stop()
        self.process, self.port = None, None

    def add(self, collection, objects):
        """Adds objects to a collection (TAXII 2.1 section 5.5)."""
        headers = {"Authorization": self.authorization, "Accept": TAXII, "Content-Type": TAXII}
        service = Client(f"http://127.0.0.1:{self.port}", headers)
        status, answer, _ = service.call("POST", collection, {"objects": objects})
        check(status == 202 and answer["success_count"] == len(objects), "medallion takes the objects", answer)


class Hold:
    """Stops the proxy's request `number` (from 1) before it reaches medallion, or before its answer goes back."""

    def __init__(self, number, place):
        self.number, self.place = number, place
        self.reached, self.released = threading.Event(), threading.Event()

    def at(self, number, place):
        if (number, place) == (self.number, self.place):
            self.reached.set()
            self.released.wait(REQUEST_SECONDS)


class Proxy:
    """A reverse proxy that adds medallion's credentials, which the service never sends."""

    def __init__(self, medallion):
        self.medallion = medallion
        self.requests, self.hold, self.lock = [], None, threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self):
                # A service that was killed does not wait for its answer.
                with contextlib.suppress(ConnectionError):
                    super().handle()

            def do_GET(self):
                proxy.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.let_go()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def hold_at(self, number, place):
        """Holds the request that is `number` requests from now."""
        with self.lock:
            self.hold = Hold(len(self.requests) + number, place)
        return self.hold

    def let_go(self):
        if self.hold:
            self.hold.released.set()
        self.hold = None

    def answer(self, request):
        with self.lock:
            self.requests.append((request.path, {name.lower(): value for name, value in request.headers.items()}))
            number, hold = len(self.requests), self.hold
        if hold:
            hold.at(number, "before")
        status, headers, body = self.forward(request.path, request.headers)
        if hold:
            hold.at(number, "after")
        request.send_response(status)
        for name, value in headers:
            if name.lower() in ("content-type", "location") or name.lower().startswith("x-taxii-"):
                request.send_header(name, value)
        # Must not come back.
        request.send_header("Set-Cookie", "session=1; Path=/")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def forward(self, path, headers):
        # With its Host, redirects lead back here.
        sent = {name: headers.get(name, "") for name in ("Accept", "Host")}
        sent["Authorization"] = self.medallion.authorization
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.medallion.port or 1, timeout=REQUEST_SECONDS)
            with contextlib.closing(connection):
                connection.request("GET", path, headers=sent)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
        except OSError:
            return 502, [("Content-Type", "text/plain")], b"medallion is out of reach"


class Client:
    """A JSON client."""

    def __init__(self, base, headers=None):
        self.base, self.headers = base, headers or {}
        # The proxies of this machine's environment are not meant for loopback addresses.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, method, path, body=None):
        """Status, body and headers; the body as JSON if it is JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(self.base + path, data=data, method=method, headers=headers)
        try:
            answer = self.opener.open(request, timeout=REQUEST_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read()
        try:
            return answer.status, json.loads(text), answer.headers
        except ValueError:
            return answer.status, text.decode(errors="replace"), answer.headers

    def ask(self, method, path, body=None, status=200):
        """The body, provided the status is the expected one."""
        got, answer, _ = self.call(method, path, body)
        check(got == status, f"{method} {path} {json.dumps(body)[:300]} is answered with {status}", [got, answer])
        return answer


class Service:
    """threat-memory with a durable store, which stays through restarts."""

    def __init__(self, binary, data, environment):
        self.command = [str(binary), "hosted", "--bind", "127.0.0.1:0", "--storage", f"surrealkv://{data}/store"]
        own = ("THREAT_MEMORY_", "LOCAL_", "PLATFORM_", "TAXII_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(own)} | {
            "THREAT_MEMORY_SERVER__ADMIN_BIND": "127.0.0.1:0",
            "THREAT_MEMORY_ADMIN_EMAIL": EMAIL,
            "THREAT_MEMORY_ADMIN_PASSWORD": PASSWORD,
            "THREAT_MEMORY_LOCAL_DEVELOPMENT": "true",
        }
        for tier in ("PILOT", "TEAM", "ENTERPRISE"):
            self.environment[f"THREAT_MEMORY_LIMITS__TIERS__{tier}"] = "1000000"
        self.environment |= environment
        self.data, self.process, self.admin = data, None, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        if self.process:
            self.process.stop()
            if kind:
                print("The last lines of the service:\n" + "".join(self.process.lines), file=sys.stderr)

    def start(self):
        self.process = Process(self.command, r"API on (http://\S+), metrics on", env=self.environment, cwd=self.data)
        self.admin = self.sign_in(EMAIL)

    def sign_in(self, email):
        anonymous = Client(self.process.match[1])
        signed_in = anonymous.ask("POST", "/api/auth/login", {"email": email, "password": PASSWORD})
        return Client(anonymous.base, {"Authorization": f"Bearer {signed_in['access_token']}"})

    def kill(self):
        self.process.kill()
        self.process = None

    def ask(self, method, path, body=None, status=200):
        return self.admin.ask(method, path, body, status)

    def eventually(self, read, holds, expected, seconds=STOP_SECONDS):
        """Reads until the value holds."""
        until = time.monotonic() + seconds
        while not holds(value := read()):
            check(time.monotonic() < until, f"within {seconds} s {expected}", value)
            time.sleep(0.05)
        return value
