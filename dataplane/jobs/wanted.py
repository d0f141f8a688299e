"""Which lanes should run, and which of them may start now. Pure: the driver asks twice a second."""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from dataplane.names import LANE_KINDS, LaneKind
from dataplane.tables.records import CellRecord, StopRecord

LaneName = tuple[LaneKind, int]
BACK_OFF_CAP_S: Final = 30.0
STABLE_S: Final = 60.0


class Decision(Struct, frozen=True):
    """What the driver does now. `refused` says why a wanted lane is not started, in words."""

    end: bool
    start: list[LaneName]
    refused: str = ""


def decide(
    *,
    cell: CellRecord | None,
    stop: StopRecord | None,
    epoch: int,
    incarnation: str,
    running: Collection[LaneName],
    not_before: Mapping[LaneName, float],
    now: float,
    slots: int,
) -> Decision:
    """Compare what the control table wants with what runs.

    Lanes that are no longer wanted drain by themselves: they read the same table. A lane is refused, not queued
    silently, when Spark has no task slot left for it; one slot is kept free for the driver's own jobs.
    """
    if stop is not None and stop.incarnation == incarnation:
        return Decision(end=True, start=[])
    if cell is None:
        return Decision(end=False, start=[], refused="no record of the cell yet")
    if cell.epoch > epoch or not any(cell.lanes.values()):
        return Decision(end=True, start=[])
    wanted = [(kind, number) for kind in LANE_KINDS for number in range(cell.lanes.get(kind, 0))]
    missing = [lane for lane in wanted if lane not in running and not_before.get(lane, 0.0) <= now]
    room = max(0, slots - 1 - len(running))
    refused = f"no task slot for {len(missing) - room} lanes: {slots} slots" if len(missing) > room else ""
    return Decision(end=False, start=missing[:room], refused=refused)


def back_off_s(failures: int, chance: float) -> float:
    """Pause before a lane that failed is started again: min(2^k, 30) s with up to a quarter of jitter."""
    return min(BACK_OFF_CAP_S, 2.0 ** min(failures, 10)) * (1 - chance / 4)
