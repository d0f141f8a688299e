"""Delivery reports that a test makes up."""


class Report:
    """What a delivery callback is told of a record."""

    def __init__(self, partition: int, offset: int | None) -> None:
        self._place = (partition, offset)

    def partition(self) -> int:
        """Where it lies."""
        return self._place[0]

    def offset(self) -> int | None:
        """At which offset; None if the broker did not say."""
        return self._place[1]
