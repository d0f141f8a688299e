"""How much CPU one message may take, where its plan could take more than a lane has time for."""

import time
from typing import Final

from dataplane.plan import StageError

MESSAGE_S: Final = 2.0  # the session of a lane lasts 6 s
TRANSFORM_LIMIT: Final = "transform-limit"


class Budget:
    """The CPU that is left for a message."""

    def __init__(self) -> None:
        self._until_ns = time.thread_time_ns() + int(MESSAGE_S * 1e9)

    def check(self) -> None:
        """Raise StageError `transform-limit` if nothing is left. Called before each piece of work of its own."""
        if time.thread_time_ns() > self._until_ns:
            raise StageError(TRANSFORM_LIMIT, f"the steps took more than {MESSAGE_S:g} s of CPU on this message")
