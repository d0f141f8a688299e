"""How a unit ends in a transmit lane: delivered, cancelled; or parked, dead, held, once its record is stored."""

import time
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import Death
from dataplane.ledger.facts import SLOW, Fact, FactKey, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.ledger.stopwatch import delivery
from dataplane.names import transmit_node
from dataplane.runtime.deadletters import TOO_LARGE, DeadLetters, fits
from dataplane.runtime.lane import Lane
from dataplane.transmit.memory import Memory, Unit
from dataplane.transmit.order import Order
from dataplane.transmit.sends import Send

ASIDE: Final = "aside"  # not a fact: parked and released in one, straight to the retry lane


class Stored(Struct, eq=False):
    """What follows when the last of the `owed` records of a unit is stored: the fact, and the places to settle."""

    send: Send
    fact: str
    detail: str
    owed: int = 1


class Ends:
    """Every unit under way, and the books and records in which it ends."""

    def __init__(self, lane: Lane, order: Order) -> None:
        self._lane = lane
        self._order = order
        topics = lane.cell.topics
        self._retry_in, self._retry_out = topics["retry-in"].name, topics["retry-out"].name
        self._letters, self._held = DeadLetters(lane.outbox, topics["dead"].name), topics["held"].name
        self._topics = topics
        self.turns: deque[Send] = deque()  # whose turn it has become, where a destination wants order
        self._memories: dict[int, Memory] = {}
        self.under_way: dict[Unit, Send] = {}

    def settled_before(self, unit: Unit, bucket: int, place: tuple[int, int]) -> bool:
        """Whether this host knows the unit's end already; if so it is filed again and the place settled."""
        known = self._memory(place[0]).recall(unit)
        if known is None:
            return False
        self._file(unit, bucket, *known)
        self._lane.settle(*place)
        return True

    def finish(self, send: Send, fact: str, detail: str) -> None:
        """The unit ends here with this fact."""
        if send.has_turn and self._pass_turn(send) and self._order.retries:
            self._order.tell("ended", send, Stored(send, fact, detail))
        else:
            self._settle(send, fact, detail)

    def _pass_turn(self, send: Send) -> bool:
        """The next one of its key has its turn; returns whether there is none."""
        following = send.target.keys.leave(send, send.key or b"")
        if following is not None:
            self.turns.append(following)
        return following is None

    def _settle(self, send: Send, fact: str, detail: str) -> None:
        self.under_way.pop(send.unit, None)
        for slot, _ in send.places:  # nearly always one; to note a unit again changes nothing
            self._memory(slot).note(send.unit, fact, detail)
        self._file(send.unit, send.meta.bucket, fact, detail)
        if fact == Fact.DELIVERED:
            self._book_timing(send)
        for place in send.places:
            self._lane.settle(*place)

    def _book_timing(self, send: Send) -> None:
        """Book a delivered message: its passage through this node, and where all of its time went."""
        meta, lags = send.meta, self._lane.lags
        key = (meta.pipe, transmit_node(meta.destination), meta.bucket)
        took_us, spent_us = send.time_in_lane(send.ended_s)
        if spent_us is None:
            lags.add(key, send.taken_us - meta.event_time_us, took_us)
        else:
            lags.add_delivered(key, took_us, *delivery(meta, spent_us))

    def park(self, send: Send, due_us: int, *, asked_us: int = 0) -> None:
        """Schedule a retry: produce to retry-in, as the next round, due at `due_us`.

        A round without a request does not lengthen the wait after it. Where the destination wants order, the message
        is sent straight to the retry lane, which keeps it. `asked_us`: the destination asked for no request before.
        """
        meta = msgspec.structs.replace(
            send.meta,
            attempt=send.meta.attempt + 1,
            not_before_us=due_us,
            tried=send.meta.tried + bool(send.tries),
            asked_us=asked_us,
            stopwatch=send.stamp(Slice.RETRY, time.monotonic()),
        )
        headers = [(META_HEADER, encode_meta(meta)), *send.headers[1:]]
        if not fits(send.body, send.key, headers):
            self._bury_too_large(send, "tried again")
            return
        if send.is_ordered and not self._order.retries:
            stored = Stored(send, ASIDE, str(meta.attempt), owed=2)
            self._order.tell("aside", send, stored)
            self._store(self._retry_out, stored, headers)
        else:
            self._store(self._retry_in, Stored(send, Fact.PARKED, str(meta.attempt)), headers)
        if send.has_turn:
            self._pass_turn(send)

    def divert(self, send: Send) -> None:
        """Produce to the slow lane's topic, in the same round; the fact makes the minute wait for that topic."""
        meta = msgspec.structs.replace(send.meta, stopwatch=send.stamp(Slice.TRANSMIT_QUEUE, time.monotonic()))
        headers = [(META_HEADER, encode_meta(meta)), *send.headers[1:]]
        if fits(send.body, send.key, headers):
            self._store(self._topics["slow"].name, Stored(send, Fact.SENT, SLOW), headers)
        else:
            self._bury_too_large(send, "tried again")

    def hold(self, send: Send) -> None:
        """Produce to `held`, as the next round, until it is released."""
        stopwatch = send.stamp(Slice.HELD, time.monotonic())
        changes = {"attempt": send.meta.attempt + 1, "not_before_us": 0, "through": False, "stopwatch": stopwatch}
        meta = msgspec.structs.replace(send.meta, **changes)
        headers = [(META_HEADER, encode_meta(meta)), *send.headers[1:]]
        if fits(send.body, send.key, headers):
            token = Stored(send, Fact.HELD, str(meta.attempt))
            self._end_turn(token)
            self._store(self._held, token, headers)
        else:
            self._bury_too_large(send, "held")

    def bury(self, send: Send, cause: str, detail: str, answer: str = "") -> None:
        """Dead-letter with the cause and the destination's answer."""
        self._lane.tally.add(f"dead: pipe={send.meta.pipe} destination={send.meta.destination} cause={cause}")
        death = Death(transmit_node(send.meta.destination), cause, detail, answer)
        token = Stored(send, Fact.DEAD, dead_detail(cause, send.meta.life))
        if send.is_ordered and send.target.record.to.after_dead == "hold":
            token.owed += 1  # settled without this record, the next lane would go on with the key
            self._order.tell("held", send, token)
        self._end_turn(token)
        slot, offset = send.places[0]
        original, way = (*self._lane.slots.place(slot), offset), self._way(send)
        meta = msgspec.structs.replace(send.meta, stopwatch=send.stamp(Slice.DEAD_LETTER, time.monotonic()))
        self._letters.send(token, death, meta=meta, headers=send.headers, value=send.body, original=original, **way)

    def _bury_too_large(self, send: Send, what: str) -> None:
        """A record that an earlier release let grow this large fits no topic once a hop has added its part."""
        self.bury(send, TOO_LARGE, f"the message is too large to be {what}")

    def _end_turn(self, token: Stored) -> None:
        """Give the next one of the key its turn; the retry lane owes a record more if the key is free again."""
        send = token.send
        if send.has_turn and self._pass_turn(send) and self._order.retries:
            token.owed += 1
            self._order.tell("ended", send, token)

    def acked(self, token: Any) -> None:
        """A parked, dead or held record is stored: its unit is settled here."""
        if isinstance(token, Stored):
            token.owed -= 1
            if not token.owed:
                self._settle(token.send, token.fact, token.detail)

    def give_up(self, sends: Iterable[Send]) -> None:
        """These are somebody else's to send: nothing is known of them here any more."""
        for send in sends:
            self.under_way.pop(send.unit, None)
            if send.has_turn:
                self._pass_turn(send)

    def flush(self) -> None:
        """Write the ends down. The files of a partition that has gone are closed: its new owner goes on in them."""
        for partition, memory in list(self._memories.items()):
            memory.flush()
            if not self._lane.owns(partition):
                self._memories.pop(partition).close()

    def close(self) -> None:
        """Close the files."""
        for memory in self._memories.values():
            memory.close()

    def _memory(self, partition: int) -> Memory:
        memory = self._memories.get(partition)
        if memory is None:
            folder = self._lane.settings.var / "data" / "settled"
            name = "{}-{}".format(*self._lane.slots.place(partition))
            memory = self._memories[partition] = Memory(folder, name, self._lane.files)
        return memory

    def _store(self, topic: str, token: Stored, headers: Headers) -> None:
        send = token.send
        self._lane.outbox.send(topic, token, value=send.body, headers=headers, **self._way(send))

    def _way(self, send: Send) -> dict[str, Any]:
        """Key or partition: a message without a key comes to the same partition again."""
        if send.key is not None:
            return {"key": send.key}
        return {"partition": send.places[0][0] % self._topics["retry-in"].partitions}

    def _file(self, unit: Unit, bucket: int, fact: str, detail: str) -> None:
        for one in (Fact.PARKED, Fact.RELEASED) if fact == ASIDE else (fact,):
            key = _key(unit.destination, one, detail, unit.child)
            self._lane.facts.add(unit.pipe, bucket, key, unit.position)


@lru_cache(maxsize=4_096)
def _key(destination: str, fact: str, detail: str, child: int) -> FactKey:
    """Made once for many units."""
    return FactKey(transmit_node(destination), fact, detail, child)
