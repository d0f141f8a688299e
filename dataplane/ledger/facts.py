"""Facts: grow-only sets of units. Adding a unit twice changes nothing, so redelivery cannot distort the ledger."""

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from pyroaring import BitMap64

from dataplane.ledger.audit import FactSet
from dataplane.names import Purpose

INGEST: Final = "ingest"
PROCESS: Final = "process"  # passed every stage up to route: replaces one fact per stage
ACKED: Final = "acked"  # detail of sent at ingest: Kafka has confirmed the record
SEEN: Final = "seen"  # detail of sent at ingest: a process lane has read it
BULK: Final = "bulk"  # detail of sent at normalize: passed to the bulk query
SLOW: Final = "slow"  # detail of sent at a destination, or at normalize: passed to the slow lane
# Topics to which process lanes pass messages on before the steps, by the detail of the fact that says so.
DIVERTED_TO: Final[dict[str, Purpose]] = {SLOW: "process-slow", BULK: "bulk"}
LOG: Final = "log"  # records of the ingest topic: the details of sent are `acked/<producer>` and `seen/<producer>`
REUSED: Final = "reused"  # detail of sent at the log: this offset had been reported for another record before
DEDUP: Final = "dedup"  # the node of a pipe with dedup, between ingest and normalize
ASKED: Final = "asked"  # detail of sent at dedup: a process lane has sent it to the query
JUDGED: Final = "judged"  # detail of sent at dedup: the query has returned it with its verdict
LATE: Final = "late"  # detail of sent at a window: too far behind our clock to be counted
CHECKED: Final = "checked"  # detail of sent at a sequence, as the next three: compared with the earlier ones of its key
GAP: Final = "gap"  # numbers before it had not arrived when it did
OUT_OF_ORDER: Final = "out-of-order"  # it arrived after a higher number, or a later TimeUuid
REPEATED: Final = "repeated"  # its number had arrived before
EXPLODED: Final = "exploded"  # detail of sent at normalize: a unit that an explode made besides the message's own


class Fact(StrEnum):
    """Statement about a unit at a node. Bins are derived from facts (dataplane.ledger.bins)."""

    SENT = "sent"
    DELIVERED = "delivered"
    FILTERED = "filtered"
    DUPLICATE = "duplicate"
    DEAD = "dead"
    CANCELLED = "cancelled"
    HELD = "held"  # detail: the round, as for parked
    PARKED = "parked"  # detail: the round, from "1"; the unit waits in the retrier for its next attempt
    STORED = "stored"  # on the lake topic, from which the lake query delivers it
    RELEASED = "released"  # detail: the round; the retrier has passed on the parked or held unit
    REDRIVEN = "redriven"  # detail: the round; returned to transmit after a dead letter


def dead_detail(cause: str, life: int) -> str:
    """Return the detail of a dead fact: `<cause>`, or `<cause>/<life>` for a unit that was redriven before."""
    return f"{cause}/{life}" if life else cause


def cause_of(detail: str) -> str:
    """Return the cause in the detail of a dead fact."""
    return detail.partition("/")[0]


def life_of(detail: str) -> int:
    """Return the life in the detail of a dead fact: the round of the unit's last redrive, 0 if it had none."""
    life = detail.partition("/")[2]
    return int(life) if life.isdecimal() else 0


class FactKey(NamedTuple):
    """Key of a set of positions within one pipe and bucket."""

    node: str
    fact: str
    detail: str = ""
    child: int = 0


@lru_cache(maxsize=256)
def log_key(detail: str, producer: int) -> FactKey:
    """Return the key of the positions that one producer of ingest stored; `detail` is ACKED or SEEN.

    The broker reuses an offset only after it has lost the record that had it; the new record has another producer.
    """
    return FactKey(LOG, Fact.SENT, f"{detail}/{producer:08x}")


class FactBook:
    """Collector of one writer's facts between two checkpoints."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, int, FactKey], BitMap64] = defaultdict(BitMap64)

    def add(self, pipe: str, bucket: int, key: FactKey, position: int) -> None:
        """Add one unit."""
        self._positions[pipe, bucket, key].add(position)

    def extend(self, pipe: str, bucket: int, key: FactKey, positions: Iterable[int]) -> None:
        """Add many units of one pipe and bucket; a range costs as much as one unit."""
        known = self._positions[pipe, bucket, key]
        if isinstance(positions, range):
            known.add_range(positions.start, positions.stop)
        else:
            known.update(positions)

    def __len__(self) -> int:
        return len(self._positions)

    def sets(self) -> list[FactSet]:
        """Return all facts collected so far, as sets for an audit record."""
        return [
            FactSet(pipe, key.node, bucket, key.fact, key.detail, key.child, positions.serialize())
            for (pipe, bucket, key), positions in self._positions.items()
        ]

    def clear(self) -> None:
        """Drop all facts. Call this once an audit record holds them."""
        self._positions = defaultdict(BitMap64)

    def take(self) -> list[FactSet]:
        """Return all facts collected so far and drop them."""
        taken = self.sets()
        self.clear()
        return taken
