"""`python -m loadgen.measured`: post the same event repeatedly, as the parent process orders, and measure the answers.

Reads JSON lines: first a LoadOrder, then SenderCommands. It answers a command with `report` by one line, a
SenderReport, and an order with `count` by one line at its end, a LoadResult. It exits when its input ends, so it never
outlives its parent.
"""

import json
import os
import sys
import time
from typing import Final

import msgspec
from msgspec import Struct

from loadgen.events import ACCEPTED, EventReply
from loadgen.plan import SendPlan
from loadgen.sender import READ_BYTES, Exchange, LoadSender
from loadgen.wire import IngestTarget

EVENT: Final = json.dumps(
    {
        "order": {"id": 123456, "total": "12.50", "lines": [{"sku": "abc-1", "n": 1}, {"sku": "def-2", "n": 2}]},
        "customer": {"name": "Ada Lovelace", "email": "ada@example.com", "since": "2026-01-02T03:04:05Z"},
        "note": "n" * 250,
    }
).encode()
MOST_BEHIND_S: Final = 1.0  # of a load whose rate the parent sets


class LoadOrder(Struct, frozen=True, omit_defaults=True):
    """Order of a load.

    batch: events in a request
    count: events to send in all; None: send at the rates of the commands, nothing before the first one
    rate:  events per second of a load with `count`; None: as fast as the responses allow
    """

    url: str
    key: str
    batch: int = 1
    connections: int = 64
    count: int | None = None
    rate: float | None = None


class SenderCommand(Struct, frozen=True, omit_defaults=True):
    """Command to the sender.

    rate:   events per second from now on, 0 for none; None leaves the rate unchanged
    report: True to write a SenderReport of the time since the last one
    """

    rate: float | None = None
    report: bool = False


class SenderReport(Struct, frozen=True):
    """Counts since the last report: events ACKed, requests refused or without a response, ACK times, CPU seconds."""

    span_s: float
    acked: int
    refused: int
    ack_p95_us: int
    cpu_s: float


class LoadResult(Struct, frozen=True):
    """Result of a load with `count`.

    seconds: time until the last response
    refused: requests without an ACK, by status; 0 for those without a response
    sent:    times at which the request of each message was sent (ns since the epoch), by message id; with a rate, times
             at which the rate required it, so that a load that falls behind does not hide the delay
    """

    seconds: float
    refused: dict[int, int]
    sent: dict[str, int]


class MeasuredLoad:
    """One ordered load, and the counts of its answers."""

    def __init__(self, order: LoadOrder, commands: int) -> None:
        self._order, self._commands, self._unread = order, commands, b""
        ready = EVENT if order.batch == 1 else b"[" + b",".join([EVENT] * order.batch) + b"]"
        target = IngestTarget.of(order.url, order.key)
        request = target.request([ready])
        if order.count is None:
            self._plan = SendPlan(0.0, batch=order.batch, most_behind_s=MOST_BEHIND_S)
        else:
            self._plan = SendPlan(order.rate, count=order.count, batch=order.batch)
        self._sender = LoadSender(
            target,
            self._plan,
            request_of=lambda _post: request,
            on_exchange=self._count,
            connections=order.connections,
        )
        self._answers: list[tuple[int, bytes]] = []
        self._refusals: dict[int, int] = {}
        self._begin(time.monotonic())

    def run(self) -> None:
        """Send until the load or the commands end, the file descriptor that `commands` names."""
        os.set_blocking(self._commands, False)
        self._sender.watch(self._commands, self._read_commands)
        began_s = time.perf_counter()
        self._sender.run()
        if self._order.count is not None:
            _write(LoadResult(time.perf_counter() - began_s, self._refusals, self._sent()))

    def _read_commands(self) -> bool:
        read = os.read(self._commands, READ_BYTES)
        *lines, self._unread = (self._unread + read).split(b"\n")
        now_s = time.monotonic()
        for command in (msgspec.json.decode(line, type=SenderCommand) for line in lines):
            if command.rate is not None:
                self._plan.set_rate(command.rate, now_s)
            if command.report:
                _write(self._report(now_s))
                self._begin(now_s)
        return bool(read)

    def _begin(self, now_s: float) -> None:
        self._since_s, self._cpu_s = now_s, time.process_time()
        self._acked = self._refused = 0
        self._took_us: list[int] = []

    def _report(self, now_s: float) -> SenderReport:
        ordered = sorted(self._took_us)
        p95_us = ordered[len(ordered) * 95 // 100] if ordered else 0
        return SenderReport(
            now_s - self._since_s, self._acked, self._refused, p95_us, time.process_time() - self._cpu_s
        )

    def _count(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is None or response.status != ACCEPTED:
            status = response.status if response else 0
            self._refused += 1
            self._refusals[status] = self._refusals.get(status, 0) + 1
            return
        self._acked += len(exchange.post.numbers)
        if self._order.count is None:
            self._took_us.append(round(exchange.took_s * 1_000_000))
        else:
            self._answers.append((exchange.sent_ns - round(exchange.post.late_s * 1e9), response.body))

    def _sent(self) -> dict[str, int]:
        """Return the times of sending by message id. The bodies are read only now: it would cost CPU meanwhile."""
        decode = msgspec.json.Decoder(EventReply).decode
        replies = ((sent_ns, decode(body)) for sent_ns, body in self._answers)
        return {item.id: sent_ns for sent_ns, reply in replies for item in reply.items or [reply]}


def _write(line: SenderReport | LoadResult) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Read the order, then run it."""
    commands = sys.stdin.fileno()
    order = b""
    while not order.endswith(b"\n"):
        if not (read := os.read(commands, 1)):
            return
        order += read
    MeasuredLoad(msgspec.json.decode(order, type=LoadOrder), commands).run()


if __name__ == "__main__":
    main()
