"""A client that does not read its responses is disconnected, so that it cannot keep connections of the server."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.request import urlopen

import psutil
import pytest

from dataplane.runtime.web.asgi import Receive, Scope, Send, answer
from localbox.settings import ROOT
from localbox.testing import free_ports
from tests.support.patience import Patience

UNREAD_MS: Final = 1_000
CHUNK_BYTES: Final = 16 * 1024
MOST_HELD_BYTES: Final = 1_500_000  # without a limit of the kernel's buffer it is 3 MB and more
BODY: Final = b"x" * 256 * 1024
SERVER: Final = """
import asyncio, sys
from dataplane.runtime.web import asgi_server, sockets
from tests.unit.runtime.test_unread_responses import LargeResponses, UNREAD_MS
sockets.UNREAD_MS = UNREAD_MS
asyncio.run(asgi_server.serve(LargeResponses(), "127.0.0.1", int(sys.argv[1]), drain_s=1))
"""


class LargeResponses:
    """Application whose responses exceed the buffers of a connection; `/endless` has no end."""

    active = 0
    sent_bytes = 0  # of endless responses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 of the interface
        """Answer one request."""
        if scope["path"] == "/sent":
            await answer(send, 200, [], b"%d" % self.sent_bytes)
        elif scope["path"] == "/endless":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": BODY[:CHUNK_BYTES], "more_body": True})
                self.sent_bytes += CHUNK_BYTES
                await asyncio.sleep(0)
        else:
            await answer(send, 200, [], BODY)


class LargeResponseServer(NamedTuple):
    """Process that serves LargeResponses."""

    port: int
    process: psutil.Process

    def connects(self, client: socket.socket) -> bool:
        """Return True if the process still has this client's connection."""
        peers = [one.raddr.port for one in self.process.net_connections("tcp") if one.raddr]
        return client.getsockname()[1] in peers


@pytest.fixture
def server() -> Iterator[LargeResponseServer]:
    port = int(free_ports()["PENSTOCK_TABLES_PORT"])
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])}
    with subprocess.Popen([sys.executable, "-c", SERVER, str(port)], cwd=ROOT, env=env) as process:
        patience = Patience(30)
        while not is_listening(port):
            assert process.poll() is None
            assert not patience.is_over
            time.sleep(0.05)
        yield LargeResponseServer(port, psutil.Process(process.pid))
        process.kill()


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_connection_ends_while_its_responses_are_not_read(server: LargeResponseServer):
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 50)
        time.sleep(UNREAD_MS / 4_000)
        assert server.connects(client)
        patience = Patience(UNREAD_MS / 1_000 + 20)
        while server.connects(client):
            assert not patience.is_over, "the connection is still open"
            time.sleep(0.1)


def test_connection_whose_responses_are_read_stays(server: LargeResponseServer):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client, client.makefile("rb") as answers:
        for _ in range(3):
            client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            while (line := answers.readline()) != b"\r\n":
                assert line
            assert answers.read(len(BODY)) == BODY
            time.sleep(UNREAD_MS / 1_000)


def test_little_of_an_endless_response_is_held_for_a_client_that_reads_nothing(server: LargeResponseServer):
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(UNREAD_MS / 2_000)
        with urlopen(f"http://127.0.0.1:{server.port}/sent") as response:
            assert 0 < int(response.read()) < MOST_HELD_BYTES
