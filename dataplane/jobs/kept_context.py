"""Context that a Python worker of Spark keeps from one task to the next, for tasks of the same kind.

Spark gives an idle worker to any task, also to a lane, which runs for days and opens the same files.
"""

from collections.abc import Callable
from typing import Final

_closers: Final[dict[str, Callable[[], None]]] = {}


def keep(kind: str, close: Callable[[], None]) -> None:
    """Note how to close the context of this kind of tasks."""
    _closers[kind] = close


def close_kept() -> None:
    """Close all contexts: a task of another kind begins in this process."""
    while _closers:
        _closers.popitem()[1]()
