"""HTTP interface of ingest on granian's RSGI: routes for events, webhooks and probes. No framework on the hot path."""

import asyncio
import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from dataplane.ingest.credentials import CHALLENGE, key_of
from dataplane.ingest.event_results import EventResult, status_of
from dataplane.ingest.event_types import read_container
from dataplane.ingest.events import RequestEvents, carry_headers, carry_trace, read_events
from dataplane.ingest.gunzip import gunzip
from dataplane.ingest.problems import EventRejectedError, problem_body
from dataplane.ingest.quotas import InFlightBytes, OverQuotaError, TenantMeter
from dataplane.ingest.replica import IngestReplica
from dataplane.ingest.route import SourceRoute
from dataplane.ingest.slow_bodies import SlowBodyMonitor
from dataplane.ingest.time_slice import TimeSlice
from dataplane.ingest.webhooks import IDEMPOTENCY_HEADER, checked_id, read_webhook, request_of
from dataplane.ledger.traceparent import TRACEPARENT
from dataplane.names import EVENTS_PATH, WEBHOOK_PATH
from dataplane.runtime.telemetry.metrics_registry import MetricReading
from dataplane.spec.loops import HOPS_HEADER, LOOP_DETECTED, LOOP_STATUS, MAX_HOPS, hops_of
from dataplane.webhooks import Reply
from dataplane.webhooks.preset import ACCEPTED

log = logging.getLogger(__name__)

BODY_TIMEOUT_S: Final = 30.0
JSON: Final = ("content-type", "application/json")
PROBLEM: Final = ("content-type", "application/problem+json")
_NO_ATTRIBUTES: Final[dict[str, str]] = {}
_encode = msgspec.json.Encoder().encode
_request_numbers = itertools.count(1)


class BatchResult(msgspec.Struct):
    """One result per item, in the order of the request. `receipts`: URL template of an item's receipt, by its id."""

    accepted: int
    rejected: int
    items: list[EventResult]
    receipts: str


class IngestApp:
    """The RSGI application. `__rsgi__` is called for each request."""

    def __init__(self, replica: IngestReplica) -> None:
        self._replica = replica
        self._limit = replica.settings.max_body_bytes
        self._most = replica.settings.max_event_bytes
        self._web_url = replica.settings.web_url
        self._receipts = f"{self._web_url}/receipts/"
        self._slow = SlowBodyMonitor(BODY_TIMEOUT_S)
        self.active = 0
        self.answers: Counter[int] = Counter()  # by status: events, webhooks, and refusals of other requests

    async def sweep(self) -> None:
        """Cancel requests whose body does not arrive in time. Runs until cancelled."""
        await self._slow.sweep()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Handle one request; every error is problem+json."""
        self.active += 1
        try:
            if scope.path == EVENTS_PATH and scope.method == "POST":
                status = await self._events(scope.headers, protocol)
                self.answers[status] += 1
            elif scope.path.startswith(WEBHOOK_PATH):
                status = await self._webhook(scope, protocol)
                self.answers[status] += 1
            else:
                self._probe(scope, protocol)
        except EventRejectedError as refusal:
            self._refuse(protocol, refusal)
        except Exception:
            log.exception("request failed")
            self._refuse(protocol, EventRejectedError(500, "internal", "the event was not stored; retry later"))
        finally:
            self.active -= 1

    def readings(self) -> Iterator[MetricReading]:
        """Yield the number of responses by status."""
        for status, count in self.answers.copy().items():
            yield MetricReading("penstock_ingest_answers_total", count, (str(status),))

    def _probe(self, scope: Any, protocol: Any) -> None:
        match scope.path:
            case "/livez":
                protocol.response_bytes(200, [JSON], b'{"status":"alive"}')
            case "/readyz":
                self._ready(protocol)
            case path if path == EVENTS_PATH:
                raise EventRejectedError(405, "method-not-allowed", f"needs POST, got {scope.method[:10]}")
            case _:
                raise EventRejectedError(404, "not-found", "send events to POST /v1/events")

    def _ready(self, protocol: Any) -> None:
        reason = self._replica.ready
        body = _encode({"status": reason or "ready", "replica": self._replica.name})
        protocol.response_bytes(503 if reason else 200, [JSON], body)

    async def _events(self, headers: Any, protocol: Any) -> int:
        """Take the events of a request, answer it and return the status. Raises EventRejectedError."""
        began_us = time.time_ns() // 1_000
        key = key_of(headers.get("authorization"))
        route = self._replica.routes.find(key)  # refuse a sender without access before reading anything
        hops = _checked_hops(headers)
        with self._replica.meters.flight(route.pipe.tenant) as flight:
            route, events = await self._received(headers, protocol, flight, key, route=route, began_us=began_us)
            results = await self._take(route, events, headers, hops, began_us)
            if events.is_batch:
                return _answer_batch(protocol, results, f"{self._receipts}{{id}}/", flight.meter)
            return self._answer_one(protocol, results[0], flight.meter)

    async def _webhook(self, scope: Any, protocol: Any) -> int:
        """Take a sender's request at the URL of a source, answer it and return the status. Raises EventRejectedError.

        The sender gets the response that it expects, and 2xx only once the event is stored.
        """
        began_us, headers = time.time_ns() // 1_000, scope.headers
        secret = scope.path.removeprefix(WEBHOOK_PATH)
        route, webhook = self._replica.webhooks.find(secret)
        if scope.method != "POST":
            reply = webhook.preset.options(request_of(headers, b"", "")) if scope.method == "OPTIONS" else None
            if reply is None:
                raise EventRejectedError(405, "method-not-allowed", f"needs POST, got {scope.method[:10]}")
            return _reply(protocol, reply)
        hops = _checked_hops(headers)
        with self._replica.meters.flight(route.pipe.tenant) as flight:
            body = None
            try:
                body = await self._read(headers, protocol, flight, route.pipe.pipe)
                route, webhook = self._replica.webhooks.find(secret)  # as in _received
                request = request_of(headers, body, self._address(scope))
                found = read_webhook(webhook, request, began_us // 1_000_000, self._most)
            except EventRejectedError as refusal:
                is_verified = not refusal.code.startswith("signature-")
                self._replica.note_rejected(route, refusal, began_us, body if is_verified else None)
                raise
            if isinstance(found, Reply):
                return _reply(protocol, found)
            results = await self._take(route, found, headers, hops, began_us)
            if found.is_batch:
                return _answer_batch(protocol, results, f"{self._receipts}{{id}}/", flight.meter)
            if results[0].status != 202 or webhook.preset.reply == ACCEPTED:
                return self._answer_one(protocol, results[0], flight.meter)
            return _reply(protocol, webhook.preset.reply)

    def _address(self, scope: Any) -> str:
        """Return the URL of a request as its sender was given it, whatever host a proxy has put in its place."""
        query = f"?{scope.query_string}" if scope.query_string else ""
        return f"{self._replica.settings.ingest_url}{scope.path}{query}"

    def _take(
        self, route: SourceRoute, events: RequestEvents, headers: Any, hops: int, began_us: int
    ) -> Awaitable[list[EventResult]]:
        """Store the events of a request with what its headers say, within the tenant's quota."""
        type_header = route.gate.record_header if route.gate is not None else ""
        items = carry_headers(events.items, hops, headers.get(type_header) or "" if type_header else "")
        items = self._replica.within_quota(route.pipe, items, events.count)
        traceparent, traces = headers.get(TRACEPARENT) or "", self._replica.traces
        if traces is not None:
            return traces.posted(route, items, traceparent, began_us)
        return self._replica.take(route, carry_trace(items, traceparent))

    async def _received(
        self, headers: Any, protocol: Any, flight: InFlightBytes, key: str, *, route: SourceRoute, began_us: int
    ) -> tuple[SourceRoute, RequestEvents]:
        """Return the route of a request and its events. Raises EventRejectedError if it is refused as a whole.

        route: of the key before the body was read
        """
        body = None
        try:
            body = await self._read(headers, protocol, flight, route.pipe.pipe)
            route = self._replica.routes.find(key)  # reading the body takes time: use the route that the key has now
            ce = _NO_ATTRIBUTES
            if "ce-specversion" in headers:
                ce = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
            gate = route.gate
            in_container = None if gate is None else partial(read_container, gate, now_us=began_us)
            events = read_events(headers.get("content-type", ""), body, ce, self._most, in_container)
            if not events.is_batch and (delivery := headers.get(IDEMPOTENCY_HEADER)):
                id_ = checked_id(delivery.strip('"'), IDEMPOTENCY_HEADER)
                events.items = iter(carry_headers(events.items, 0, "", id_))
            return route, events
        except EventRejectedError as refusal:
            self._replica.note_rejected(route, refusal, began_us, body)
            raise

    async def _read(self, headers: Any, protocol: Any, flight: InFlightBytes, pipe: str) -> bytes:
        """Return the body, decompressed.

        Raises EventRejectedError; if the tenant is known to be over quota, before any of the body is read.
        """
        try:
            flight.meter.check(self._replica.meters.clock())
            body = await self._body(headers, protocol, flight)
            if (encoding := headers.get("content-encoding")) is not None:
                body = await self._decompressed(encoding.strip().lower(), body, flight)
        except OverQuotaError:
            self._replica.refuse(pipe)
            raise
        flight.meter.charge(len(body))
        return body

    def _answer_one(self, protocol: Any, result: EventResult, meter: TenantMeter) -> int:
        if result.status == 429:
            raise meter.over_rest(1)
        if result.status != 202:
            retry_after_s = 2 if result.status == 503 else 0
            raise EventRejectedError(
                result.status, result.code, result.detail, retry_after_s=retry_after_s, pointer=result.pointer
            )
        head = [JSON, ("location", f"{self._receipts}{result.id}/"), meter.left()]
        protocol.response_bytes(202, head, _encode(result))
        return 202

    async def _body(self, headers: Any, protocol: Any, flight: InFlightBytes) -> bytes:
        """Return the body as sent. Raises EventRejectedError if it is too large, too slow or over a limit in flight."""
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

    async def _decompressed(self, encoding: str, body: bytes, flight: InFlightBytes) -> bytes:
        """Return the body without its content encoding. Raises EventRejectedError."""
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise EventRejectedError(415, "encoding-invalid", f"needs gzip or none, got {encoding[:40]}")
        plain, time_slice = bytearray(), TimeSlice()
        for piece in gunzip(body):
            flight.grow(len(piece))
            plain += piece
            if len(plain) > self._limit:
                raise self._too_large()
            if time_slice.is_over:
                await time_slice.yield_to_loop()
        return bytes(plain)

    async def _chunks(self, protocol: Any, flight: InFlightBytes) -> bytes:
        """Return a body of unstated length; reading stops as soon as it exceeds the limit."""
        body = bytearray()
        async for chunk in protocol:
            flight.grow(len(chunk))
            body += chunk
            if len(body) > self._limit:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> EventRejectedError:
        return EventRejectedError(413, "body-too-large", f"needs at most {self._limit} bytes, decompressed")

    def _refuse(self, protocol: Any, refusal: EventRejectedError) -> None:
        self.answers[refusal.status] += 1
        headers = [PROBLEM, *refusal.headers]
        if refusal.retry_after_s:
            headers.append(("retry-after", str(refusal.retry_after_s)))
        if refusal.status == 405:
            headers.append(("allow", "POST"))
        if refusal.status == 401:
            headers.append(("www-authenticate", CHALLENGE))
        request_id = f"{os.getpid():x}-{next(_request_numbers):x}"
        protocol.response_bytes(refusal.status, headers, problem_body(refusal, request_id, self._web_url))


def _reply(protocol: Any, reply: Reply) -> int:
    headers = [("content-type", reply.media_type)] if reply.media_type else []
    protocol.response_bytes(reply.status, [*headers, *reply.headers], reply.body)
    return reply.status


def _checked_hops(headers: Any) -> int:
    """Return how often Penstock has delivered a request. Raises EventRejectedError if that is too often."""
    hops = hops_of(headers.get(HOPS_HEADER))
    if hops > MAX_HOPS:
        raise EventRejectedError(
            LOOP_STATUS, LOOP_DETECTED, f"needs at most {MAX_HOPS} earlier deliveries by Penstock, got {hops}"
        )
    return hops


def _is_over(declared: str, limit: int) -> bool:
    """Return whether a Content-Length exceeds the limit; the number may have any length."""
    return len(declared) > 18 or int(declared) > limit


def _answer_batch(protocol: Any, results: list[EventResult], receipts: str, meter: TenantMeter) -> int:
    statuses = Counter(result.status for result in results)
    accepted = statuses[202]
    if results and statuses[429] == len(results):
        raise meter.over_rest(len(results))
    body = _encode(BatchResult(accepted, len(results) - accepted, results, receipts))
    headers = [JSON, meter.left()]
    if statuses[429]:  # the last events of the batch
        refusal = meter.over_rest(statuses[429])
        headers = [JSON, *refusal.headers, ("retry-after", str(refusal.retry_after_s))]
    elif statuses[503]:
        headers.append(("retry-after", "2"))
    status = status_of(results)
    protocol.response_bytes(status, headers, body)
    return status
