"""Decisions of the replays of a cell: what to do next with each. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from dataplane.expr import ExpressionError
from dataplane.ledger.units import format_position, position_of
from dataplane.names import PartitionKey
from dataplane.replay.ranges import is_resolved, remaining
from dataplane.replay.selection import EventSelection
from dataplane.replay.turns import RunStep
from dataplane.spec import RemoteDestination, TopicDestination
from dataplane.tables.records import CellRecord, DestinationRecord, PipeRecord, PlanRecord, ReplayRecord, TopicRecord
from dataplane.tables.redrives import parse_place
from dataplane.tables.replays import ReplayProgress

ABORTED: Final = "aborted"
PAUSED: Final = "paused"
NO_SLOT: Final = "all task slots of the cell are in use by lanes"
FAILED: Final = "interrupted by an error of the platform; it continues automatically"
SHARE: Final = 0.5  # of a destination's rate limit that a replay takes


class ReplayContext(Struct, frozen=True):
    """Control records that a replay depends on, as they are now; None for a missing one.

    has_salt: the tenant's salt can be decrypted, or no step of the plan needs it
    slots:    task slots that a job may take
    """

    cell: CellRecord
    pipe: PipeRecord | None
    plan: PlanRecord | None
    destinations: Mapping[str, DestinationRecord | None]
    has_salt: bool
    slots: int


def next_step(record: ReplayRecord, progress: ReplayProgress | None, now: ReplayContext) -> RunStep:
    """Return what to do with a replay that is not done."""
    if record.state == "ended":
        is_complete = progress is not None and is_resolved(progress) and not remaining(progress)
        return RunStep("end", "" if is_complete else ABORTED)
    if reason := refusal_of(record, progress, now):
        return RunStep("end", reason)
    if reason := _waiting_reason(record, now):
        return RunStep("wait", reason)
    if progress is None or not is_resolved(progress):
        return RunStep("resolve")
    return RunStep("run") if remaining(progress) else RunStep("end")


def refusal_of(record: ReplayRecord, progress: ReplayProgress | None, now: ReplayContext) -> str:
    """Return the reason why a replay cannot run at all, for people; "" if it can."""
    if now.pipe is None or now.plan is None:
        return f"revision {record.revision} is not published"
    is_closed = now.pipe.state == "closed"
    if reason := "the pipe is closed" if is_closed else _refused_destination(record, now.plan, now.destinations):
        return reason
    if not now.has_salt:
        return "the secret of the revision's hash steps cannot be decrypted"
    try:
        EventSelection(record)
    except ExpressionError as exc:
        return f"the expression is invalid: {exc}"
    ingest = now.cell.topics.get("ingest")
    if progress is not None and any(ingest is None or parse_place(place)[0] != ingest.name for place in progress.ends):
        return "the events are no longer in the pipe's cell"
    return ""


def _refused_destination(
    record: ReplayRecord, plan: PlanRecord, destinations: Mapping[str, DestinationRecord | None]
) -> str:
    for name in record.destinations:
        to, current = plan.spec.destinations.get(name), destinations.get(name)
        if to is None:
            return f"revision {record.revision} has no destination {name}"
        if current is None or current.state == "removed":
            return f"the destination {name} does not exist any more"
        if not isinstance(to, RemoteDestination | TopicDestination):
            return f"the destination {name} is not of type http, s3, postgres or topic"
    return "" if record.destinations else "no destination is chosen"


def _waiting_reason(record: ReplayRecord, now: ReplayContext) -> str:
    if record.state == "paused":
        return PAUSED
    if not record.rehearsal:
        if now.pipe is not None and now.pipe.state == "paused":
            return "the pipe is paused"
        for name in record.destinations:
            if (current := now.destinations.get(name)) is not None and current.state != "active":
                return f"the destination {name} is {current.state}"
    return NO_SLOT if now.slots < 1 else ""


def rate_of(record: ReplayRecord, destinations: Iterable[DestinationRecord | None]) -> float:
    """Return a replay's rate in units per second: at most SHARE of the lowest limit of its destinations.

    A queue of copies that grows would delay the live messages of the destination without end.
    """
    limits = [one.to.rate_per_s for one in destinations if one is not None and one.to.rate_per_s]
    return min([record.rate_per_s, *(SHARE * limit for limit in limits)])


def pause_s(units: int, rate_per_s: float, took_s: float) -> float:
    """Return the seconds until a replay's next job, so that its rate holds over the whole time."""
    return max(0.0, units / rate_per_s - took_s)


def crash_reason(topic: TopicRecord, reached: Iterable[tuple[PartitionKey, int]]) -> str:
    """Return the reason for the end of a run whose tasks end their processes at one event.

    reached: partitions of the topic, and the offsets from which the tasks read them
    """
    places = [format_position(position_of(topic.generation, place[1], offset)) for place, offset in reached]
    return f"an event at or shortly after {', '.join(places)} ends the process that runs it; leave it out with a filter"
