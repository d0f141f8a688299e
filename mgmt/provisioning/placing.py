"""Which cell takes the next pipe. Pure."""

from collections.abc import Mapping


def least_loaded(load: Mapping[str, int]) -> str | None:
    """The cell with the fewest pipes, the first by name among equals; None if there is no cell."""
    return min(sorted(load), key=load.__getitem__, default=None)
