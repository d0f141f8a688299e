"""Two tenants of one cell: one sends expensive events at ten times its quota, the other a few plain ones."""

import json
import threading
import time
from collections import Counter
from typing import Any, Final

from loadgen.events import ACCEPTED, UNKNOWN, EventSender, Payload, SendOutcome
from loadgen.plan import SendPlan
from loadgen.scripted import Received, Receiver
from loadgen.wire import IngestTarget
from tests.support.cluster import key_of

QUOTA: Final = 100  # events a second: the quota of the flooding tenant
FLOOD: Final = 10  # times the quota
BATCH: Final = 20
RATE: Final = 50.0  # events a second of the other tenant
RECEIVED_S: Final = 60.0
# Four legal steps, about 3.5 ms of CPU each on a common server: the quota alone exceeds what one core can run.
STEPS: Final[list[dict[str, Any]]] = [
    {"op": "map", "path": f"r{number}", "expr": "body.l.map(x, body.l.filter(y, y > x).size())"} for number in range(4)
]
_DEAR: Final = Payload.of(json.dumps({"l": list(range(65))}).encode())


class Flood:
    """`with Flood(port, key):` sends at ten times the quota until the block ends; `accepted` counts events."""

    def __init__(self, port: int, key: str, quota: int = QUOTA, connections: int = 1) -> None:
        self.accepted = self.refused = 0
        self.seconds = 0.0  # that it took
        self.unknown = 0  # events whose request had no response: they may be stored
        self.positions: set[str] = set()
        self._plan = SendPlan(FLOOD * quota, batch=BATCH, most_behind_s=1.0)
        sender = EventSender(
            IngestTarget("127.0.0.1", port, key),
            self._plan,
            event_of=lambda _number: _DEAR,
            on_outcome=self._note,
            connections=connections,
            retries=False,
        )
        self._thread = threading.Thread(target=sender.run, name="flood")

    def __enter__(self) -> "Flood":
        self._began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._plan.end()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.seconds = time.monotonic() - self._began_s

    def _note(self, outcome: SendOutcome) -> None:
        if outcome.status == ACCEPTED:
            self.accepted += 1
            self.positions.add(outcome.position)
        elif outcome.status == UNKNOWN:  # ingest has closed an idle connection, or is overloaded
            self.unknown += 1
        else:
            self.refused += 1


def send_plain(port: int, key: str, seconds: float, run: int) -> set[str]:
    """Send plain events at a steady rate; return their positions. All of them must be accepted."""
    events: dict[int, Payload] = {}
    outcomes: list[SendOutcome] = []

    def event_of(number: int) -> Payload:
        if number not in events:
            events[number] = Payload.of(json.dumps({"run": run, "sent_ns": time.time_ns()}).encode())
        return events[number]

    EventSender(
        IngestTarget("127.0.0.1", port, key),
        SendPlan(RATE, count=int(seconds * RATE)),
        event_of=event_of,
        on_outcome=outcomes.append,
        connections=1,
        retries=False,
    ).run()
    statuses = Counter(outcome.status for outcome in outcomes)
    assert set(statuses) == {ACCEPTED}, statuses
    return {outcome.position for outcome in outcomes}


def delays_ms(got: list[Received], run: int) -> list[float]:
    """Return the latencies of a run's plain events, from before they were sent until the receiver had them."""
    bodies = [(json.loads(received.body), received.at_ns) for received in got]
    return sorted((at_ns - body["sent_ns"]) / 1e6 for body, at_ns in bodies if body["run"] == run)


def plain_delays_ms(port: int, receiver: Receiver, run: int, seconds: float, pipe: str = "plain") -> list[float]:
    """Send plain events to a pipe, wait until all are received, and return their latencies.

    Its destination is the path of the receiver with its name. Raises TimeoutError if they do not all arrive within
    RECEIVED_S.
    """
    count = len(send_plain(port, key_of(pipe), seconds, run))
    deadline_s = time.monotonic() + RECEIVED_S
    while len(delays := delays_ms(receiver.got[f"/{pipe}"], run)) < count:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{len(delays)} of {count} plain events were received")
        time.sleep(0.1)
    return delays
