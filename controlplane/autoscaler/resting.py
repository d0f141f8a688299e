"""Reads what decides whether a cell sleeps: its policy, what came of late, and what else its lanes are needed for."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Max, Min, Q, Sum
from msgspec import convert

from controlplane.autoscaler.decide import STALE_S, Memory
from controlplane.autoscaler.sleeping import Rest
from dataplane.names import LANE_KINDS
from mgmt.models import (
    Admission,
    Cell,
    Move,
    OffsetSet,
    PipeRevision,
    Relocation,
    Rollout,
    RolloutStep,
    ScaleGroup,
    ScaleSample,
)
from mgmt.provisioning.cell_queries import query_in_use
from mgmt.queries.pipes import destinations_in_use, specs_in_use


def rest_of(cell: Cell, now: datetime) -> Rest | None:
    """The cell as it sleeps or may; None if that is not the question. Half a dozen queries otherwise."""
    if cell.sleeps_after_s is None and not cell.is_asleep:
        return None
    backlog, idle_s = _idle(cell, now)
    woke_s, slept_s = _turned(cell)
    return Rest(
        is_asleep=cell.is_asleep,
        sleeps_after_s=cell.sleeps_after_s,
        asleep_s=now.timestamp() - slept_s,
        idle_s=min(idle_s, now.timestamp() - woke_s),  # it stays awake for as long, whatever woke it
        backlog=backlog,
        errand=errand_on(cell) if cell.is_asleep or idle_s else "",  # one that is busy anyhow needs no other reason
    )


def _idle(cell: Cell, now: datetime) -> tuple[int, float]:
    """What lies before lanes, and for how long nothing has; 0 s if that is not known of the whole span.

    Looked at over all groups: what waits for its time before the retrier is left over as much as what has just come.
    """
    since = now - timedelta(seconds=cell.sleeps_after_s or 0)
    rows = ScaleSample.objects.filter(cell=cell.id, at__gte=since).order_by()
    groups = rows.values("kind").annotate(
        first=Min("at"), last=Max("at"), low=Min("came"), high=Max("came"), settled=Min("settled")
    )
    newest = ScaleSample.objects.filter(cell=cell.id, at__gte=now - timedelta(seconds=STALE_S)).order_by("kind", "-at")
    backlog = sum(max(0, came - settled) for came, settled in newest.distinct("kind").values_list("came", "settled"))
    seen = list(groups)
    is_whole = len(seen) == len(LANE_KINDS) and all(
        (row["first"] - since).total_seconds() <= STALE_S and (now - row["last"]).total_seconds() <= STALE_S
        for row in seen
    )
    is_quiet = all(row["low"] == row["high"] == row["settled"] for row in seen)
    return backlog, float(cell.sleeps_after_s or 0) if is_whole and is_quiet else 0.0


def _turned(cell: Cell) -> tuple[float, float]:
    """When lanes were added last in any of its groups, and when they were taken back; Unix time, 0 for never."""
    rows = ScaleGroup.objects.filter(cell=cell).values_list("memory", flat=True)
    memories = [convert(memory, Memory) for memory in rows]
    return max((one.out_s for one in memories), default=0.0), max((one.in_s for one in memories), default=0.0)


def errand_on(cell: Cell) -> str:
    """What the cell's lanes are needed for besides messages that come; "" if nothing."""
    return next((why for find in ERRANDS if (why := find(cell))), "")


def _rollout(cell: Cell) -> str:
    steps = RolloutStep.objects.filter(cell=cell, ended_at=None, rollout__state__in=Rollout.OPEN)
    release = steps.values_list("rollout__release_id", flat=True).first()
    return f"release {release} is being rolled out" if release else ""


def _relocation(cell: Cell) -> str:
    either = Q(source=cell) | Q(target=cell)
    row = Relocation.objects.filter(either, state__in=Relocation.UNDER_WAY).first()
    return f"pipe {row.pipe_id} is being moved" if row else ""


def _move(cell: Cell) -> str:
    row = Move.objects.filter(pipe__in=cell.pipes.all(), state__in=Move.UNDER_WAY).first()
    return f"messages of pipe {row.pipe_id} are being released or sent again" if row else ""


def _admission(cell: Cell) -> str:
    row = Admission.objects.filter(pipe__in=cell.pipes.all(), ended_at=None).first()
    return f"pipe {row.pipe_id} is being let in by shares" if row else ""


def _revision(cell: Cell) -> str:
    row = PipeRevision.objects.filter(pipe__in=cell.pipes.all(), state__in=["requested", "ramping"]).first()
    return f"revision {row.number} of pipe {row.pipe_id} is on its way to live" if row else ""


def _held(cell: Cell) -> str:
    rows = OffsetSet.objects.filter(pipe_id__in=cell.pipes.values("id"), kind=OffsetSet.Kind.HELD)
    count = rows.aggregate(n=Sum("count"))["n"]
    return f"{count} messages are held, and go out as soon as somebody lets them" if count else ""


def _query(cell: Cell) -> str:
    found = ((one.id, query_in_use(specs_in_use(one), destinations_in_use(one))) for one in cell.pipes.all())
    return next((f"pipe {pipe}: {query}, and its query runs on" for pipe, query in found if query), "")


ERRANDS: Final = (_rollout, _relocation, _move, _admission, _revision, _held, _query)
