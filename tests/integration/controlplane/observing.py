"""Observer in a thread of the test process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.observer.main import observe


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
