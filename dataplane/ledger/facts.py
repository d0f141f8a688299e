"""Facts: grow-only sets of units. Adding one twice changes nothing, so redelivery never spoils the books."""

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from pyroaring import BitMap64

from dataplane.ledger.audit import FactSet

INGEST: Final = "ingest"
PROCESS: Final = "process"  # passed every stage up to route: stands for one fact per stage
ACKED: Final = "acked"  # detail of sent at ingest: the delivery report came
SEEN: Final = "seen"  # detail of sent at ingest: a process lane read it
SLOW: Final = "slow"  # detail of sent at a destination, or at normalize: passed on to the slow lane
LOG: Final = "log"  # what the ingest topic held: the details of sent are `acked/<producer>` and `seen/<producer>`
REUSED: Final = "reused"  # detail of sent at the log: this offset had been reported for another record before
DEDUP: Final = "dedup"  # the node of a pipe that asks: between ingest and normalize
ASKED: Final = "asked"  # detail of sent at dedup: a process lane has asked the query about it
JUDGED: Final = "judged"  # detail of sent at dedup: the query has put it back with its verdict
LATE: Final = "late"  # detail of sent at a window: too far behind our clock to be taken in
EXPLODED: Final = "exploded"  # detail of sent at normalize: a unit that an explode made, beside the message's own


class Fact(StrEnum):
    """What can be known of a unit at a node. The bin it is in is derived (dataplane.ledger.bins)."""

    SENT = "sent"
    DELIVERED = "delivered"
    FILTERED = "filtered"
    DUPLICATE = "duplicate"
    DEAD = "dead"
    CANCELLED = "cancelled"
    HELD = "held"  # detail: the round, as of parked
    PARKED = "parked"  # detail: the round, from "1"; the unit is on its way through the retrier
    STORED = "stored"  # on the lake's topic: the lake's query delivers it
    RELEASED = "released"  # detail: the round; the retrier has passed on what was parked or held
    REDRIVEN = "redriven"  # detail: the round; brought back after a dead letter


def dead_detail(cause: str, life: int) -> str:
    """The detail of dead: the cause, and after it the round in which the unit had last been brought back, if it had."""
    return f"{cause}/{life}" if life else cause


def cause_of(detail: str) -> str:
    """The cause in a detail of dead."""
    return detail.partition("/")[0]


def life_of(detail: str) -> int:
    """The round in which a unit that died with this detail had last been brought back; 0 if never."""
    life = detail.partition("/")[2]
    return int(life) if life.isdecimal() else 0


class FactKey(NamedTuple):
    """What a set of positions is filed under, apart from its pipe and bucket."""

    node: str
    fact: str
    detail: str = ""
    child: int = 0


@lru_cache(maxsize=256)
def log_key(detail: str, producer: int) -> FactKey:
    """Return the key under which positions are filed that a producer of ingest stored: ACKED or SEEN.

    An offset is given to another record only after the broker has lost the one before; that one had another producer.
    """
    return FactKey(LOG, Fact.SENT, f"{detail}/{producer:08x}")


class FactBook:
    """Collects facts between two checkpoints of one writer."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, int, FactKey], BitMap64] = defaultdict(BitMap64)

    def add(self, pipe: str, bucket: int, key: FactKey, position: int) -> None:
        """One unit."""
        self._positions[pipe, bucket, key].add(position)

    def extend(self, pipe: str, bucket: int, key: FactKey, positions: Iterable[int]) -> None:
        """Many units of one pipe and bucket; a range costs as much as one."""
        known = self._positions[pipe, bucket, key]
        if isinstance(positions, range):
            known.add_range(positions.start, positions.stop)
        else:
            known.update(positions)

    def __len__(self) -> int:
        return len(self._positions)

    def sets(self) -> list[FactSet]:
        """Return everything collected so far, as sets for an audit record."""
        return [
            FactSet(pipe, key.node, bucket, key.fact, key.detail, key.child, positions.serialize())
            for (pipe, bucket, key), positions in self._positions.items()
        ]

    def clear(self) -> None:
        """Forget everything: an audit record has it."""
        self._positions = defaultdict(BitMap64)

    def take(self) -> list[FactSet]:
        """Return everything collected so far and forget it."""
        taken = self.sets()
        self.clear()
        return taken


def merge_positions(one: bytes, other: bytes) -> bytes:
    """The union of two serialized sets."""
    merged: bytes = (BitMap64.deserialize(one) | BitMap64.deserialize(other)).serialize()
    return merged


def count_positions(positions: bytes) -> int:
    """How many units a serialized set holds."""
    return len(BitMap64.deserialize(positions))
