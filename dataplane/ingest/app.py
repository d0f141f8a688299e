"""HTTP interface of ingest: routes for events, webhooks and probes. No framework on the hot path."""

import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from typing import Final

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
from dataplane.ingest.time_slice import TimeSlice
from dataplane.ingest.webhooks import IDEMPOTENCY_HEADER, checked_id, read_webhook, request_of
from dataplane.ledger.traceparent import TRACEPARENT
from dataplane.names import EVENTS_PATH, WEBHOOK_PATH
from dataplane.runtime.telemetry.metrics_registry import MetricReading
from dataplane.runtime.web.errors import ClientGoneError, HttpError
from dataplane.runtime.web.http1.head import RequestHead, ResponseHeaders
from dataplane.runtime.web.http1.request import Request
from dataplane.spec.loops import HOPS_HEADER, LOOP_DETECTED, LOOP_STATUS, MAX_HOPS, hops_of
from dataplane.webhooks import Reply
from dataplane.webhooks.preset import ACCEPTED

log = logging.getLogger(__name__)

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
    """The application of the HTTP server, which calls it for each request."""

    def __init__(self, replica: IngestReplica) -> None:
        self._replica = replica
        self._limit = replica.settings.max_body_bytes
        self._most = replica.settings.max_event_bytes
        self._web_url = replica.settings.web_url
        self._receipts = f"{self._web_url}/receipts/"

    async def __call__(self, request: Request) -> None:
        """Handle one request; every error is problem+json. Raises ClientGoneError."""
        head = request.head
        try:
            if head.path == EVENTS_PATH and head.method == "POST":
                status = await self._events(request)
                self._replica.responses[status] += 1
            elif head.path.startswith(WEBHOOK_PATH):
                status = await self._webhook(request)
                self._replica.responses[status] += 1
            else:
                self._probe(request)
        except EventRejectedError as refusal:
            request.respond(refusal.status, *self._refused(refusal))
        except ClientGoneError:
            raise
        except Exception:
            log.exception("request failed")
            error = EventRejectedError(500, "internal", "the event was not stored; retry later")
            request.respond(error.status, *self._refused(error))

    def error_response(self, error: HttpError) -> tuple[ResponseHeaders, bytes]:
        """Return headers and body of the response to a request that is not valid HTTP."""
        return self._refused(_invalid(error))

    def readings(self) -> Iterator[MetricReading]:
        """Yield the number of responses by status."""
        for status, count in self._replica.responses.copy().items():
            yield MetricReading("penstock_ingest_answers_total", count, (str(status),))

    def _probe(self, request: Request) -> None:
        match request.head.path:
            case "/livez":
                request.respond(200, [JSON], b'{"status":"alive"}')
            case "/readyz":
                self._ready(request)
            case path if path == EVENTS_PATH:
                raise _needs_post(request.head)
            case _:
                raise EventRejectedError(404, "not-found", "send events to POST /v1/events")

    def _ready(self, request: Request) -> None:
        reason = self._replica.ready
        body = _encode({"status": reason or "ready", "replica": self._replica.name})
        request.respond(503 if reason else 200, [JSON], body)

    async def _events(self, request: Request) -> int:
        """Take the events of a request, answer it and return the status. Raises EventRejectedError."""
        began_us, headers = time.time_ns() // 1_000, request.head.headers
        key = key_of(headers.get("authorization"))
        route = self._replica.routes.find(key)  # refuse a sender without access before reading anything
        hops = _checked_hops(headers)
        with self._replica.meters.flight(route.pipe.tenant) as flight:
            route, events = await self._received(request, flight, key, route=route, began_us=began_us)
            results = await self._take(route, events, headers, hops, began_us)
            if events.is_batch:
                return _answer_batch(request, results, f"{self._receipts}{{id}}/", flight.meter)
            return self._answer_one(request, results[0], flight.meter)

    async def _webhook(self, request: Request) -> int:
        """Take a sender's request at the URL of a source, answer it and return the status. Raises EventRejectedError.

        The sender gets the response that it expects, and 2xx only once the event is stored.
        """
        began_us, head = time.time_ns() // 1_000, request.head
        secret = head.path.removeprefix(WEBHOOK_PATH)
        route, webhook = self._replica.webhooks.find(secret)
        if head.method != "POST":
            reply = webhook.preset.options(request_of(head.lines, b"", "")) if head.method == "OPTIONS" else None
            if reply is None:
                raise _needs_post(head)
            return _reply(request, reply)
        hops = _checked_hops(head.headers)
        with self._replica.meters.flight(route.pipe.tenant) as flight:
            body = None
            try:
                body = await self._read(request, flight, route.pipe.pipe)
                route, webhook = self._replica.webhooks.find(secret)  # as in _received
                signed = request_of(head.lines, body, self._address(head))
                found = read_webhook(webhook, signed, began_us // 1_000_000, self._most)
            except EventRejectedError as refusal:
                is_verified = not refusal.code.startswith("signature-")
                self._replica.note_rejected(route, refusal, began_us, body if is_verified else None)
                raise
            if isinstance(found, Reply):
                return _reply(request, found)
            results = await self._take(route, found, head.headers, hops, began_us)
            if found.is_batch:
                return _answer_batch(request, results, f"{self._receipts}{{id}}/", flight.meter)
            if results[0].status != 202 or webhook.preset.reply == ACCEPTED:
                return self._answer_one(request, results[0], flight.meter)
            return _reply(request, webhook.preset.reply)

    def _address(self, head: RequestHead) -> str:
        """Return the URL of a request as its sender was given it, whatever host a proxy has put in its place."""
        query = f"?{head.query}" if head.query else ""
        return f"{self._replica.settings.ingest_url}{head.path}{query}"

    def _take(
        self, route: SourceRoute, events: RequestEvents, headers: Mapping[str, str], hops: int, began_us: int
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
        self, request: Request, flight: InFlightBytes, key: str, *, route: SourceRoute, began_us: int
    ) -> tuple[SourceRoute, RequestEvents]:
        """Return the route of a request and its events. Raises EventRejectedError if it is refused as a whole.

        route: of the key before the body was read
        """
        body, headers = None, request.head.headers
        try:
            body = await self._read(request, flight, route.pipe.pipe)
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

    async def _read(self, request: Request, flight: InFlightBytes, pipe: str) -> bytes:
        """Return the body, decompressed.

        Raises EventRejectedError; if the tenant is known to be over quota, before any of the body is read.
        """
        try:
            flight.meter.check(self._replica.meters.clock())
            body = await self._body(request, flight)
            if (encoding := request.head.headers.get("content-encoding")) is not None:
                body = await self._decompressed(encoding.strip().lower(), body, flight)
        except OverQuotaError:
            self._replica.refuse(pipe)
            raise
        flight.meter.charge(len(body))
        return body

    def _answer_one(self, request: Request, result: EventResult, meter: TenantMeter) -> int:
        if result.status == 429:
            raise meter.over_rest(1)
        if result.status != 202:
            retry_after_s = 2 if result.status == 503 else 0
            raise EventRejectedError(
                result.status, result.code, result.detail, retry_after_s=retry_after_s, pointer=result.pointer
            )
        headers = [JSON, ("location", f"{self._receipts}{result.id}/"), meter.left()]
        request.respond(202, headers, _encode(result))
        return 202

    async def _body(self, request: Request, flight: InFlightBytes) -> bytes:
        """Return the body as sent. Raises EventRejectedError if it is invalid, too large, too slow or over a limit.

        Reading stops as soon as the body exceeds a limit.
        """
        declared = request.head.content_length
        try:
            if declared is not None:
                if declared > self._limit:
                    raise self._too_large()
                flight.grow(declared)
                return await request.body()
            body = bytearray()
            while chunk := await request.chunk():
                flight.grow(len(chunk))
                body += chunk
                if len(body) > self._limit:
                    raise self._too_large()
            return bytes(body)
        except HttpError as error:
            raise _invalid(error) from None

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

    def _too_large(self) -> EventRejectedError:
        return EventRejectedError(413, "body-too-large", f"needs at most {self._limit} bytes, decompressed")

    def _refused(self, refusal: EventRejectedError) -> tuple[ResponseHeaders, bytes]:
        """Count a refusal and return headers and body of its response."""
        self._replica.responses[refusal.status] += 1
        headers = [PROBLEM, *refusal.headers]
        if refusal.retry_after_s:
            headers.append(("retry-after", str(refusal.retry_after_s)))
        if refusal.status == 405:
            headers.append(("allow", "POST"))
        if refusal.status == 401:
            headers.append(("www-authenticate", CHALLENGE))
        request_id = f"{os.getpid():x}-{next(_request_numbers):x}"
        return headers, problem_body(refusal, request_id, self._web_url)


def _reply(request: Request, reply: Reply) -> int:
    headers = [("content-type", reply.media_type)] if reply.media_type else []
    request.respond(reply.status, [*headers, *reply.headers], reply.body)
    return reply.status


def _needs_post(head: RequestHead) -> EventRejectedError:
    return EventRejectedError(405, "method-not-allowed", f"needs POST, got {head.method[:10]}")


def _invalid(error: HttpError) -> EventRejectedError:
    return EventRejectedError(error.status, "body-slow" if error.status == 408 else "http-invalid", error.detail)


def _checked_hops(headers: Mapping[str, str]) -> int:
    """Return how often Penstock has delivered a request. Raises EventRejectedError if that is too often."""
    hops = hops_of(headers.get(HOPS_HEADER))
    if hops > MAX_HOPS:
        raise EventRejectedError(
            LOOP_STATUS, LOOP_DETECTED, f"needs at most {MAX_HOPS} earlier deliveries by Penstock, got {hops}"
        )
    return hops


def _answer_batch(request: Request, results: list[EventResult], receipts: str, meter: TenantMeter) -> int:
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
    request.respond(status, headers, body)
    return status
