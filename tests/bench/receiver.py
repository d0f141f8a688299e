"""A receiver that costs little: answers 204 and notes each webhook-id with the time, in memory, then in a file."""

import argparse
import asyncio
import time
from pathlib import Path

import uvloop

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Receiver(asyncio.Protocol):
    """One connection. `log` is shared: lines of "<id> <ns since the epoch>"."""

    def __init__(self, log: list[bytes]) -> None:
        self._log = log
        self._read = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection came."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._read += data
        while True:
            end = self._read.find(b"\r\n\r\n")
            at = self._read.find(b"\r\nContent-Length: ", 0, end + 2)
            if end < 0 or at < 0:
                return
            whole = end + 4 + int(self._read[at + 18 : self._read.find(b"\r\n", at + 2)])
            if len(self._read) < whole:
                return
            name = self._read.find(b"webhook-id: ")
            self._log.append(b"%b %d" % (self._read[name + 12 : name + 48], time.time_ns()))
            self._read = self._read[whole:]
            assert self._transport is not None
            self._transport.write(ANSWER)


async def serve(port: int, out: Path) -> None:
    """Serve until killed, writing the log ten times a second."""
    log: list[bytes] = []
    await asyncio.get_running_loop().create_server(lambda: Receiver(log), "127.0.0.1", port, backlog=1024)
    with out.open("wb", buffering=0) as file:
        while True:
            await asyncio.sleep(0.1)
            if log:
                lines = b"\n".join(log) + b"\n"
                log.clear()
                file.write(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(arguments.port, arguments.out))
