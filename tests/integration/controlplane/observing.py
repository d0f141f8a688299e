"""Observer in a thread of the test process, and a wait for its effects."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.observer.main import observe
from tests.support.patience import Patience


@contextmanager
def observing() -> Iterator[None]:
    """Run the Observer during the block, and stop it afterwards."""
    ending = threading.Event()
    thread = threading.Thread(target=observe, args=(ending,))
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(20)
        assert not thread.is_alive()


def until(truth: Callable[[], object], limit_s: float = 30) -> None:
    """Wait until the condition holds."""
    patience = Patience(limit_s)
    while not truth():
        assert not patience.is_over, "the condition did not hold in time"
        time.sleep(0.1)
