"""Loss of one bucket: by node and end to end, and each lost unit with the node that saw it last. Pure.

The numbers have the talk's meaning: a node's loss is the share of the units due there that it never reported, and the
end-to-end loss is the share of all units that were lost anywhere. A unit is one message at one destination, or before
the route one message, as in every other count of the ledger.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import DEDUP, INGEST
from dataplane.ledger.trace import facts_in_order, last_node
from dataplane.names import PROCESS_NODES, transform_node, transmit_node

_BEFORE_ROUTE: Final = (INGEST, DEDUP, *PROCESS_NODES[:3])
NodeCounts = Sequence[Mapping[str, Any]]


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


def node_counts(account: BucketAccount) -> list[dict[str, Any]]:
    """Return the units that arrived (without the lost ones) and that were lost, by node, as a seal stores them."""
    return [{"node": line.node, "arrived": len(line.arrived), "lost": len(line.lost)} for line in account.nodes]


def counted_loss(nodes: NodeCounts, bins: Mapping[str, Mapping[str, int]]) -> BucketLoss:
    """Return the loss from counts, such as `Seal.nodes` and `Seal.bins`; equal to `bucket_loss`."""
    return BucketLoss(
        nodes=tuple(NodeShare(one["node"], one["arrived"] + one["lost"], one["lost"]) for one in nodes),
        due=sum(count for counts in bins.values() for count in counts.values()),
        lost=sum(counts.get(Bin.LOST, 0) for counts in bins.values()),
    )


def lost_units(books: BucketFacts, account: BucketAccount | None = None, *, first: int = 0) -> Iterator[LostUnit]:
    """Yield the lost units: those lost before the route first, then by destination, each in order of position.

    first: number of units to skip
    Cost:  one look at each set of facts for each unit that is taken from the iterator, none for skipped ones
    """
    account = account or derive(books)
    has_dedup = any(line.node == DEDUP for line in account.nodes)
    before = tuple(node for node in _BEFORE_ROUTE if node != DEDUP or has_dedup)
    every = {"": account.upstream, **account.destinations}
    units = ((position, child, name) for name, bins in every.items() for position, child in bins[Bin.LOST])
    for position, child, name in islice(units, first, None):
        path = (*before, transform_node(name), transmit_node(name)) if name else before
        last = last_node(facts_in_order(books, position, child, name))
        yield LostUnit(position, child, name, path[: path.index(last) + 1])  # it passed all nodes before the last
