"""A server process of a test on its own port, and raw connections to it."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.support.patience import until


class Served:
    """Program that listens on `port`; it answers GET `ready` once it is up."""

    def __init__(self, *words: str, log: Path, env: Mapping[str, str], ready: str, port: int = 0) -> None:
        self.port = port or free_ports(1)[0]
        command = [sys.executable, *(word.replace("{port}", str(self.port)) for word in words)]
        path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "DJANGO_SETTINGS_MODULE": "config.settings"}
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, env={**os.environ, **path, **env}, stdout=out, stderr=out)

        def answers() -> bool:
            assert self.process.poll() is None, log.read_text()
            with contextlib.suppress(OSError):
                return self.get(ready)[0] < 500
            return False

        until(answers, f"{words} answers", 30)

    def get(self, path: str, timeout_s: float = 10.0, **headers: str) -> tuple[int, bytes]:
        """Send a GET; return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def connect(self, *sent: bytes) -> socket.socket:
        """Open a connection and send these bytes."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.sendall(b"".join(sent))
        return connection

    def rss_bytes(self) -> int:
        """Return the memory of the process and its children."""
        family = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        return sum(one.memory_info().rss for one in family)

    def close(self) -> None:
        """Stop the process."""
        self.process.terminate()
        self.process.wait(30)


@contextlib.contextmanager
def serving(*words: str, log: Path, env: Mapping[str, str], ready: str) -> Iterator[Served]:
    """Run the program during the block."""
    served = Served(*words, log=log, env=env, ready=ready)
    try:
        yield served
    finally:
        served.close()
