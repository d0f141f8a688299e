"""Table queries as an ASGI application: authorise, read, answer. Every refusal is problem+json."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from dataplane.runtime.telemetry.metrics_registry import MetricReading, MetricsRegistry
from dataplane.runtime.web.asgi import PLAIN_TEXT, AsgiHeaders, Receive, Scope, Send, answer
from dataplane.table_queries.change_stream import ChangeStream
from dataplane.table_queries.open_streams import OpenStreams
from dataplane.table_queries.reader import TableReader
from dataplane.table_queries.requests import TITLES, ChangeQuery, PrefixQuery, QueryRefusedError, parse_query
from dataplane.tables.query_protocol import QueryProblem

JSON: Final = (b"content-type", b"application/json")
PROBLEM: Final = (b"content-type", b"application/problem+json")
# Each is exported as a metric before its first response.
STATUSES: Final = (200, 400, 401, 403, 404, 405, 429, 500, 503)
BUCKETS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)
_NO_STORE: Final = (b"cache-control", b"no-store")
_encode = msgspec.json.Encoder().encode
log = logging.getLogger(__name__)


class TableQueries:
    """Answers queries. A read has no await, so requests are read one after the other.

    A row takes microseconds, a page milliseconds. One page is read at a time, and the requests for rows that arrived
    meanwhile are answered before the next one: clients that request many pages do not delay rows by more than a page.

    The server bounds the connections (sockets.MOST_CONNECTIONS), each with one request at a time. An answer is
    handed to the server at once, so a client that does not read it holds at most MOST_BYTES, for
    sockets.UNREAD_MS, and delays nobody.

    Streams of changes take turns with the pages (OpenStreams).
    """

    def __init__(self, reader: TableReader, registry: MetricsRegistry) -> None:
        self._reader = reader
        self._took_s = registry.histogram("penstock_table_queries_seconds", BUCKETS_S)
        self.answers = Counter(dict.fromkeys(STATUSES, 0))
        self.active = 0
        self._page_turn = asyncio.Lock()
        self.streams = OpenStreams(reader, self._page_turn)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        self.active += 1
        try:
            if scope["path"] in ("/livez", "/readyz"):
                await self._probe(scope["path"], send)
                return
            began_s = time.perf_counter()
            answered = await self._answer(scope)
            if isinstance(answered, ChangeStream):
                self.answers[200] += 1
                await self.streams.run(answered, receive, send)
                return
            status, headers, body = answered
            self.answers[status] += 1
            self._took_s.observe(time.perf_counter() - began_s)
            await answer(send, status, headers, body)
        finally:
            self.active -= 1

    def stop(self) -> None:
        """End the streams, since the server stops: their clients continue at another host, or after the restart."""
        self.streams.stop()

    def readings(self) -> Iterator[MetricReading]:
        """Yield the number of responses by status, and the lag of this host's copy once it is known."""
        for status, count in self.answers.copy().items():
            yield MetricReading("penstock_table_queries_answers_total", count, (str(status),))
        yield MetricReading("penstock_table_queries_streams", self.streams.count)
        for reason, count in self.streams.ended.copy().items():
            yield MetricReading("penstock_table_queries_streams_ended_total", count, (reason,))
        yield MetricReading("penstock_table_queries_changes_total", self.streams.sent)
        lag_s = self._reader.lag_s
        if lag_s is not None:
            yield MetricReading("penstock_table_queries_lag_seconds", lag_s)

    async def _probe(self, path: str, send: Send) -> None:
        """Answer a probe. The service is ready once its host has had the whole topic, also if Kafka is away later."""
        if path == "/readyz" and self._reader.lag_s is None:
            await answer(send, 503, [PLAIN_TEXT], b"the look-up topic has not been read to its end yet\n")
            return
        await answer(send, 200, [PLAIN_TEXT], b"ok\n")

    async def _answer(self, scope: Scope) -> tuple[int, AsgiHeaders, bytes] | ChangeStream:
        try:
            query = parse_query(scope["raw_path"], scope["query_string"], _header(scope, b"last-event-id"))
            if scope["method"] != "GET":
                raise QueryRefusedError(405, "method-not-allowed", "needs GET")
            if isinstance(query, ChangeQuery):
                access = self._reader.access(query.table, _header(scope, b"authorization"))
                return self.streams.open(query, access)
            if not isinstance(query, PrefixQuery):
                return 200, [JSON, _NO_STORE], self._reader.read(query, _header(scope, b"authorization"))
            async with self._page_turn:
                await asyncio.sleep(0)  # requests that have arrived are begun now: rows are read, pages wait
                return 200, [JSON, _NO_STORE], self._reader.read(query, _header(scope, b"authorization"))
        except QueryRefusedError as refusal:
            return refusal.status, _headers_of(refusal), _problem(refusal)
        except Exception:
            log.exception("query failed")
            return 500, [PROBLEM], _problem(QueryRefusedError(500, "internal", "retry later"))


def _header(scope: Scope, wanted: bytes) -> bytes:
    """Return a request's header; b"" if it has none."""
    return next((bytes(value) for name, value in scope["headers"] if name == wanted), b"")


def _headers_of(refusal: QueryRefusedError) -> AsgiHeaders:
    headers = [PROBLEM, _NO_STORE]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status == 405:
        headers.append((b"allow", b"GET"))
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    return headers


def _problem(refusal: QueryRefusedError) -> bytes:
    return _encode(QueryProblem(refusal.status, refusal.code, TITLES[refusal.code], refusal.detail))
