"""How a unit ends in a transmit lane: delivered, cancelled; or parked, dead, held, once its record is stored."""

import logging
import time
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from dataplane.ledger.deadletter import Death, dead_headers
from dataplane.ledger.facts import Fact, FactKey, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, encode_meta
from dataplane.names import transmit_node
from dataplane.runtime.lane import Lane
from dataplane.transmit.memory import Memory, Unit
from dataplane.transmit.sends import Send

log = logging.getLogger(__name__)


class Stored(Struct, frozen=True):
    """What follows when a parked, dead or held record is stored: the fact, and the places to settle."""

    send: Send
    fact: str
    detail: str


class Ends:
    """Every unit under way, and the books and records in which it ends."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        topics = lane.cell.topics
        self._retry_in, self._dead, self._held = (topics[p].name for p in ("retry-in", "dead", "held"))
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
        self.under_way.pop(send.unit, None)
        for partition in {partition for partition, _ in send.places}:
            self._memory(partition).note(send.unit, fact, detail)
        self._file(send.unit, send.meta.bucket, fact, detail)
        if fact == Fact.DELIVERED:
            key = (send.meta.pipe, transmit_node(send.meta.destination), send.meta.bucket, "out")
            self._lane.lags.add(key, time.time_ns() // 1_000 - send.meta.event_time_us)
        for place in send.places:
            self._lane.settle(*place)

    def park(self, send: Send, due_us: int, *, asked_us: int = 0) -> None:
        """To retry-in, as the next round. One in which it was never sent does not lengthen the wait after it.

        `asked_us`: the destination itself asked for no send before this.
        """
        meta = msgspec.structs.replace(
            send.meta,
            attempt=send.meta.attempt + 1,
            not_before_us=due_us,
            tried=send.meta.tried + bool(send.tries),
            asked_us=asked_us,
        )
        headers = [(META_HEADER, encode_meta(meta)), *send.headers[1:]]
        self._store(self._retry_in, Stored(send, Fact.PARKED, str(meta.attempt)), headers)

    def hold(self, send: Send) -> None:
        """To held, as the next round: there it stays until it is released."""
        meta = msgspec.structs.replace(send.meta, attempt=send.meta.attempt + 1, not_before_us=0)
        headers = [(META_HEADER, encode_meta(meta)), *send.headers[1:]]
        self._store(self._held, Stored(send, Fact.HELD, str(meta.attempt)), headers)

    def bury(self, send: Send, cause: str, detail: str, answer: str = "") -> None:
        """To dead, with its cause, and what the destination answered."""
        log.warning("dead: pipe=%s destination=%s cause=%s", send.meta.pipe, send.meta.destination, cause)
        death = Death(transmit_node(send.meta.destination), cause, detail, answer)
        token = Stored(send, Fact.DEAD, dead_detail(cause, send.meta.life))
        self._store(self._dead, token, dead_headers(send.meta, send.headers, death))

    def acked(self, token: Any) -> None:
        """A parked, dead or held record is stored: its unit is settled here."""
        if isinstance(token, Stored):
            self.finish(token.send, token.fact, token.detail)

    def give_up(self, sends: Iterable[Send]) -> None:
        """These are somebody else's to send: nothing is known of them here any more."""
        for send in sends:
            self.under_way.pop(send.unit, None)

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
            memory = self._memories[partition] = Memory(folder, "{}-{}".format(*self._lane.slots.place(partition)))
        return memory

    def _store(self, topic: str, token: Stored, headers: Headers) -> None:
        send = token.send
        record: dict[str, Any] = {"value": send.body, "headers": headers}
        if send.key is not None:
            record["key"] = send.key
        else:
            record["partition"] = send.places[0][0] % self._lane.cell.topics["retry-in"].partitions
        self._lane.outbox.send(topic, token, **record)

    def _file(self, unit: Unit, bucket: int, fact: str, detail: str) -> None:
        key = FactKey(transmit_node(unit.destination), fact, detail, unit.child)
        self._lane.facts.add(unit.pipe, bucket, key, unit.position)
