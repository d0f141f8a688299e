"""Send events in batches: one result for each event, retries with backoff, and the same id for each repeat of an event.

One thread sends one batch at a time, so that events stay in order. The queue is bounded: a full one refuses events.
"""

import http.client
import json
import random
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from typing import Any, ClassVar

from .codecs import EventPart
from .time_uuid import TimeUuid

MAX_RETRY_AFTER_S = 300.0  # a longer Retry-After is cut to this


@dataclass(frozen=True, slots=True)
class AcceptedEvent:
    """An event that Penstock has stored. `event_id`: ours; `message_id`, `position`: Penstock's."""

    event_id: str
    message_id: str
    position: str


class EventRefusedError(Exception):
    """Penstock refuses the event; sending it again does not help. `pointer`: JSON pointer into the event."""

    def __init__(self, event_id: str, status: int, code: str, detail: str, pointer: str = "") -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.event_id = event_id
        self.status = status
        self.code = code
        self.detail = detail
        self.pointer = pointer


class EventNotStoredError(Exception):
    """No attempt had a final response. The event may be stored; send it again with the same id."""

    def __init__(self, event_id: str, reason: str) -> None:
        super().__init__(reason)
        self.event_id = event_id


class QueueFullError(Exception):
    """The queue has no room. Wait for earlier results, then send again."""


class TypedEvent(EventPart):
    """Base of generated classes whose values are sent as events."""

    __slots__ = ()
    EVENT_TYPE: ClassVar[str]
    ID_ATTRIBUTE: ClassVar[str]


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Limits of a sender. A wait before a repeat is random, up to twice the last one, within the limits of backoff."""

    max_batch_events: int = 500
    max_batch_bytes: int = 512 * 1024
    max_wait_s: float = 0.05
    max_queue_events: int = 10_000
    attempts: int = 8
    first_backoff_s: float = 0.5
    max_backoff_s: float = 30.0
    timeout_s: float = 30.0


@dataclass(slots=True)
class _QueuedEvent:
    id: str
    text: bytes
    result: "Future[AcceptedEvent]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Answer to a request. `status`: 0 if there was none; `items`: results of the events, if it has them."""

    status: int
    body: Any
    retry_after_s: float = 0.0

    def of(self, place: int, count: int) -> dict[str, Any]:
        items = self.body.get("items") if isinstance(self.body, dict) else None
        if isinstance(items, list) and len(items) == count:
            return dict(items[place])
        return {"status": self.status, **{name: one for name, one in _dict(self.body).items() if name != "status"}}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


class BatchSender:
    """Sends events of generated classes. `source`: names your system, as the attribute `source` of CloudEvents."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        source: str,
        settings: SenderSettings | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`url`: address of ingest; `key`: API key of a source; `headers`: additional headers of each request."""
        self._url = url.rstrip("/") + "/v1/events"
        self._source = source
        self._settings = settings or SenderSettings()
        self._headers = {
            **(headers or {}),
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/cloudevents-batch+json",
        }
        self._queue: deque[_QueuedEvent] = deque()
        self._unsettled = 0
        self._is_closing = self._is_stopped = False
        self._flushing = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="penstock-sender", daemon=True)
        self._thread.start()

    def __enter__(self) -> "BatchSender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, event: TypedEvent, *, event_id: str = "") -> "Future[AcceptedEvent]":
        """Queue an event. The future has its result, EventRefusedError or EventNotStoredError.

        event_id: id of the event; by default its TimeUuid, or a new one if it has none. Raises QueueFullError.
        """
        id_ = event_id or (str(getattr(event, event.ID_ATTRIBUTE)) if event.ID_ATTRIBUTE else str(TimeUuid.now()))
        envelope = {
            "specversion": "1.0",
            "id": id_,
            "source": self._source,
            "type": event.EVENT_TYPE,
            "time": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z",
            "data": event.to_dict(),
        }
        text = json.dumps(envelope, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        queued = _QueuedEvent(id_, text)
        queued.result.set_running_or_notify_cancel()  # it can no longer be cancelled
        with self._changed:
            if self._is_closing:
                raise QueueFullError("the sender is closed")
            if self._unsettled >= self._settings.max_queue_events:
                raise QueueFullError(f"{self._unsettled} events wait for their results")
            self._queue.append(queued)
            self._unsettled += 1
            self._changed.notify_all()
        return queued.result

    def flush(self, timeout_s: float | None = None) -> bool:
        """Send what is queued now, and wait until each event has its result; return False if the time is over."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._unsettled, timeout_s)
            finally:
                self._flushing -= 1

    def close(self, timeout_s: float = 60.0) -> None:
        """Send what is queued, then end. Events without a result by then get EventNotStoredError."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
            left = list(self._queue)
            self._queue.clear()
        self._settle(left, lambda one: EventNotStoredError(one.id, "the sender was closed"))

    def _run(self) -> None:
        while batch := self._next_batch():
            self._deliver(batch)

    def _next_batch(self) -> list[_QueuedEvent]:
        """Wait for a batch: a full one, or what is queued after the longest wait. [] when the sender ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closing)
            if not self._is_closing and not self._flushing:
                self._changed.wait_for(self._is_due, self._settings.max_wait_s)
            batch: list[_QueuedEvent] = []
            size = 0
            while self._queue and len(batch) < self._settings.max_batch_events:
                size += len(self._queue[0].text) + 1
                if batch and size > self._settings.max_batch_bytes:
                    break
                batch.append(self._queue.popleft())
            return batch

    def _is_due(self) -> bool:
        is_full = len(self._queue) >= self._settings.max_batch_events
        return is_full or self._is_closing or bool(self._flushing)

    def _deliver(self, batch: list[_QueuedEvent]) -> None:
        """Send a batch until each of its events has a result; only those without one are repeated."""
        reason, backoff_s = "", self._settings.first_backoff_s
        for attempt in range(1, self._settings.attempts + 1):
            answer = self._post(b"[" + b",".join(one.text for one in batch) + b"]")
            results = [answer.of(place, len(batch)) for place in range(len(batch))]
            again = []
            for one, result in zip(batch, results, strict=True):
                if _is_retried(int(result.get("status", 0))):
                    again.append(one)
                    reason = f"{result.get('status') or 'no response'}: {result.get('detail', '')}"
                else:
                    self._settle_one(one, result)
            batch = again
            if not batch or attempt == self._settings.attempts or self._pause(answer.retry_after_s, backoff_s):
                break
            backoff_s = min(2 * backoff_s, self._settings.max_backoff_s)
        self._settle(batch, lambda one: EventNotStoredError(one.id, reason))

    def _pause(self, retry_after_s: float, backoff_s: float) -> bool:
        """Wait before a repeat; return True if the sender was closed meanwhile."""
        wait_s = max(min(retry_after_s, MAX_RETRY_AFTER_S), backoff_s * random.uniform(0.5, 1.0))  # noqa: S311 jitter
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopped, wait_s)

    def _post(self, body: bytes) -> _Answer:
        request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310 the owner's URL
        try:
            with urllib.request.urlopen(request, timeout=self._settings.timeout_s) as response:  # noqa: S310
                return _answer_of(response.status, response.read(), response.headers)
        except urllib.error.HTTPError as error:
            with error:
                try:
                    return _answer_of(error.code, error.read(), error.headers)
                except OSError:
                    return _Answer(error.code, None)
        except (OSError, http.client.HTTPException) as error:
            return _Answer(0, {"detail": f"{type(error).__name__}: {error}"})

    def _settle_one(self, one: _QueuedEvent, result: Mapping[str, Any]) -> None:
        status = int(result.get("status", 0))
        if status == 202:
            accepted = AcceptedEvent(one.id, str(result.get("id", "")), str(result.get("position", "")))
            one.result.set_result(accepted)
            self._done()
            return
        code, detail, pointer = (str(result.get(name, "")) for name in ("code", "detail", "pointer"))
        self._settle([one], lambda _: EventRefusedError(one.id, status, code, detail, pointer))

    def _settle(self, events: Iterable[_QueuedEvent], error: Callable[[_QueuedEvent], Exception]) -> None:
        for one in events:
            one.result.set_exception(error(one))
            self._done()

    def _done(self) -> None:
        with self._changed:
            self._unsettled -= 1
            self._changed.notify_all()


def _is_retried(status: int) -> bool:
    return status in (0, 408, 425, 429) or status >= 500


def _answer_of(status: int, body: bytes, headers: Message) -> _Answer:
    retry_after = headers.get("Retry-After") or ""
    try:
        decoded = json.loads(body)
    except ValueError:
        decoded = None
    if decoded is None and 200 <= status < 300:
        return _Answer(0, {"detail": "the response is not JSON"})  # of a proxy, or cut off
    return _Answer(status, decoded, float(retry_after) if retry_after.isdecimal() else 0.0)
