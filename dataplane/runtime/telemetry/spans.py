"""Span processor that exports from a bounded queue in a thread of its own. Imported only if tracing is on.

OpenTelemetry's batching processor neither counts dropped spans nor closes within a given time.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = logging.getLogger(__name__)

MAX_EXPORT_BATCH: Final = 512
CLOSE_S: Final = 2.0  # other lanes wait for a lane's end


class BoundedSpanProcessor(SpanProcessor):
    """Queue ended spans without blocking; drop them if the queue is full or the collector refuses them."""

    def __init__(self, exporter: SpanExporter, *, most: int, every_s: float) -> None:
        """Queue up to `most` spans; export them every `every_s` seconds, or as soon as MAX_EXPORT_BATCH are queued."""
        self._dropped, self._counting = 0, threading.Lock()
        self._exporter = exporter
        self._queue: deque[ReadableSpan] = deque()  # append and popleft are thread-safe
        self._most, self._every_s = most, every_s
        self._due = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Number of spans dropped so far."""
        return self._dropped

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a sampled span, or drop it if the queue is full."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._closing or len(self._queue) >= self._most:
            self._drop(1)
            return
        self._queue.append(span)
        if len(self._queue) >= MAX_EXPORT_BATCH:
            self._due.set()

    def shutdown(self) -> None:
        """Export queued spans for up to CLOSE_S; do not wait longer for a collector that hangs."""
        self._closing = True
        self._due.set()
        self._thread.join(CLOSE_S)
        self._exporter.shutdown()  # ends its pauses between retries

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 (the interface's)
        """Return True if the queue is empty. Part of the interface, not called by Penstock."""
        return not self._queue

    def _run(self) -> None:
        while not self._closing:
            self._due.wait(self._every_s)
            self._due.clear()
            while self._queue:
                self._export([self._queue.popleft() for _ in range(min(MAX_EXPORT_BATCH, len(self._queue)))])

    def _export(self, spans: Sequence[ReadableSpan]) -> None:
        """Export spans. The exporter retries automatically and logs why it gave up."""
        try:
            is_exported = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception:  # the thread must survive any error of the exporter
            log.exception("could not export spans")
            is_exported = False
        if not is_exported:
            self._drop(len(spans))

    def _drop(self, count: int) -> None:
        with self._counting:
            self._dropped += count
