"""The Observer beside a test, in a thread, and waiting for what it brings about."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controlplane.observer.main import observe
from tests.rig.patience import Patience


@contextmanager
def observing() -> Iterator[None]:
    """It observes meanwhile, and has ended afterwards."""
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
    """Wait until something holds."""
    patience = Patience(limit_s)
    while not truth():
        assert not patience.is_over, "it did not come about in time"
        time.sleep(0.1)
