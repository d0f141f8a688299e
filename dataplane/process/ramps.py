"""What each revision of a ramping pipe took, booked apart by step: so that the ledger can tell them apart.

A unit's bins are derived as ever; whoever asks what became of a revision's messages meets them with its set.
"""

from collections.abc import Sequence
from itertools import groupby

from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.ledger.units import dense
from dataplane.names import NOT_HEARD, ramp_node
from dataplane.process.item import Item
from dataplane.tables.control import ControlTable


class Ramps:
    """Books messages when they are taken, so that those which then wait, or kill their lane, are among them."""

    def __init__(self, table: ControlTable, facts: FactBook) -> None:
        self._table = table
        self._facts = facts

    def node(self, pipe: str, revision: int) -> str:
        """Where a revision's messages are booked now; "" while its pipe does not ramp.

        One that the pipe's record does not name yet was stamped by who heard of its ramp before us: its share is
        not known.
        """
        record = self._table.pipe(pipe)
        if record is None or not record.weights:
            return ""
        newest, share = record.weights[0]
        if len(record.weights) > 1:
            return ramp_node(share, revision)
        if record.by_shares:
            return ramp_node(record.admitted, revision)
        return ramp_node(NOT_HEARD, revision) if revision > newest and revision not in record.run_as else ""

    def book(self, items: Sequence[Item]) -> None:
        """These messages of one pipe begin. Doing it again changes nothing."""
        record = self._table.pipe(items[0].meta.pipe)
        if record is None or not record.weights:
            return
        newest = record.weights[0][0]
        is_alone = len(record.weights) == 1 and not record.by_shares
        if is_alone and max([item.meta.revision for item in items]) <= newest:
            return
        for _, stretch in groupby(items, lambda item: (item.meta.revision, item.meta.bucket)):
            self._book(list(stretch))

    def _book(self, items: Sequence[Item]) -> None:
        first = items[0].meta
        if node := self.node(first.pipe, first.revision):
            positions = dense([item.meta.position for item in items])
            self._facts.extend(first.pipe, first.bucket, FactKey(node, Fact.SENT), positions)
