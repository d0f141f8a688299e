"""Sizes of the long campaigns: those of `make test-long` fit in two hours on two cores.

A variable of the environment sets a larger size, for a night or a larger machine. CONTRIBUTING lists them.
"""

import os
import sys
from typing import Final


def size(variable: str, usual: int) -> int:
    """Return the size that the environment sets, or the usual one."""
    return int(os.environ.get(variable) or usual)


WALK_STEPS: Final = size("PENSTOCK_WALK_STEPS", 10_000)
TICKS_STEPS: Final = size("PENSTOCK_TICKS_STEPS", 2_000)
CRASH_STEPS: Final = size("PENSTOCK_CRASH_STEPS", 20)
FAILURE_REPEATS: Final = size("PENSTOCK_FAILURE_REPEATS", 1)
KILLS: Final = size("PENSTOCK_KILLS", 4)
LAKE_KILLS: Final = size("PENSTOCK_LAKE_KILLS", 3)
STREAM_EVENTS: Final = size("PENSTOCK_STREAM_EVENTS", 60_000)
STREAM_KILLS: Final = size("PENSTOCK_STREAM_KILLS", 3)
STATE_EVENTS: Final = size("PENSTOCK_STATE_EVENTS", 200_000)
STATE_KILLS: Final = size("PENSTOCK_STATE_KILLS", 4)
REPLAY_EVENTS: Final = size("PENSTOCK_REPLAY_EVENTS", 200_000)
REPLAY_KILLS: Final = size("PENSTOCK_REPLAY_KILLS", 3)
LOSS_RUNS: Final = size("PENSTOCK_LOSS_RUNS", 20)
OUTAGE_S: Final = size("PENSTOCK_OUTAGE_S", 180)
SOAK_S: Final = size("PENSTOCK_SOAK_S", 300)
SOAK_PER_S: Final = size("PENSTOCK_SOAK_PER_S", 500)
JOURNEY_MESSAGES: Final = size("PENSTOCK_JOURNEY_MESSAGES", 2_000_000)
PYTHONS: Final = (os.environ.get("PENSTOCK_PYTHONS") or sys.executable).split(os.pathsep)
UPGRADE_FROM: Final = os.environ.get("PENSTOCK_UPGRADE_FROM") or "f5561046"  # tagged v0.1.0; a clone may lack tags
