"""`penstock listen` as a process: at least once, over kill -9, a failing local server and a lost connection.

The API is a stand-in on this machine with the form of `list_events`; the cursor is the number of the next event.
"""

import base64
import hmac
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from localbox.settings import ROOT
from penstock_cli.errors import CliError
from penstock_cli.listening import ListenPosition, position_file, signature

PIPE = "pipe_00000000000000000001"
AT = "2026-11-27T12:00:00Z"
PIPE_OUT = {
    "id": PIPE,
    "name": "orders",
    "tenant": "ten_1",
    "state": "active",
    "state_cause": "",
    "state_reason": "",
    "cell": None,
    "live_revision": 1,
    "newest_revision": 1,
    "admitted": 100,
    "loss_threshold_percent": 0.0,
    "my_role": "viewer",
    "created_at": AT,
}


class StandIn:
    """HTTP server whose answers a function gives: from method, path and body to status and value."""

    def __init__(self, answer: Callable[[str, str, bytes, Any], tuple[int, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, value = answer(self.command, self.path, body, self.headers)
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_GET  # noqa: N815 the name of the base class

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class World:
    """The stand-ins for the API and the developer's server. events: how many there are; fails: requests to refuse."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.events, self.fails, self.is_away = folder, 0, 0, False
        self.received: list[str] = []
        self.headers: list[Any] = []
        self.attributes = {"ce-type": "order"}
        self.api, self.local = StandIn(self._api), StandIn(self._local)

    def _api(self, _method: str, path: str, _body: bytes, _headers: Any) -> tuple[int, Any]:
        parts = urlsplit(path)
        if not parts.path.endswith("/events/"):
            return 200, PIPE_OUT
        if self.is_away:
            return 503, {"detail": "Kafka does not answer.", "code": "unavailable", "errors": []}
        asked = parse_qs(parts.query)
        start = int(asked["after"][0]) if "after" in asked else 0
        end = min(self.events, start + 10)
        found = [self._event(number) for number in range(start, end)]
        return 200, {"results": found, "cursor": str(end), "more": end < self.events, "gap": False}

    def _event(self, number: int) -> dict[str, Any]:
        own = {"id": f"m-{number}", "position": f"1-0-{number}", "source": "shop", "revision": 1, "accepted_at": AT}
        headers = {"content-type": "application/json", **self.attributes}
        return own | {"headers": headers, "body": json.dumps({"n": number}), "is_masked": False}

    def _local(self, _method: str, _path: str, _body: bytes, headers: Any) -> tuple[int, Any]:
        if self.fails:
            self.fails -= 1
            return 500, {}
        self.headers.append(headers)
        self.received.append(headers["webhook-id"])
        return 200, {}

    @contextmanager
    def listening(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])}
        env |= {"PENSTOCK_CONFIG_DIR": str(self.folder), "PENSTOCK_URL": self.api.url, "PENSTOCK_TOKEN": "pst_x"}
        command = [sys.executable, "-m", "penstock_cli", "listen", "--pipe", PIPE, "--to", self.local.url, *words]
        process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=20)

    def wait_for(self, count: int) -> None:
        deadline_s = time.monotonic() + 60
        while len(set(self.received)) < count:
            assert time.monotonic() < deadline_s, f"{len(set(self.received))} of {count} events arrived"
            time.sleep(0.01)

    def close(self) -> None:
        self.api.close()
        self.local.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_no_event_is_missed_over_kill_9(world: World):
    world.events = 15
    with world.listening():
        world.wait_for(7)  # within a page
    world.events = 40
    with world.listening():
        world.wait_for(40)
    assert set(world.received) == {f"m-{number}" for number in range(40)}
    assert len(world.received) <= 40 + 1  # the one that was answered while the process was killed
    assert list(dict.fromkeys(world.received)) == [f"m-{number}" for number in range(40)]  # in order


def test_failing_local_server_and_busy_api_delay_events_and_lose_none(world: World):
    world.events, world.fails = 3, 2
    with world.listening() as process:
        world.wait_for(3)
        world.is_away = True
        time.sleep(1.5)
        world.events, world.is_away = 5, False
        world.wait_for(5)
        process.kill()
        shown = process.stdout.read() if process.stdout else ""
    assert world.received == [f"m-{number}" for number in range(5)]
    assert "500" in shown
    assert "sent again soon" in shown


def test_request_is_that_of_a_delivery_and_is_signed_if_the_secret_is_at_hand(world: World):
    secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
    world.events = 1
    with world.listening("--secret", secret):
        world.wait_for(1)
    headers = world.headers[0]
    assert (headers["content-type"], headers["ce-type"], headers["penstock-source"]) == (
        "application/json",
        "order",
        "shop",
    )
    signed = b"m-0.%b.%b" % (headers["webhook-timestamp"].encode(), b'{"n": 0}')
    expected = base64.b64encode(hmac.digest(b"k" * 32, signed, "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_attribute_outside_ascii_is_percent_encoded_as_in_a_delivery(world: World):
    world.events, world.attributes = 2, {"ce-type": "order", "ce-subject": "Zürich 50% ✓"}
    with world.listening():
        world.wait_for(2)
    assert [headers["ce-subject"] for headers in world.headers] == ["Z%C3%BCrich 50% %E2%9C%93"] * 2
    assert world.headers[0]["ce-type"] == "order"


def test_invalid_secret_is_refused():
    with pytest.raises(CliError):
        signature("secret", "m-1", 0, b"")
    with pytest.raises(CliError):
        signature("whsec_!", "m-1", 0, b"")


def test_position_of_another_target_or_source_is_another_file(tmp_path: Path):
    files = {position_file(tmp_path, "url", "pipe", source, to) for source in ("", "shop") for to in ("a", "b")}
    assert len(files) == 4
    position = ListenPosition(min(files))
    position.deliver("m-1")
    assert ListenPosition(min(files)).delivered == {"m-1"}
    position.move("5")
    assert (ListenPosition(min(files)).cursor, ListenPosition(min(files)).delivered) == ("5", set())
