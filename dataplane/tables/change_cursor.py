"""Position of a reader in the changes of a table, and which changes it has been given already. Pure."""

from typing import Self

from dataplane.tables.pinned_tables import ChangeLog, TableChange


class ChangeCursor:
    """Position of a reader in the changes: it gets those from the position `next` on.

    removals_from: position from which removed rows are given; a snapshot leaves out rows that were removed before it
    """

    def __init__(self, first: int, removals_from: int, *, continues: bool) -> None:
        """`continues`: the reader had everything before `first`, perhaps from another host."""
        self.next, self.removals_from = first, removals_from
        # A row that changed between these positions was given in its current version, or was not asked for.
        self._given_from = first if continues else 0
        self._given_to = first

    @classmethod
    def now(cls, log: ChangeLog) -> Self:
        """Begin at the end of the log."""
        return cls(log.end, 0, continues=False)

    @classmethod
    def snapshot(cls, log: ChangeLog) -> Self:
        """Begin with the current rows."""
        return cls(0, log.end, continues=False)

    @classmethod
    def again(cls) -> Self:
        """Begin with all rows, and with the removed ones, which the reader may still have."""
        return cls(0, 0, continues=True)

    def wants(self, change: TableChange) -> bool:
        """Return False for a row that was given in this version, and for one removed before a snapshot.

        A reader that continues may come from a host that had a row at its last record only, so that it has not got
        the row although it has changed before the reader's position.
        """
        if self._given_from <= change.changed < self._given_to:
            return False
        return change.row is not None or change.changed >= self.removals_from

    def catch_up(self, end: int) -> None:
        """Note that everything before the end of the log was given."""
        self.next = self._given_to = max(self.next, end)
