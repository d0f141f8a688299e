"""Outcomes of units in a transmit lane: settle delivered and cancelled ones, produce retries, dead letters and holds.

A unit whose outcome is a record (parked, dead, held) is settled once that record is stored.
"""

import time
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import DeadLetterReason
from dataplane.ledger.facts import SLOW, Fact, FactKey, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.ledger.stopwatch import delivery
from dataplane.names import transmit_node
from dataplane.runtime.lanes.context import LaneContext
from dataplane.runtime.lanes.deadletters import DeadLetterWriter, fits
from dataplane.runtime.lanes.placement import by_key_or_origin
from dataplane.spec import keeps_order
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.deliveries.settled_units import SettledUnits, UnitRound
from dataplane.transmit.key_order import KeyOrder

_DELIVERED: Final = str(Fact.DELIVERED)  # an enum member costs 0.1 us in a hot path
ASIDE: Final = "aside"  # not a fact: parked and released at once, when a message is sent directly to the retry lane
HELD_COPY: Final = "held"  # detail of cancelled: the destination of a replay's copy is held


class PendingOutcome(Struct, eq=False):
    """Outcome of a unit (`fact` and `detail`) that is settled when the last of its `owed` records is stored."""

    send: Delivery
    fact: str
    detail: str
    owed: int = 1


class Outcomes:
    """Every unit in progress in a lane, and the records and facts of its outcome."""

    def __init__(self, lane: LaneContext, order: KeyOrder) -> None:
        self._lane = lane
        self._order = order
        topics = lane.cell.topics
        self._retry_in, self._retry_out = topics["retry-in"].name, topics["retry-out"].name
        self._letters, self._held = DeadLetterWriter(lane.producer, topics["dead"].name), topics["held"].name
        self._topics = topics
        self.turns: deque[Delivery] = deque()  # messages whose turn it is now (ordered destinations)
        self._memories: dict[int, SettledUnits] = {}
        self.under_way: dict[UnitRound, Delivery] = {}

    def settled_before(self, unit: UnitRound, bucket: int, place: tuple[int, int]) -> bool:
        """Return True if this host has already settled the unit; then report its fact again and settle the offset."""
        settled = self._memory(place[0]).recall(unit)
        if settled is None:
            return False
        self._file(unit, bucket, *settled)
        self._lane.settle(*place)
        return True

    def finish(self, send: Delivery, fact: str, detail: str) -> None:
        """Settle a unit with this fact."""
        if send.has_turn and self._pass_turn(send) and self._order.retries:
            self._order.publish("ended", send, PendingOutcome(send, fact, detail))
        else:
            self._settle(send, fact, detail)

    def _pass_turn(self, send: Delivery) -> bool:
        """Give the next message of the key its turn; return True if there is none."""
        following = send.target.keys.leave(send, send.key or b"")
        if following is not None:
            self.turns.append(following)
        return following is None

    def _settle(self, send: Delivery, fact: str, detail: str) -> None:
        self.under_way.pop(send.unit, None)
        for slot, _ in send.places:  # nearly always one; noting a unit twice changes nothing
            self._memory(slot).note(send.unit, fact, detail)
        self._file(send.unit, send.meta.bucket, fact, detail)
        if fact == _DELIVERED:
            self._book_timing(send)
        for place in send.places:
            self._lane.settle(*place)

    def _book_timing(self, send: Delivery) -> None:
        """Record the timing of a delivered message: its passage through this node, and all of its time by slice."""
        meta, lags = send.meta, self._lane.lags
        key = (meta.account, transmit_node(meta.destination), meta.bucket)
        took_us, spent_us = send.time_in_lane(send.ended_s)
        if spent_us is None:
            lags.add(key, send.taken_us - meta.event_time_us, took_us)
        else:
            lags.add_delivered(key, took_us, *delivery(meta, spent_us))

    def schedule_retry(self, send: Delivery, due_us: int, *, asked_us: int = 0) -> None:
        """Schedule a retry: produce to retry-in, as the next round, due at `due_us` (Unix time in microseconds).

        A round without a request does not lengthen the next delay. A message of an ordered destination is sent directly
        to the retry lane, which holds it until then. `asked_us`: Unix time before which the destination asked for no
        request (Retry-After), 0 if it did not ask.
        """
        meta = msgspec.structs.replace(
            send.meta,
            attempt=send.meta.attempt + 1,
            not_before_us=due_us,
            tried=send.meta.tried + bool(send.tries),
            asked_us=asked_us,
            stopwatch=send.stamp(Slice.RETRY, time.monotonic()),
        )
        headers = [(META_HEADER, encode_meta(meta)), *send.carried]
        if not fits(send.body, send.key, headers):
            self._dead_letter_too_large(send, "kept for a retry")
            return
        if send.is_ordered and not self._order.retries:
            stored = PendingOutcome(send, ASIDE, str(meta.attempt), owed=2)
            self._order.publish("aside", send, stored)
            self._store(self._retry_out, stored, headers)
        else:
            self._store(self._retry_in, PendingOutcome(send, Fact.PARKED, str(meta.attempt)), headers)
        if send.has_turn:
            self._pass_turn(send)

    def divert(self, send: Delivery) -> None:
        """Produce to the slow lane's topic, in the same round; the fact `sent` makes the minute wait for that topic."""
        meta = msgspec.structs.replace(send.meta, stopwatch=send.stamp(Slice.TRANSMIT_QUEUE, time.monotonic()))
        headers = [(META_HEADER, encode_meta(meta)), *send.carried]
        if fits(send.body, send.key, headers):
            self._store(self._topics["slow"].name, PendingOutcome(send, Fact.SENT, SLOW), headers)
        else:
            self._dead_letter_too_large(send, "moved to the slow lane")

    def hold(self, send: Delivery) -> None:
        """Hold a unit: produce it to the `held` topic, as the next round.

        A copy of a replay is cancelled instead: the held messages of a pipe are its originals, and a new replay makes
        another copy.
        """
        if send.is_copy:
            self.finish(send, Fact.CANCELLED, HELD_COPY)
            return
        stopwatch = send.stamp(Slice.HELD, time.monotonic())
        changes = {"attempt": send.meta.attempt + 1, "not_before_us": 0, "through": False, "stopwatch": stopwatch}
        meta = msgspec.structs.replace(send.meta, **changes)
        headers = [(META_HEADER, encode_meta(meta)), *send.carried]
        if fits(send.body, send.key, headers):
            token = PendingOutcome(send, Fact.HELD, str(meta.attempt))
            self._end_turn(token)
            self._store(self._held, token, headers)
        else:
            self._dead_letter_too_large(send, "held")

    def dead_letter(self, send: Delivery, cause: str, detail: str, answer: str = "") -> None:
        """Dead-letter a unit with the cause, a detail and the destination's response.

        A copy of a replay is only counted as dead: the dead letters of a pipe are its originals.
        """
        self._lane.tally.add(f"dead: pipe={send.meta.pipe} destination={send.meta.destination} cause={cause}")
        if send.is_copy:
            self.finish(send, Fact.DEAD, dead_detail(cause, send.meta.life))
            return
        reason = DeadLetterReason(transmit_node(send.meta.destination), cause, detail, answer)
        token = PendingOutcome(send, Fact.DEAD, dead_detail(cause, send.meta.life))
        if send.is_ordered and send.target.record.to.after_dead == "hold":
            token.owed += 1  # if it were settled before this record is stored, the next lane would continue the key
            self._order.publish("held", send, token)
        self._end_turn(token)
        slot, offset = send.places[0]
        original, routing = (*self._lane.slots.place(slot), offset), self._routing(send)
        meta = msgspec.structs.replace(send.meta, stopwatch=send.stamp(Slice.DEAD_LETTER, time.monotonic()))
        self._letters.send(
            token, reason, meta=meta, headers=send.headers, value=send.body, original=original, **routing
        )

    def _dead_letter_too_large(self, send: Delivery, what: str) -> None:
        """Dead-letter a record that an earlier release let grow so large that another hop would exceed the limit."""
        self.dead_letter(send, Cause.TOO_LARGE, f"the message is too large to be {what}")

    def _end_turn(self, token: PendingOutcome) -> None:
        """Give the next message of the key its turn; without one, a unit in the retry lane owes one more record."""
        send = token.send
        if send.has_turn and self._pass_turn(send) and self._order.retries:
            token.owed += 1
            self._order.publish("ended", send, token)

    def on_delivery(self, token: Any) -> None:
        """Count a stored record of a unit, and settle the unit after its last one."""
        if isinstance(token, PendingOutcome):
            token.owed -= 1
            if not token.owed:
                self._settle(token.send, token.fact, token.detail)

    def on_drain_timeout(self, sends: Iterable[Delivery]) -> None:
        """Forget sends that another lane will read again."""
        for send in sends:
            self.under_way.pop(send.unit, None)
            if send.has_turn:
                self._pass_turn(send)

    def flush(self) -> None:
        """Write settled units to their files; close those of revoked partitions, which their new owner continues."""
        for partition, memory in list(self._memories.items()):
            memory.flush()
            if not self._lane.owns(partition):
                self._memories.pop(partition).close()

    def close(self) -> None:
        """Close the files."""
        for memory in self._memories.values():
            memory.close()

    def _memory(self, partition: int) -> SettledUnits:
        memory = self._memories.get(partition)
        if memory is None:
            folder = self._lane.settings.var / "data" / "settled"
            name = "{}-{}".format(*self._lane.slots.place(partition))
            memory = self._memories[partition] = SettledUnits(folder, name, self._lane.files)
        return memory

    def _store(self, topic: str, token: PendingOutcome, headers: Headers) -> None:
        send = token.send
        self._lane.producer.send(topic, token, value=send.body, headers=headers, **self._routing(send))

    def _routing(self, send: Delivery) -> dict[str, Any]:
        """Return the key and the partition to produce to; a message without a key keeps its partition number."""
        partitions = self._topics["retry-in"].partitions
        if send.key is None:
            return {"partition": send.places[0][0] % partitions}
        in_order = keeps_order(send.target.record.to)
        return by_key_or_origin(send.meta, send.key, partitions, in_order=in_order)

    def _file(self, unit: UnitRound, bucket: int, fact: str, detail: str) -> None:
        for each in (Fact.PARKED, Fact.RELEASED) if fact == ASIDE else (fact,):
            key = _key(unit.destination, each, detail, unit.child)
            self._lane.facts.add(unit.account, bucket, key, unit.position)


@lru_cache(maxsize=4_096)
def _key(destination: str, fact: str, detail: str, child: int) -> FactKey:
    """Return a FactKey, made once for many units."""
    return FactKey(transmit_node(destination), fact, detail, child)
