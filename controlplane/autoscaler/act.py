"""Executes the Autoscaler's decisions: writes lane and replica counts under a cell's lease.

The lease is kept until the lanes have followed.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Final

import msgspec
import structlog
from django.db.models import F

from controlplane.autoscaler.decide import SOON_S, LaneGroup, ScaleDecision
from controlplane.autoscaler.load import latest, mean
from controlplane.interlocks import Refusal
from controlplane.leases import LeaseLostError, acquire, fenced, note, release
from dataplane.names import GroupKind
from mgmt.cells.models.scaling import group_words
from mgmt.models import Cell, ControlAction, Controller, Lease, ScaleGroup

_Outcome = ControlAction.Outcome
LASTS: Final = timedelta(seconds=60)  # lanes start within 20 s, and drain within 30
log = structlog.get_logger(__name__)


class ScaleChange(msgspec.Struct, frozen=True):
    """One group's next number of lanes, with the decision behind it."""

    kind: GroupKind
    before: int
    decision: ScaleDecision
    unit: str = "lane"

    @property
    def is_out(self) -> bool:
        """True if lanes are added."""
        return self.decision.lanes > self.before

    def __str__(self) -> str:
        return f"{self.kind} {self.before} -> {self.decision.lanes}"


def act(
    cell: str, groups: Mapping[GroupKind, LaneGroup], decisions: Mapping[GroupKind, ScaleDecision], now: datetime
) -> str:
    """Execute the decisions on a cell's groups, and store the reason of each. Return a summary of the changes.

    Lanes are added first, whatever the cell's verdict is; lanes are removed only while the cell is stable.
    """
    wanted = [ScaleChange(kind, group.lanes, decisions[kind], group.unit) for kind, group in groups.items()]
    changes = [change for change in wanted if change.decision.lanes != change.before]
    first = [change for change in changes if change.is_out] or changes
    refused = _change(cell, first, now, protective=any(change.is_out for change in first)) if first else None
    done = [] if refused else first
    for change in wanted:
        if change in changes and change not in done:
            _store_delay(cell, change, now, refused)
        else:
            memory, why = msgspec.to_builtins(change.decision.memory), change.decision.why[:300]
            ScaleGroup.objects.filter(cell=cell, kind=change.kind).update(memory=memory, why=why)
        ScaleGroup.objects.filter(cell=cell, kind=change.kind).update(seen=_seen(groups[change.kind]), at=now)
    return ", ".join(map(str, done))


def _change(cell: str, changes: list[ScaleChange], now: datetime, *, protective: bool) -> Refusal | None:
    """Write the numbers of lanes under the cell's lease, and keep the lease until the lanes have followed (finish)."""
    lease = acquire(cell, "scale", ", ".join(map(str, changes)), now, protective=protective, lasts=LASTS)
    if isinstance(lease, Refusal):
        return lease
    try:
        with fenced(lease):
            row = Cell.with_ingest.get(id=cell)
            lanes = row.lanes | {change.kind: change.decision.lanes for change in changes}
            epoch = (
                row.epoch + row.is_asleep
            )  # a waking cell gets a new application, even while the last one still drains
            Cell.with_ingest.filter(id=cell).update(lanes=lanes, epoch=epoch, version=F("version") + 1)
            for change in changes:
                _note(cell, change, now)
    except LeaseLostError as exc:
        return Refusal("lease-lost", str(exc), "at the next tick")
    log.info("scaled", cell=cell, lanes=lanes, what=lease.what)
    return None


def _note(cell: str, change: ScaleChange, now: datetime) -> None:
    detail = {"kind": change.kind, "before": change.before, "lanes": change.decision.lanes}
    action = "scale-out" if change.is_out else "scale-in"
    note("scale", action, outcome=_Outcome.DONE, at=now, cell=cell, reason=change.decision.why, detail=detail)


def _store_delay(cell: str, change: ScaleChange, now: datetime, refused: Refusal | None) -> None:
    """Store why a change has to wait, but not the decision's memory, because the change was not made."""
    lanes = change.decision.lanes
    first = refused.why if refused else "lanes of another kind are added or removed first"
    why = f"{lanes} {change.unit}s are needed, but {first}"[:300]
    row = ScaleGroup.objects.filter(cell=cell, kind=change.kind)
    if row.exclude(why=why).update(why=why) and refused:
        detail = {"kind": change.kind, "lanes": lanes}
        refusal = refused.kind
        note("scale", "scale", outcome=_Outcome.REFUSED, at=now, cell=cell, refusal=refusal, reason=why, detail=detail)


def _seen(group: LaneGroup) -> dict[str, float]:
    """Return the load of the last ten seconds, as the console shows it."""
    if not group.figures:
        return {}
    load = mean(latest(group.figures, SOON_S))
    seen = {name: getattr(load, name) for name in ("lanes", "cpu", "came", "settled", "backlog")}
    return seen | ({"lag_s": load.lag_s} if isfinite(load.lag_s) else {})


def finish(cell: str, lanes: Mapping[str, int], reporting: Mapping[str, int], now: datetime) -> None:
    """Release the Autoscaler's lease once the reporting lanes match `lanes`, or when the lease expires."""
    lease = Lease.objects.filter(cell=cell, holder=Controller.SCALE).first()
    if lease is None:
        return
    behind = {kind: (reporting.get(kind, 0), count) for kind, count in lanes.items() if reporting.get(kind, 0) != count}
    if behind and now < lease.until:
        return
    if release(lease) and behind:
        reason = "; ".join(f"{there} of {count} {group_words(kind)} report" for kind, (there, count) in behind.items())
        said = f"after {lease.what}: {reason}"
        note("scale", "scale", outcome=_Outcome.UNFINISHED, at=now, cell=cell, reason=said)
        log.warning("lane count not reached in time", cell=cell, reason=reason)
