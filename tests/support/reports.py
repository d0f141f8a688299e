"""Delivery reports made by a test."""


class Report:
    """Delivery report of one record, as the callback gets it."""

    def __init__(self, partition: int, offset: int | None) -> None:
        self._place = (partition, offset)

    def partition(self) -> int:
        """Return the partition of the record."""
        return self._place[0]

    def offset(self) -> int | None:
        """Return the offset; None if the broker did not report it."""
        return self._place[1]
