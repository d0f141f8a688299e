"""A run: messages of one (pipe, revision, bucket, partition) that pass the stages together and are settled together."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from dataplane.ledger.facts import ASKED, DEDUP, EXPLODED, INGEST, LATE, PROCESS, SEEN, Fact, FactBook, FactKey
from dataplane.ledger.meta import Meta
from dataplane.names import transform_node
from dataplane.runtime.lags import LagBook

_SEEN: Final = FactKey(INGEST, Fact.SENT, SEEN)
_ASKED: Final = FactKey(DEDUP, Fact.SENT, ASKED)
_THROUGH: Final = FactKey(PROCESS, Fact.SENT)


class Departures:
    """What left one transform stage: its units, and their event times for the lag."""

    def __init__(self, destination: str) -> None:
        self.node = transform_node(destination)
        self.positions: list[int] = []
        self.children: list[Meta] = []  # units other than child 0, if a message was exploded
        self.times: list[int] = []


class Run:
    """Facts and lags of a run, told to the books once every record it produced is stored.

    owed:    tokens of the outbox that are still due
    offsets: what to settle then
    through: positions of the units (child 0) that passed every stage up to the route
    """

    def __init__(self, pipe: str, bucket: int, partition: int, offsets: Sequence[int], seen: list[int]) -> None:
        self.pipe = pipe
        self.bucket = bucket
        self.partition = partition
        self.offsets = offsets
        self.seen = seen
        self.through = seen
        self.owed = 1  # held open until everything has been handed to the outbox
        self.departures: list[Departures] = []
        self._units: dict[FactKey, list[int]] = defaultdict(list)

    def dead(self, node: str, cause: str, meta: Meta) -> None:
        """One unit ends at `node`."""
        self._units[FactKey(node, Fact.DEAD, cause, meta.child)].append(meta.position)

    def filtered(self, node: str, why: str, meta: Meta) -> None:
        """One unit ends at `node` by the tenant's own rule."""
        self._units[FactKey(node, Fact.FILTERED, why, meta.child)].append(meta.position)

    def asked(self, meta: Meta) -> None:
        """Dedup is asked about one unit."""
        self._units[_ASKED].append(meta.position)

    def late(self, node: str, meta: Meta) -> None:
        """One unit is too late for a window. It goes on."""
        self._units[FactKey(node, Fact.SENT, LATE, meta.child)].append(meta.position)

    def duplicate(self, first: str, meta: Meta) -> None:
        """One unit ends at dedup: it repeats the message at this position."""
        self._units[FactKey(DEDUP, Fact.DUPLICATE, first)].append(meta.position)

    def exploded(self, children: Iterable[Meta]) -> None:
        """Units that an explode made; child 0 is the message's own unit."""
        for meta in children:
            if meta.child:
                self._units[FactKey("normalize", Fact.SENT, EXPLODED, meta.child)].append(meta.position)

    def passed(self, metas: Iterable[Meta]) -> None:
        """Exactly these units passed every stage up to the route."""
        self.through = []
        for meta in metas:
            if meta.child:
                self._units[FactKey(PROCESS, Fact.SENT, "", meta.child)].append(meta.position)
            else:
                self.through.append(meta.position)

    def departures_of(self, destination: str) -> Departures:
        """Where to note what leaves for a destination."""
        departures = Departures(destination)
        self.departures.append(departures)
        return departures

    def close(self, facts: FactBook, lags: LagBook, now_us: int) -> None:
        """All of it is stored: file the facts, and the lags on departure."""
        facts.extend(self.pipe, self.bucket, _SEEN, self.seen)
        if self.through:
            facts.extend(self.pipe, self.bucket, _THROUGH, self.through)
        for departures in self.departures:
            self._file(departures, facts, lags, now_us)
        for key, positions in self._units.items():
            facts.extend(self.pipe, self.bucket, key, positions)

    def _file(self, departures: Departures, facts: FactBook, lags: LagBook, now_us: int) -> None:
        node = departures.node
        if departures.positions:
            facts.extend(self.pipe, self.bucket, FactKey(node, Fact.SENT), departures.positions)
        for meta in departures.children:
            facts.add(self.pipe, self.bucket, FactKey(node, Fact.SENT, "", meta.child), meta.position)
        if departures.times:
            lags.add_pass((self.pipe, node, self.bucket, "out"), now_us, departures.times)
