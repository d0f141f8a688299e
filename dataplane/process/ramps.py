"""Facts of ramping pipes: the messages of each revision, by ramp step, so that the ledger can compare revisions.

The bins of a unit do not depend on them; the result of a revision is the intersection of its set with the bins' sets.
"""

from collections.abc import Sequence
from itertools import groupby

from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.ledger.units import dense
from dataplane.names import UNKNOWN_SHARE, ramp_node
from dataplane.process.item import ProcessItem
from dataplane.tables.control import ControlTable


class RampBooks:
    """Adds messages when the lane reads them, so that messages that then wait, or crash their lane, are included."""

    def __init__(self, table: ControlTable, facts: FactBook) -> None:
        self._table = table
        self._facts = facts

    def node(self, pipe: str, revision: int) -> str:
        """Return the node that counts a revision's messages now; "" while its pipe does not ramp.

        A revision that the pipe's record does not name yet was stamped by an ingest replica that saw its ramp before
        this lane did: its share is not known.
        """
        record = self._table.pipe(pipe)
        if record is None or not record.weights:
            return ""
        newest, share = record.weights[0]
        if len(record.weights) > 1:
            return ramp_node(share, revision)
        if record.by_shares:
            return ramp_node(record.admitted, revision)
        return ramp_node(UNKNOWN_SHARE, revision) if revision > newest and revision not in record.run_as else ""

    def book(self, items: Sequence[ProcessItem]) -> None:
        """Add the facts of these messages of one pipe. Idempotent."""
        record = self._table.pipe(items[0].meta.pipe)
        if record is None or not record.weights:
            return
        newest = record.weights[0][0]
        is_alone = len(record.weights) == 1 and not record.by_shares
        if is_alone and max([item.meta.revision for item in items]) <= newest:
            return
        for _, stretch in groupby(items, lambda item: (item.meta.revision, item.meta.bucket)):
            self._book(list(stretch))

    def _book(self, items: Sequence[ProcessItem]) -> None:
        first = items[0].meta
        if node := self.node(first.pipe, first.revision):
            positions = dense([item.meta.position for item in items])
            self._facts.extend(first.pipe, first.bucket, FactKey(node, Fact.SENT), positions)
