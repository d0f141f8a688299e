"""Thread whose error another thread raises: a mirror must not run on without its lease or its figures."""

import threading
from collections.abc import Callable


class CheckedThread:
    """Background thread of the mirror, which ends with `run`."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self._run = run
        self._crash: Exception | None = None
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    @property
    def was_started(self) -> bool:
        """True from the start on, also once the thread has ended."""
        return self._thread.ident is not None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the thread, if it was started."""
        if self.was_started:
            self._thread.join()

    def check(self) -> None:
        """Raise the error that has ended the thread, if any."""
        if self._crash is not None:
            raise self._crash

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as exc:
            self._crash = exc
