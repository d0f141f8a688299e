"""The two processes of a capacity test: a sender at a set rate, and a receiver on loopback."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import msgspec
import psutil

from loadgen.measured import LoadOrder, SenderCommand, SenderReport


class TrafficProcesses:
    """Running sender and receiver. The sender exchanges lines of JSON with this process."""

    def __init__(self, sender: "subprocess.Popen[bytes]", receiver: "subprocess.Popen[bytes]", port: int) -> None:
        self._sender = sender
        self._receiver = psutil.Process(receiver.pid)
        self.url = f"http://127.0.0.1:{port}/"

    def aim(self, ingest_url: str, key: str, batch: int) -> None:
        """Set the target of the sender. Call it once.

        key: API key; batch: events in a request
        """
        self._write(LoadOrder(ingest_url, key, batch))

    def send(self, rate: float) -> None:
        """Set the rate, in events per second."""
        self._write(SenderCommand(rate=rate))

    def reported(self) -> SenderReport:
        """Return the counts since the last call. Raises EOFError if the sender has exited."""
        self._write(SenderCommand(report=True))
        line = _pipe(self._sender.stdout).readline()
        if not line:
            raise EOFError("the sender has exited")
        return msgspec.json.decode(line, type=SenderReport)

    def receiver_cpu_s(self) -> float:
        """Return the CPU seconds that the receiver has used."""
        times = self._receiver.cpu_times()
        return times.user + times.system

    def _write(self, message: LoadOrder | SenderCommand) -> None:
        pipe = _pipe(self._sender.stdin)
        pipe.write(msgspec.json.encode(message) + b"\n")
        pipe.flush()


@contextmanager
def both_ends(port: int) -> Iterator[TrafficProcesses]:
    """Start sender and receiver, the receiver on `port` if it is free; stop both at the end.

    Both also exit when this process does, for any reason, because their input ends.
    """
    receiver = _start("receiver", "--port", str(port), "--attached")
    sender = _start("measured")
    try:
        yield TrafficProcesses(sender, receiver, int(_pipe(receiver.stdout).readline()))
    finally:
        for process in (sender, receiver):
            _pipe(process.stdin).close()
            process.terminate()
            process.wait()
            _pipe(process.stdout).close()


def _start(name: str, *args: str) -> "subprocess.Popen[bytes]":
    """Start a process in its own session, so that Ctrl-C reaches only this process, which stops it in order."""
    command = [sys.executable, "-m", f"loadgen.{name}", *args]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # manage.py adds platform/ to its own
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process was started without this pipe")
    return pipe
