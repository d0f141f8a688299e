"""Context that a Python worker of Spark keeps from one task to the next, for tasks of the same kind.

To connect to Kafka, to read the control table or to compile a plan would take a good part of a short task. Spark gives
an idle worker to any task, also to a lane, which runs for days and opens the same files.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

_Context = TypeVar("_Context")
IDLE_S: Final = 30.0  # then the context is closed: Spark may use the worker for a lane, for days


class LentContext(Generic[_Context]):
    """Context that is lent to one task. It is closed when the lease ends, unless the task has called `keep`."""

    def __init__(self, context: _Context) -> None:
        self.context = context
        self.is_kept = False

    def keep(self) -> None:
        """Keep the context for the next task: it is in a state from which that one can continue."""
        self.is_kept = True


class KeptContext(Generic[_Context]):
    """Context of one kind of tasks in this process, which runs one task at a time.

    has_files: it holds files open that tasks of other kinds open, too; these call `close_kept`
    """

    def __init__(self, close: Callable[[_Context], None], *, has_files: bool = False, idle_s: float = IDLE_S) -> None:
        self._close_context, self._idle_s = close, idle_s
        self._lock = threading.Lock()
        self._idle: tuple[Hashable, _Context] | None = None
        self._closing: threading.Timer | None = None
        if has_files:
            _with_files.add(self)

    @contextmanager
    def lend(self, key: Hashable, make: Callable[[], _Context]) -> Iterator[LentContext[_Context]]:
        """Lend the kept context if it has this key; otherwise close it, and lend a new one."""
        lease = LentContext(self._take(key) or make())
        try:
            yield lease
        finally:
            if lease.is_kept:
                self._keep(key, lease.context)
            else:
                self._close_context(lease.context)

    def close(self) -> None:
        """Close the context, if one is kept."""
        with self._lock:
            self._drop()

    def _take(self, key: Hashable) -> _Context | None:
        with self._lock:
            if self._idle is None or self._idle[0] != key:
                self._drop()
                return None
            context = self._idle[1]
            self._forget()
            return context

    def _keep(self, key: Hashable, context: _Context) -> None:
        with self._lock:
            self._idle = key, context
            self._closing = threading.Timer(self._idle_s, self._close_idle)
            self._closing.daemon = True
            self._closing.start()

    def _close_idle(self) -> None:
        with self._lock:
            if self._closing is threading.current_thread():  # no task has begun meanwhile
                self._drop()

    def _drop(self) -> None:
        idle = self._idle
        self._forget()
        if idle is not None:
            self._close_context(idle[1])

    def _forget(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        self._idle = self._closing = None


_with_files: Final[WeakSet[KeptContext[Any]]] = WeakSet()


def close_kept() -> None:
    """Close all contexts that hold files open: a task of another kind begins in this process.

    Waits for one that is being closed because it was idle.
    """
    for kept in tuple(_with_files):
        kept.close()
