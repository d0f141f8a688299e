"""Sends events until each is ACKed, and reports the outcome of each attempt of each event.

A POST without a response (reset, timeout) or with 5xx may have been stored nevertheless, so its outcome is reported
next to that of the attempt that was ACKed.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from loadgen.plan import Post, SendPlan
from loadgen.sender import Exchange, LoadSender
from loadgen.wire import IngestTarget, header

ACCEPTED: Final = 202
UNKNOWN: Final = 0  # no response: connection reset or timeout
RETRY_S: Final = 0.25  # after no response
REFUSED_RETRY_S: Final = 1.0  # after a response that was not 202


class LoadRefusedError(RuntimeError):
    """Raised when ingest keeps refusing an event, or answers another number of events than it got."""


class Payload(NamedTuple):
    """One event's bytes and their SHA-256."""

    body: bytes
    sha256: str

    @classmethod
    def of(cls, body: bytes) -> "Payload":
        """Make the payload of a body."""
        return cls(body, hashlib.sha256(body).hexdigest())


class SendOutcome(NamedTuple):
    """Outcome of one attempt of an event. `position` and `message_id` are "" without an ACK."""

    number: int  # of the event in the load
    sent_us: int
    answered_us: int
    status: int
    message_id: str
    position: str
    bucket: int
    sha256: str
    retry_after: str


class EventReply(Struct):
    """Response of ingest for one event; for a batch, `items` has one for each."""

    status: int = 0
    id: str = ""
    position: str = ""
    bucket: int = 0
    items: list["EventReply"] = []


_decode = msgspec.json.Decoder(EventReply).decode


class EventSender:
    """Sender of events that reports an outcome for each.

    event_of: returns the event of a number, always the same for the same number
    retries: whether an event without an ACK is sent again
    refused_limit_s: how long 4xx may last before the sender fails; replicas need a moment to learn a new key
    """

    def __init__(
        self,
        target: IngestTarget,
        plan: SendPlan,
        *,
        event_of: Callable[[int], Payload],
        on_outcome: Callable[[SendOutcome], None],
        each_sweep: Callable[[], None] = lambda: None,
        connections: int = 64,
        retries: bool = True,
        refused_limit_s: float | None = None,
        refused_retry_s: float = REFUSED_RETRY_S,
    ) -> None:
        self._target, self._plan = target, plan
        self._event_of, self._on_outcome = event_of, on_outcome
        self._retries, self._refused_limit_s, self._refused_retry_s = retries, refused_limit_s, refused_retry_s
        self._sender = LoadSender(
            target,
            plan,
            request_of=self._request,
            on_exchange=self._conclude,
            each_sweep=each_sweep,
            connections=connections,
        )

    def run(self) -> None:
        """Send all events of the plan. Raises LoadRefusedError if ingest keeps refusing."""
        self._sender.run()

    def _request(self, post: Post) -> bytes:
        return self._target.request([self._event_of(number).body for number in post.numbers])

    def _conclude(self, exchange: Exchange) -> None:
        """Report the outcome of every event of the POST, and have those without an ACK sent again."""
        sent_us, answered_us, unacked = exchange.sent_ns // 1000, time.time_ns() // 1000, []
        response = exchange.response
        status, replies, retry_after = UNKNOWN, [], ""
        if response is not None:
            status, replies = response.status, _replies(response.status, response.body, len(exchange.post.numbers))
            retry_after = header(response.head, response.head, b"retry-after").decode("latin-1")
        for at, number in enumerate(exchange.post.numbers):
            reply = replies[at] if replies else EventReply(status)
            found = (reply.status, reply.id, reply.position, reply.bucket, self._event_of(number).sha256, retry_after)
            self._on_outcome(SendOutcome(number, sent_us, answered_us, *found))
            if reply.status != ACCEPTED:
                unacked.append(number)
        if unacked and self._retries:
            self._send_again(Post(unacked, exchange.post.since_s), status)

    def _send_again(self, post: Post, status: int) -> None:
        now_s, limit_s = time.monotonic(), self._refused_limit_s
        is_refused = 400 <= status < 500 and status != 429
        if limit_s is not None and is_refused and now_s - post.since_s > limit_s:
            raise LoadRefusedError(f"ingest keeps returning {status} for event {post.numbers[0]}: see its log")
        self._plan.again(post, now_s + (self._refused_retry_s if status else RETRY_S))


def _replies(status: int, body: bytes, count: int) -> list[EventReply]:
    """Return one reply per event; none if the whole POST was refused. Raises LoadRefusedError for another number."""
    if status not in (ACCEPTED, 207):
        return []
    reply = _decode(body)
    items = reply.items or [reply]
    for item in items:
        item.status = item.status or status
    if len(items) != count:
        raise LoadRefusedError(f"ingest returned {len(items)} results for {count} events")
    return items
