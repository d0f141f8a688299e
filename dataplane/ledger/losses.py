"""Loss of one bucket: by node and end to end, and each lost unit with the node that saw it last. Pure.

The numbers have the talk's meaning: a node's loss is the share of the units due there that it never reported, and the
end-to-end loss is the share of all units that were lost anywhere. A unit is one message at one destination, or before
the route one message, as in every other count of the ledger.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import DEDUP, INGEST, PROCESS
from dataplane.names import PROCESS_NODES, transform_node, transmit_node

_BEFORE_ROUTE: Final = (INGEST, DEDUP, *PROCESS_NODES[:3])
_ROUTE: Final = PROCESS_NODES[2]


class NodeShare(Struct, frozen=True):
    """Loss at one node.

    due:  units that were to arrive: those that did, and the lost ones
    lost: units lost before or in the node
    """

    node: str
    due: int
    lost: int

    @property
    def share(self) -> float:
        """Loss of the node, 0 to 1."""
        return self.lost / self.due if self.due else 0.0


class LostUnit(Struct, frozen=True):
    """One lost unit; `destination` is "" if the unit was lost before the route.

    child: as in a unit; OVERWRITTEN (-1) for a record whose offset Kafka reused
    seen:  the nodes that saw it, in order of travel; the last one is where it was last seen
    """

    position: int
    child: int
    destination: str
    seen: tuple[str, ...]

    @property
    def last_seen(self) -> str:
        """Name of the last node that saw the unit."""
        return self.seen[-1]


class BucketLoss(Struct, frozen=True):
    """Loss of one bucket: by node in order of travel, and end to end (`due` and `lost` count all units)."""

    nodes: tuple[NodeShare, ...]
    due: int
    lost: int

    @property
    def share(self) -> float:
        """End-to-end loss, 0 to 1."""
        return self.lost / self.due if self.due else 0.0


def bucket_loss(account: BucketAccount) -> BucketLoss:
    """Return the loss of a bucket by node and end to end. It is final only if the bucket is sealed."""
    return BucketLoss(
        nodes=tuple(NodeShare(line.node, len(line.arrived | line.lost), len(line.lost)) for line in account.nodes),
        due=sum(account.count(name) for name in Bin),
        lost=account.count(Bin.LOST),
    )


def counted_loss(nodes: Sequence[Mapping[str, int | str]], bins: Mapping[str, Mapping[str, int]]) -> BucketLoss:
    """Return the loss from the counts that a seal stores (`Seal.nodes`, `Seal.bins`); equal to `bucket_loss`.

    A node of a seal counts the units that arrived without those that it lost.
    """
    lines = [(str(one["node"]), int(one["arrived"]), int(one["lost"])) for one in nodes]
    return BucketLoss(
        nodes=tuple(NodeShare(node, arrived + lost, lost) for node, arrived, lost in lines),
        due=sum(count for counts in bins.values() for count in counts.values()),
        lost=sum(counts.get(Bin.LOST, 0) for counts in bins.values()),
    )


def lost_units(books: BucketFacts, account: BucketAccount | None = None) -> Iterator[LostUnit]:
    """Yield the lost units: those lost before the route first, then by destination, each in order of position.

    Cost: one look at each set of facts for each unit that is taken from the iterator.
    """
    account = account or derive(books)
    has_dedup = any(line.node == DEDUP for line in account.nodes)
    before = tuple(node for node in _BEFORE_ROUTE if node != DEDUP or has_dedup)
    for name, bins in {"": account.upstream, **account.destinations}.items():
        path = (*before, transform_node(name), transmit_node(name)) if name else before
        for position, child in bins[Bin.LOST]:
            yield LostUnit(position, child, name, _seen(books, position, child, path))


def _seen(books: BucketFacts, position: int, child: int, path: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes up to the last that has a fact of the unit: it passed all nodes before that one."""
    reported = {
        _ROUTE if key.node == PROCESS else key.node
        for key, positions in books.facts.items()
        if key.child == child and position in positions
    }
    last = max((index for index, node in enumerate(path) if node in reported), default=0)
    return tuple(path[: last + 1])
