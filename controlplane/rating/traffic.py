"""The two ends of a rating, each a process of its own: a sender at a rate, and a receiver on loopback."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from urllib.parse import urlsplit

import msgspec
import psutil

from controlplane.rating.sender import Order, Target, Told


class Ends:
    """Both, as they run. What is read of either comes in lines of JSON."""

    def __init__(self, sender: "subprocess.Popen[bytes]", receiver: "subprocess.Popen[bytes]", port: int) -> None:
        self._sender = sender
        self._receiver = psutil.Process(receiver.pid)
        self.url = f"http://127.0.0.1:{port}/"

    def aim(self, ingest_url: str, key: str, batch: int) -> None:
        """Tell the sender where to post. Once."""
        parts = urlsplit(ingest_url)
        self._say(Target(parts.hostname or "127.0.0.1", parts.port or 80, key, batch))

    def send(self, rate: float) -> None:
        """Events a second from now on."""
        self._say(Order(rate=rate))

    def told(self) -> Told:
        """What came of it since this was asked last. Raises EOFError if the sender is gone."""
        self._say(Order(tell=True))
        line = _pipe(self._sender.stdout).readline()
        if not line:
            raise EOFError("the sender ended")
        return msgspec.json.decode(line, type=Told)

    def receiver_cpu_s(self) -> float:
        """CPU that the receiver has used."""
        times = self._receiver.cpu_times()
        return times.user + times.system

    def _say(self, word: Target | Order) -> None:
        pipe = _pipe(self._sender.stdin)
        pipe.write(msgspec.json.encode(word) + b"\n")
        pipe.flush()


@contextmanager
def both_ends(port: int) -> Iterator[Ends]:
    """Start both; the receiver on `port` if that is free. They end with this, and with this process however it dies."""
    receiver = _start("receiver", str(port))
    sender = _start("sender")
    try:
        yield Ends(sender, receiver, int(_pipe(receiver.stdout).readline()))
    finally:
        for process in (sender, receiver):
            _pipe(process.stdin).close()
            process.terminate()
            process.wait()
            _pipe(process.stdout).close()


def _start(name: str, *words: str) -> "subprocess.Popen[bytes]":
    """In a session of its own: Ctrl-C is for us, who end it in order."""
    command = [sys.executable, "-m", f"controlplane.rating.{name}", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process was started without this pipe")
    return pipe
