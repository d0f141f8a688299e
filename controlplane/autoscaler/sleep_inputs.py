"""Reads the inputs of the sleep decision: the cell's policy, its recent traffic, and other work for its lanes."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Max, Min, Q, Sum
from msgspec import convert

from controlplane.autoscaler.decide import STALE_S, DecisionMemory
from controlplane.autoscaler.sleeping import SleepCandidate
from dataplane.names import LANE_KINDS
from mgmt.cells.query_placement import query_in_use
from mgmt.models import (
    Admission,
    Cell,
    OffsetSet,
    PipeMigration,
    PipeRevision,
    Redrive,
    Replay,
    Rollout,
    RolloutStep,
    ScaleGroup,
    ScaleSample,
    Shadow,
)
from mgmt.pipes.queries.pipes import destinations_in_use, specs_in_use


def idle_state(cell: Cell, now: datetime) -> SleepCandidate | None:
    """Return the inputs for a cell that sleeps or may sleep; None, without a query, for any other."""
    if cell.sleeps_after_s is None and not cell.is_asleep:
        return None
    backlog, idle_s = _idle(cell, now)
    woke_s, slept_s = _last_changes(cell)
    return SleepCandidate(
        is_asleep=cell.is_asleep,
        sleeps_after_s=cell.sleeps_after_s,
        asleep_s=now.timestamp() - slept_s,
        idle_s=min(idle_s, now.timestamp() - woke_s),  # after any wake-up it stays awake for the whole time
        backlog=backlog,
        open_work=open_work_on(cell) if cell.is_asleep or idle_s else "",  # a busy cell needs no other reason
    )


def _idle(cell: Cell, now: datetime) -> tuple[int, float]:
    """Return the messages that lanes have not settled, and for how many seconds there were none.

    The time is 0 if samples do not cover the whole span. All groups count: a message that waits in a delay tier is
    backlog just like one that has just arrived.
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


def _last_changes(cell: Cell) -> tuple[float, float]:
    """Return when lanes of any of its groups were last added, and when last removed: Unix time, 0 for never."""
    rows = ScaleGroup.objects.filter(cell=cell).values_list("memory", flat=True)
    memories = [convert(memory, DecisionMemory) for memory in rows]
    return max((one.out_s for one in memories), default=0.0), max((one.in_s for one in memories), default=0.0)


def open_work_on(cell: Cell) -> str:
    """Return what the cell's lanes are needed for apart from arriving messages, in words; "" if nothing."""
    return next((why for find in OPEN_WORK_CHECKS if (why := find(cell))), "")


def _rollout(cell: Cell) -> str:
    steps = RolloutStep.objects.filter(cell=cell, ended_at=None, rollout__state__in=Rollout.OPEN)
    release = steps.values_list("rollout__release_id", flat=True).first()
    return f"release {release} is being rolled out" if release else ""


def _migration(cell: Cell) -> str:
    either = Q(source=cell) | Q(target=cell)
    row = PipeMigration.objects.filter(either, state__in=PipeMigration.UNDER_WAY).first()
    return f"pipe {row.pipe_id} is being migrated" if row else ""


def _redrive(cell: Cell) -> str:
    row = Redrive.objects.filter(pipe__in=cell.pipes.all(), state__in=Redrive.UNDER_WAY).first()
    return f"messages of pipe {row.pipe_id} are being released or redriven" if row else ""


def _replay(cell: Cell) -> str:
    row = Replay.objects.filter(cell=cell, state__in=Replay.UNDER_WAY).first()
    return f"events of pipe {row.pipe_id} are being replayed" if row else ""


def _shadow(cell: Cell) -> str:
    row = Shadow.objects.filter(cell=cell, state__in=Shadow.UNDER_WAY).first()
    return f"a draft of pipe {row.pipe_id} is being rehearsed" if row else ""


def _admission(cell: Cell) -> str:
    row = Admission.objects.filter(pipe__in=cell.pipes.all(), ended_at=None).first()
    return f"pipe {row.pipe_id} is still being admitted gradually" if row else ""


def _revision(cell: Cell) -> str:
    row = PipeRevision.objects.filter(pipe__in=cell.pipes.all(), state__in=["requested", "ramping"]).first()
    return f"revision {row.number} of pipe {row.pipe_id} is being rolled out" if row else ""


def _held(cell: Cell) -> str:
    rows = OffsetSet.objects.filter(pipe_id__in=cell.pipes.values("id"), kind=OffsetSet.Kind.HELD)
    count = rows.aggregate(n=Sum("count"))["n"]
    return f"{count} messages are held and may be released at any time" if count else ""


def _query(cell: Cell) -> str:
    found = ((one.id, query_in_use(specs_in_use(one), destinations_in_use(one))) for one in cell.pipes.all())
    return next((f"pipe {pipe}: {query}, which requires a running query" for pipe, query in found if query), "")


OPEN_WORK_CHECKS: Final = (_rollout, _migration, _redrive, _replay, _shadow, _admission, _revision, _held, _query)
