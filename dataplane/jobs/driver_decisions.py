"""Decision of the cell driver: which lanes to start now. Pure: the driver calls it twice a second."""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from dataplane.names import LANE_KINDS, LaneKind
from dataplane.tables.records import CellRecord, StopRecord

LaneName = tuple[LaneKind, int]
BACK_OFF_CAP_S: Final = 30.0
STABLE_S: Final = 60.0


class DriverDecision(Struct, frozen=True):
    """Action of the driver. `refused` gives the reason why a desired lane is not started, as text."""

    end: bool
    start: list[LaneName]
    refused: str = ""


def driver_decision(
    *,
    cell: CellRecord | None,
    stop: StopRecord | None,
    epoch: int,
    incarnation: str,
    running: Collection[LaneName],
    not_before: Mapping[LaneName, float],
    now: float,
    slots: int,
) -> DriverDecision:
    """Compare the lanes that the control table asks for with the running ones.

    Lanes that are no longer wanted drain without a command: they read the same table. A lane is refused, not queued
    silently, when Spark has no task slot left for it; one slot is kept free for the driver's own jobs.

    not_before, now: seconds of the monotonic clock
    slots:           task slots that the lanes may use
    """
    if stop is not None and stop.incarnation == incarnation:
        return DriverDecision(end=True, start=[])
    if cell is None:
        return DriverDecision(end=False, start=[], refused="no control record of the cell yet")
    if cell.epoch > epoch or not any(cell.lanes.values()):
        return DriverDecision(end=True, start=[])
    wanted = [(kind, number) for kind in LANE_KINDS for number in range(cell.lanes.get(kind, 0))]
    missing = [lane for lane in wanted if lane not in running and not_before.get(lane, 0.0) <= now]
    room = max(0, slots - 1 - len(running))
    refused = f"no task slot for {len(missing) - room} lanes: {slots} slots" if len(missing) > room else ""
    return DriverDecision(end=False, start=missing[:room], refused=refused)


def free_slots(slots: int, query_tasks: int, cell: CellRecord, running: Collection[LaneName]) -> int:
    """Return the task slots that neither queries nor lanes take: those that run, or those that the cell should run."""
    return max(0, slots - query_tasks - max(sum(cell.lanes.values()), len(running)))


def back_off_s(failures: int, chance: float) -> float:
    """Return the pause in seconds before a failed lane restarts: min(2^k, 30) s minus up to a quarter of jitter.

    chance: random number in [0, 1)
    """
    return min(BACK_OFF_CAP_S, 2.0 ** min(failures, 10)) * (1 - chance / 4)
