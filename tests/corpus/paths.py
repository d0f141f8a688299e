"""The three code paths of the corpus: a request through ingest, an event through a dry run, a record through lanes.

All code is the product's own, except Kafka's producer and consumers, and sockets.
"""

import asyncio
import base64
import random
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest
from cryptography.fernet import Fernet

from dataplane.ingest import replica as replica_module
from dataplane.ingest.acks import AckTracker
from dataplane.ingest.app import IngestApp
from dataplane.ingest.feeds import usable_headers
from dataplane.ingest.replica import IngestReplica
from dataplane.names import EVENTS_PATH, WEBHOOK_PATH
from dataplane.plan import compile_plan
from dataplane.plan.dryrun import SampleEvent, dry_run
from dataplane.runtime.settings import settings_from
from dataplane.runtime.web.http1.connection import Http1Connection, ServerState
from dataplane.spec import parse_pipe_spec
from dataplane.spec.keys import RANDOM_BYTES, URL_PREFIX, key_digest, key_text
from dataplane.tables.records import (
    ApiKeyRecord,
    CellRecord,
    DestinationRecord,
    PipeRecord,
    PlanRecord,
    TopicRecord,
    WebhookRecord,
)
from dataplane.tables.sealed import bind, webhook_place
from tests.corpus.inputs import EVENT_BYTES, REQUEST_BYTES, Input, inputs
from tests.support import process_lane, transmitting
from tests.support.bounded import Case, Share
from tests.support.memory_lane import MemoryMessage
from tests.support.memory_replica import MemoryProducer

KEY: Final = key_text(b"k" * RANDOM_BYTES)
FERNET_KEY: Final = base64.urlsafe_b64encode(b"k" * 32).decode()
SALT: Final = Fernet(FERNET_KEY).encrypt(base64.b64encode(b"salt")).decode()  # required for hashing
PRESETS: Final = ("none", "stripe", "twilio")
SECRET: Final = "shared-with-the-sender"
READ_BYTES: Final = 64 * 1024  # of a connection at once
NOW_US: Final = 1_790_000_000_000_000
USUAL: Final[dict[str, Any]] = {
    "sources": {"shop": {"event_time": "at", "key": "who", "id": "id"}},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example/"}},
    "normalize": [{"op": "peek", "name": "come", "share": 1.0}, {"op": "keep", "fields": ["id", "l", "v.*.a"]}],
    "routes": {"rules": [{"when": "size(body) > 1000 && body.l == body.l", "to": ["crm"]}], "otherwise": ["crm"]},
}


def cases(path: str, one_of: str) -> Iterator[Case]:
    """Yield one of so many inputs on the path, chosen at random; each input if `one_of` is "1"."""
    for one in inputs():
        if not (one.is_request and path != "ingest") and not random.randrange(int(one_of)):
            yield f"{path}, {one.name}", partial(_PATHS[path], one)


def _spec(one: Input) -> dict[str, Any]:
    return {**USUAL, **({"normalize": []} if one.spec else {}), **one.spec} | (
        {} if "destinations" not in one.spec else {"routes": None}
    )


# -- ingest --------------------------------------------------------------------------------------------------------


class _Stored(MemoryProducer):
    """Producer that discards records whose header names are valid."""

    def keep(self, _body: bytes, headers: Any, /) -> None:
        assert all(name.isascii() and "\n" not in name and "\r" not in name for name, _ in headers)


class _Client(asyncio.Transport):
    """Transport of a connection to ingest: it keeps the response."""

    def __init__(self) -> None:
        super().__init__()
        self.received = b""
        self.is_paused = self._is_closed = False

    @property
    def status(self) -> int:
        """Return the status of the response; 0: there was none."""
        return int(self.received[9:12] or 0)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.received += data

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def write_eof(self) -> None:
        """Do nothing: the response says when it ends."""

    def close(self) -> None:
        self._is_closed = True

    def is_closing(self) -> bool:
        return self._is_closed


def _ingest(one: Input) -> Callable[[], Share]:
    """Return a run of the request that measures its longest uninterrupted share of the event loop."""
    body = one.body()
    headers = {
        "host": "ingest.example",
        "authorization": f"Bearer {KEY}",
        "content-type": one.media_type,
        "content-length": str(len(body)),
        **one.headers,
    }
    path = f"{WEBHOOK_PATH}{_url_part(one.preset)}" if one.preset else EVENTS_PATH
    lines = [
        f"POST {path}{'?' if one.query else ''}{one.query} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    sent = "\r\n".join([*lines, "", ""]).encode() + body
    replica = _replica()

    async def run() -> float:
        replica._loop = asyncio.get_running_loop()
        replica._acks = AckTracker(replica._producer, replica._recorder.on_done)
        state, client = ServerState(IngestApp(replica), 1), _Client()
        connection = Http1Connection(state)
        connection.connection_made(client)
        pieces = [sent[at : at + READ_BYTES] for at in range(0, len(sent), READ_BYTES)]
        longest_s, began = 0.0, time.thread_time()
        while not (client.received or client.is_closing()):
            if pieces and not client.is_paused:
                connection.data_received(pieces.pop(0))
            elif not pieces and not connection._is_eof and not connection.eof_received():
                client.close()  # as asyncio does: the declared length was not sent
            await asyncio.sleep(0)
            now = time.thread_time()
            longest_s, began = max(longest_s, now - began), now
        connection.connection_lost(None)
        read = {202, 400, 413, 415} | ({401} if "authorization" in one.headers or one.preset else set())
        read |= {417, 431, 501, 505} | ({0} if headers["content-length"] != str(len(body)) else set())
        assert client.status in read, f"{client.status}: a server error, or refused before it was read"
        return longest_s

    return lambda: Share(asyncio.run(run()))


def _url_part(preset: str) -> str:
    """Return the secret part of the URL of the source named like the preset."""
    return key_text(preset.encode().ljust(RANDOM_BYTES, b"-")[:RANDOM_BYTES], URL_PREFIX)


def _replica() -> IngestReplica:
    folder = mkdtemp()
    pytest.MonkeyPatch().setattr(replica_module, "ingest_producer", lambda *_: _Stored())
    replica = IngestReplica(
        settings_from({"PENSTOCK_KAFKA": "127.0.0.1:1", "PENSTOCK_VAR": folder, "PENSTOCK_FERNET_KEYS": FERNET_KEY}),
        "ingest-1",
    )
    for record in (
        CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")}),
        PlanRecord("p", 1, parse_pipe_spec({**USUAL, "sources": USUAL["sources"] | {name: {} for name in PRESETS}})),
        PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)]),
        ApiKeyRecord(key_digest(KEY), 1, "p", "shop"),
    ):
        replica.table.apply(record)
    for preset in PRESETS:
        sealed = Fernet(FERNET_KEY).encrypt(bind(SECRET, webhook_place("p", preset)).encode()).decode()
        replica.table.apply(WebhookRecord("p", preset, 1, preset, [sealed]))
        replica.table.apply(ApiKeyRecord(key_digest(_url_part(preset)), 1, "p", preset))
    most = (replica.settings.max_event_bytes, replica.settings.max_body_bytes)
    assert most == (EVENT_BYTES, REQUEST_BYTES), "the corpus needs inputs as large as ingest accepts"
    return replica


# -- dry run -------------------------------------------------------------------------------------------------------


def _dry_run(one: Input) -> Callable[[], object]:
    spec = parse_pipe_spec(_spec(one))
    plan, sample = compile_plan(spec, b"salt"), SampleEvent(one.body(), "shop", "msg_1", NOW_US, NOW_US)
    return lambda: dry_run(spec, plan, sample, time.perf_counter_ns)


# -- lanes ---------------------------------------------------------------------------------------------------------


def _lanes(one: Input) -> Callable[[], Share]:
    """Return a run through a process lane and a transmit lane; its result is the longest pass of a lane.

    The message after the input's is processed as well.
    """
    body, spec = one.body(), parse_pipe_spec(_spec(one))
    lane = process_lane.opened(Path(mkdtemp()), PlanRecord("p", 1, spec), fernet_key=FERNET_KEY, salt=SALT)
    transmitting.without_kafka(pytest.MonkeyPatch())
    records = [
        DestinationRecord("p", name, 1, "active", to, [transmitting.TOKEN]) for name, to in spec.destinations.items()
    ]
    sent, work, sender = transmitting.opened(Path(mkdtemp()), *records)
    usable, _ = usable_headers(one.record)
    assert all(name.isascii() and "\n" not in name and "\r" not in name for name, _ in usable)
    more = [*usable[1:], *((name, value) for name, value in one.record if name.startswith("ce_"))][:200]

    def pass_on() -> None:
        for number, record in enumerate(process_lane.egress(lane)):
            sent.take(MemoryMessage(0, number + 1, record["value"], record["headers"], record.get("key")))

    def run() -> Share:
        passes = Passes()
        passes.time(lambda: lane.take(process_lane.arrived(1, body, more=more), process_lane.arrived(2, b'{"v":"x"}')))
        lane.store()
        assert lane.unsettled() == 0
        pass_on()
        while sent.unsettled():
            passes.time(work.poll)
            for _, headers, _, _ in sender.requests:
                assert all(line.isascii() and "\n" not in line and "\r" not in line for line in headers)
            sender.requests.clear()
            sender.answer(200)
            sent.store()
        return Share(passes.longest_s)

    return run


class Passes:
    """Longest CPU time of a pass so far."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    def time(self, work: Callable[[], object]) -> None:
        """Run and time one pass."""
        began = time.thread_time()
        work()
        self.longest_s = max(self.longest_s, time.thread_time() - began)


_PATHS: Final[Mapping[str, Callable[[Input], Callable[[], object]]]] = {
    "ingest": _ingest,
    "dry run": _dry_run,
    "lanes": _lanes,
}
