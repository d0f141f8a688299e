"""Ingest's HTTP face on granian's RSGI: one route for events, two for probes. No framework on the hot path."""

import asyncio
import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from dataplane.ingest.credentials import CHALLENGE, key_of
from dataplane.ingest.events import carry_hops, carry_trace, read_events
from dataplane.ingest.gunzip import gunzip
from dataplane.ingest.problems import RefusalError, problem_body
from dataplane.ingest.quotas import Flight, Meter, OverQuotaError
from dataplane.ingest.replica import Replica
from dataplane.ingest.slow import SlowBodies
from dataplane.ingest.turns import Turn
from dataplane.ingest.verdicts import Verdict, status_of
from dataplane.ledger.traceparent import TRACEPARENT
from dataplane.runtime.board import Reading
from dataplane.spec.loops import HOPS_HEADER, LOOP_DETECTED, LOOP_STATUS, MAX_HOPS, hops_of

log = logging.getLogger(__name__)

BODY_TIMEOUT_S: Final = 30.0
EVENTS: Final = "/v1/events"
JSON: Final = ("content-type", "application/json")
PROBLEM: Final = ("content-type", "application/problem+json")
_NO_ATTRIBUTES: Final[dict[str, str]] = {}
_encode = msgspec.json.Encoder().encode
_request_numbers = itertools.count(1)


class BatchAnswer(msgspec.Struct):
    """One verdict per item, in the order of the request. `receipts`: the address of one item's receipt, by its id."""

    accepted: int
    rejected: int
    items: list[Verdict]
    receipts: str


class IngestApp:
    """The RSGI application. `__rsgi__` is called for each request."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._limit = replica.settings.max_body_bytes
        self._receipts = f"{replica.settings.web_url}/receipts/"
        self._slow = SlowBodies(BODY_TIMEOUT_S)
        self.active = 0
        self.answers: Counter[int] = Counter()  # of POSTs of events, by status

    async def sweep(self) -> None:
        """End requests whose body does not come, for ever."""
        await self._slow.sweep()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request; every error is problem+json."""
        self.active += 1
        try:
            if scope.path == EVENTS and scope.method == "POST":
                status = await self._events(scope.headers, protocol)
                self.answers[status] += 1
            else:
                self._probe(scope, protocol)
        except RefusalError as refusal:
            self._refuse(protocol, refusal)
        except Exception:
            log.exception("request failed")
            self._refuse(protocol, RefusalError(500, "internal", "the event was not taken; send it again"))
        finally:
            self.active -= 1

    def readings(self) -> Iterator[Reading]:
        """How requests were answered."""
        for status, count in self.answers.copy().items():
            yield Reading("penstock_ingest_answers_total", count, (str(status),))

    def _probe(self, scope: Any, protocol: Any) -> None:
        match scope.path:
            case "/livez":
                protocol.response_bytes(200, [JSON], b'{"status":"alive"}')
            case "/readyz":
                self._ready(protocol)
            case path if path == EVENTS:
                raise RefusalError(405, "method-not-allowed", f"needs POST, got {scope.method[:10]}")
            case _:
                raise RefusalError(404, "not-found", "events are sent to POST /v1/events")

    def _ready(self, protocol: Any) -> None:
        reason = self._replica.ready
        body = _encode({"status": reason or "ready", "replica": self._replica.name})
        protocol.response_bytes(503 if reason else 200, [JSON], body)

    async def _events(self, headers: Any, protocol: Any) -> int:
        """Take what came and answer; the status. Raises RefusalError."""
        began_us = time.time_ns() // 1_000
        key = key_of(headers.get("authorization"))
        pipe = self._replica.route(key).pipe  # who may not send is told so before anything is read
        hops = hops_of(headers.get(HOPS_HEADER))
        if hops > MAX_HOPS:
            raise RefusalError(
                LOOP_STATUS, LOOP_DETECTED, f"needs at most {MAX_HOPS} earlier deliveries by Penstock, got {hops}"
            )
        with self._replica.meters.flight(pipe.tenant) as flight:
            body = await self._read(headers, protocol, flight, pipe.pipe)
            route = self._replica.route(key)  # a body may take its time: it goes where the key leads now
            ce = _NO_ATTRIBUTES
            if "ce-specversion" in headers:
                ce = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
            events = read_events(headers.get("content-type", ""), body, ce, self._replica.settings.max_event_bytes)
            items = self._replica.within_quota(route.pipe, carry_hops(events.items, hops), events.count)
            traceparent, traces = headers.get(TRACEPARENT) or "", self._replica.traces
            if traces is not None:
                verdicts = await traces.posted(route, items, traceparent, began_us)
            else:
                verdicts = await self._replica.take(route, carry_trace(items, traceparent))
            if events.is_batch:
                return _answer_batch(protocol, verdicts, f"{self._receipts}{{id}}/", flight.meter)
            return self._answer_one(protocol, verdicts[0], flight.meter)

    async def _read(self, headers: Any, protocol: Any, flight: Flight, pipe: str) -> bytes:
        """The body, decompressed. Raises RefusalError; over quota before any of it is read, where that is known."""
        try:
            flight.meter.check(self._replica.meters.clock())
            body = await self._decompressed(headers, await self._body(headers, protocol, flight), flight)
        except OverQuotaError:
            self._replica.refuse(pipe)
            raise
        flight.meter.charge(len(body))
        return body

    def _answer_one(self, protocol: Any, verdict: Verdict, meter: Meter) -> int:
        if verdict.status == 429:
            raise meter.over_rest(1)
        if verdict.status != 202:
            retry_after_s = 2 if verdict.status == 503 else 0
            raise RefusalError(
                verdict.status, verdict.code, verdict.detail, retry_after_s=retry_after_s, pointer=verdict.pointer
            )
        head = [JSON, ("location", f"{self._receipts}{verdict.id}/"), meter.left()]
        protocol.response_bytes(202, head, _encode(verdict))
        return 202

    async def _body(self, headers: Any, protocol: Any, flight: Flight) -> bytes:
        """The body as it was sent. Raises RefusalError if it is too large, one too many, or comes too slowly."""
        declared = headers.get("content-length")
        if declared is not None and declared.isdecimal():
            if _is_over(declared, self._limit):
                raise self._too_large()
            flight.grow(int(declared))
        task = self._slow.begin()
        try:
            return bytes(await (protocol() if declared is not None else self._chunks(protocol, flight)))
        except asyncio.CancelledError:
            refusal = self._slow.broken_off(task)
            if refusal is None:
                raise
            raise refusal from None
        finally:
            self._slow.end(task)

    async def _decompressed(self, headers: Any, body: bytes, flight: Flight) -> bytes:
        """The body as it was before its sender compressed it. Raises RefusalError."""
        encoding = headers.get("content-encoding")
        if encoding is None or (encoding := encoding.strip().lower()) == "identity":
            return body
        if encoding != "gzip":
            raise RefusalError(415, "encoding-invalid", f"needs gzip or none, got {encoding[:40]}")
        plain, turn = bytearray(), Turn()
        for piece in gunzip(body):
            flight.grow(len(piece))
            plain += piece
            if len(plain) > self._limit:
                raise self._too_large()
            if turn.is_over:
                await turn.give_way()
        return bytes(plain)

    async def _chunks(self, protocol: Any, flight: Flight) -> bytes:
        """A body of unstated length: stop at the limit, not after it."""
        body = bytearray()
        async for chunk in protocol:
            flight.grow(len(chunk))
            body += chunk
            if len(body) > self._limit:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> RefusalError:
        return RefusalError(413, "body-too-large", f"needs at most {self._limit} bytes, decompressed")

    def _refuse(self, protocol: Any, refusal: RefusalError) -> None:
        self.answers[refusal.status] += 1
        headers = [PROBLEM, *refusal.headers]
        if refusal.retry_after_s:
            headers.append(("retry-after", str(refusal.retry_after_s)))
        if refusal.status == 405:
            headers.append(("allow", "POST"))
        if refusal.status == 401:
            headers.append(("www-authenticate", CHALLENGE))
        request_id = f"{os.getpid():x}-{next(_request_numbers):x}"
        protocol.response_bytes(refusal.status, headers, problem_body(refusal, request_id))


def _is_over(declared: str, limit: int) -> bool:
    """Whether a Content-Length is over the limit; however long a number it is."""
    return len(declared) > 18 or int(declared) > limit


def _answer_batch(protocol: Any, verdicts: list[Verdict], receipts: str, meter: Meter) -> int:
    statuses = Counter(verdict.status for verdict in verdicts)
    accepted = statuses[202]
    if statuses[429] == len(verdicts):
        raise meter.over_rest(len(verdicts))
    body = _encode(BatchAnswer(accepted, len(verdicts) - accepted, verdicts, receipts))
    headers = [JSON, meter.left()]
    if statuses[429]:  # the last ones of the batch
        refusal = meter.over_rest(statuses[429])
        headers = [JSON, *refusal.headers, ("retry-after", str(refusal.retry_after_s))]
    elif statuses[503]:
        headers.append(("retry-after", "2"))
    status = status_of(verdicts)
    protocol.response_bytes(status, headers, body)
    return status
