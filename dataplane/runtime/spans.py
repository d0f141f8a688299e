"""How spans leave a process: through a queue with a limit, by a thread of its own. Imported only where traces are on.

OpenTelemetry's own batching processor would do, if it counted what it drops and could be closed within a given time.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = logging.getLogger(__name__)

A_REQUEST: Final = 512
CLOSE_S: Final = 2.0  # a lane's end is waited for by others


class Spans(SpanProcessor):
    """Takes ended spans without ever waiting; with a full queue, or a collector that refuses them, they are dropped."""

    def __init__(self, exporter: SpanExporter, *, most: int, every_s: float) -> None:
        """`most` wait in the queue; they are sent `every_s`, or sooner if there are many."""
        self._dropped, self._counting = 0, threading.Lock()
        self._exporter = exporter
        self._queue: deque[ReadableSpan] = deque()  # its ends are safe between threads
        self._most, self._every_s = most, every_s
        self._due = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many spans, so far."""
        return self._dropped

    def on_end(self, span: ReadableSpan) -> None:
        """Queue it."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._closing or len(self._queue) >= self._most:
            self._drop(1)
            return
        self._queue.append(span)
        if len(self._queue) >= A_REQUEST:
            self._due.set()

    def shutdown(self) -> None:
        """Send what is queued, for a while; a collector that hangs is not waited for."""
        self._closing = True
        self._due.set()
        self._thread.join(CLOSE_S)
        self._exporter.shutdown()  # ends its pauses between tries

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 (the interface's)
        """Nothing here asks for it."""
        return not self._queue

    def _run(self) -> None:
        while not self._closing:
            self._due.wait(self._every_s)
            self._due.clear()
            while self._queue:
                self._export([self._queue.popleft() for _ in range(min(A_REQUEST, len(self._queue)))])

    def _export(self, spans: Sequence[ReadableSpan]) -> None:
        """The exporter tries again by itself, and says in the log why it gave up."""
        try:
            well = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception:  # this thread goes on, whatever a batch does to the exporter
            log.exception("spans could not be exported")
            well = False
        if not well:
            self._drop(len(spans))

    def _drop(self, count: int) -> None:
        with self._counting:
            self._dropped += count
