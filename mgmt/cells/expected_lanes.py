"""Lanes of a cell that must report: those of the kinds that its running release has. Pure.

A release may add kinds of lanes; a cell that still runs an earlier release, or returns to one, has no lane of the new
kinds.
"""

from collections.abc import Mapping
from typing import Any, Final

# Kinds of lanes of a driver that does not report them: all that the first release had.
FIRST_KINDS: Final = ("process", "transmit", "transmit-retry", "retrier", "transmit-slow")


def expected_lanes(wanted: Mapping[str, int], driver: Mapping[str, Any] | None) -> list[str]:
    """Return the writer names of these lanes, such as `process-0`.

    wanted: the desired number of lanes of each kind
    driver: the body of the driver's newest heartbeat; None before the first one, when all of `wanted` are expected
    """
    kinds = wanted if driver is None else driver.get("lane_kinds") or FIRST_KINDS
    return [f"{kind}-{number}" for kind, count in wanted.items() if kind in kinds for number in range(count)]
