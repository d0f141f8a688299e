"""`python -m localbox.demo`: the endless demo, and the finite run, whose exit code is its result."""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from loadgen.wire import IngestTarget
from localbox.box import Box
from localbox.catalogue import DEMO
from localbox.commands import up
from localbox.demo import ledger
from localbox.demo.compare import DeliveryCounts, DemoResult, differences, read_books, result_of
from localbox.demo.logs import read_received, read_sent
from localbox.demo.payloads import read_payloads
from localbox.demo.request import DemoRequest, demo_request_from
from localbox.demo.sender import DemoSender
from localbox.errors import BoxError
from localbox.settings import BoxSettings, command
from localbox.state import last_json_line
from localbox.supervisor import living

DESTINATION: Final = "receiver"
LIVE_LIMIT_S: Final = 90.0
SETTLE_LIMIT_S: Final = 180.0
KAFKA_CHOICES: Final = ("PENSTOCK_KAFKA_TLS", "PENSTOCK_KAFKA_BROKERS")  # of `make demo`


def run_endless(settings: BoxSettings) -> int:
    """Run the whole box with receiver and sender in the foreground, until Ctrl-C. Raises BoxError."""
    request = demo_request_from(os.environ)
    read_payloads(request.events)  # fails early if the file cannot be read
    if living(settings):
        raise BoxError(
            f"a box is already running at {settings.var}: `{command('down')}` first, then `{command('demo')}`"
        )
    return up(settings, extra=list(DEMO))


@contextmanager
def live_box(request: DemoRequest, env: Mapping[str, str] | None = None) -> Iterator[tuple[Box, dict[str, Any]]]:
    """Run a separate box with a live pipe; yield it with the output of the step that made the pipe and its keys.

    Raises: BoxError, if the pipe is not live after LIVE_LIMIT_S.
    """
    extra = ["receiver", "demo-pipe"]
    Box(request.var, extra=extra).stop()  # remains of an interrupted run
    shutil.rmtree(request.var, ignore_errors=True)
    kafka = {name: os.environ[name] for name in KAFKA_CHOICES if name in os.environ}
    box = Box(request.var, extra=extra, env=kafka | dict(env or {}))
    began = time.monotonic()
    say("starting a separate box ...")
    with box:
        os.environ.update(box.env)
        ledger.start_django()
        pipe = last_json_line(box.settings.logs / "demo-pipe.log")
        if not ledger.wait_live(pipe["pipe"], limit_s=LIVE_LIMIT_S):
            raise BoxError(f"the pipe is not live after {LIVE_LIMIT_S:.0f} s: see {box.settings.logs}")
        say(f"the pipe is live after {time.monotonic() - began:.1f} s; sending {request.count} events")
        yield box, pipe


def run_once(request: DemoRequest) -> int:
    """Run a separate box: start, send, wait until every message is settled, compare, stop, print one JSON line."""
    payloads = read_payloads(request.events)
    with live_box(request) as (box, pipe):
        demo = request.var / "demo"
        target = IngestTarget.of(box.env["PENSTOCK_INGEST_URL"], pipe["key"])
        sender = DemoSender(
            target, payloads, log=demo / "sent.log", rate=request.rate, count=request.count, batch=request.batch
        )
        accepted = sender.run()
        say(f"{accepted} ACKed; waiting until every unit is settled")
        accounts = ledger.wait_settled(pipe["pipe"], expected=accepted, limit_s=SETTLE_LIMIT_S)
        books = read_books(read_sent(demo / "sent.log"), read_received(demo / "received.log"))
        result = result_of(books, accounts)
        wrong = ledger.timing_problems(pipe["pipe"], result.delivered)
    wrong += differences(books, accounts, destination=DESTINATION)
    return _verdict(result, wrong, books, request)


def _verdict(result: DemoResult, wrong: list[str], books: DeliveryCounts, request: DemoRequest) -> int:
    for text in wrong:
        say(text)
    if len(books.acked) != request.count:
        wrong.append("")
        say(f"{request.count} events expected, {len(books.acked)} ACKed")
    print(msgspec.json.encode(result).decode(), flush=True)
    return 1 if wrong or result.lost else 0


def say(text: str) -> None:
    """Print a progress message to stderr; only the figures go to stdout."""
    print(f"demo: {text}", file=sys.stderr, flush=True)
