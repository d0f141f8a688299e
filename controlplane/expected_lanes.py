"""Which lanes of a cell must report: those that its running release has. Pure.

A release adds kinds of lanes; a cell that still runs the one before, or goes back to it, has none of these.
"""

from collections.abc import Mapping
from typing import Any, Final

FIRST_KINDS: Final = ("process", "transmit", "transmit-retry", "retrier", "transmit-slow")  # before drivers told theirs


def expected_lanes(wanted: Mapping[str, int], driver: Mapping[str, Any] | None) -> list[str]:
    """Return the writers' names.

    wanted: how many lanes of each kind the cell is to have
    driver: its driver's newest heartbeat; None while it has not been heard of, when all of `wanted` are expected
    """
    kinds = wanted if driver is None else driver.get("lane_kinds") or FIRST_KINDS
    return [f"{kind}-{number}" for kind, count in wanted.items() if kind in kinds for number in range(count)]
