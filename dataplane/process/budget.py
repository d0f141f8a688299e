"""CPU limit of one message, for plans whose steps could take longer than a lane may spend."""

import time
from collections.abc import Callable
from typing import Final

from dataplane.causes import Cause
from dataplane.plan import CompiledPlan, StageError

MESSAGE_S: Final = 2.0  # the session timeout of a lane is 6 s


class PassBudget:
    """Remaining CPU time of a message, from its creation on."""

    def __init__(self) -> None:
        self._until_ns = time.thread_time_ns() + int(MESSAGE_S * 1e9)

    def check(self) -> None:
        """Raise StageError `transform-limit` if no CPU time is left. Called before each unit of work."""
        if time.thread_time_ns() > self._until_ns:
            raise StageError(Cause.TRANSFORM_LIMIT, f"the steps took more than {MESSAGE_S:g} s of CPU on this message")


def budget_check(plan: CompiledPlan) -> Callable[[], None]:
    """Return the check of a new budget for one message of a plan; it does nothing if the plan needs no watching."""
    return PassBudget().check if plan.may_take_long else _no_limit


def _no_limit() -> None:
    """Set no limit on the CPU of a message."""
