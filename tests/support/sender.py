"""A customer: sends events at a steady rate, records all outcomes, and resends events without an ACK."""

import json
import threading
from collections.abc import Sequence
from typing import NamedTuple

from loadgen.events import ACCEPTED, UNKNOWN, EventSender, Payload, SendOutcome
from loadgen.plan import SendPlan
from loadgen.wire import IngestTarget

CONNECTIONS = 8


class Acked(NamedTuple):
    """Content of a 202, and the digest of the sent body."""

    id: str
    position: str
    bucket: int
    digest: str


class Sender:
    """`with Sender(port, key, rate): ...` sends until the block ends and every event has been ACKed.

    field:  name under which each event has its number
    events: to be sent in turn, instead of numbered ones
    count:  number of events to send at most
    """

    def __init__(
        self,
        port: int,
        key: str,
        rate: float,
        *,
        field: str = "n",
        events: Sequence[Payload] = (),
        count: int | None = None,
    ) -> None:
        self.acked: list[Acked] = []
        self.unknown: list[str] = []  # digests of bodies whose attempt had no response, or a refusal
        self.refusals: list[tuple[int, str | None]] = []  # status and Retry-After of every response but a 202
        self._field, self._events, self._plan = field, events, SendPlan(rate, count=count)
        sender = EventSender(
            IngestTarget("127.0.0.1", port, key),
            self._plan,
            event_of=self._event,
            on_outcome=self._note,
            connections=CONNECTIONS,
            refused_retry_s=0.2,
        )
        self._thread = threading.Thread(target=sender.run, name="sender")

    def __enter__(self) -> "Sender":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._plan.end()
        self._thread.join(90)
        assert not self._thread.is_alive(), "a sender does not end"

    @property
    def positions(self) -> set[str]:
        """Return the positions of the ACKed events."""
        return {acked.position for acked in self.acked}

    def _event(self, number: int) -> Payload:
        if self._events:
            return self._events[number % len(self._events)]
        return Payload.of(json.dumps({self._field: number, "note": "x" * 200}).encode())

    def _note(self, outcome: SendOutcome) -> None:
        if outcome.status == ACCEPTED:
            self.acked.append(Acked(outcome.message_id, outcome.position, outcome.bucket, outcome.sha256))
            return
        self.unknown.append(outcome.sha256)
        if outcome.status != UNKNOWN:
            self.refusals.append((outcome.status, outcome.retry_after or None))
