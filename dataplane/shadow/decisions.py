"""Decisions of the shadow runs of a cell: what to do next with each, and how large its next job is. Pure."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dataplane.replay.decisions import ABORTED, NO_SLOT
from dataplane.replay.ranges import is_resolved, remaining
from dataplane.replay.turns import RunStep
from dataplane.shadow.comparison import ComparedDestinations
from dataplane.tables.records import CellRecord, PipeRecord, PlanRecord, ShadowRecord
from dataplane.tables.redrives import format_place, parse_place
from dataplane.tables.shadows import ShadowProgress

FIRST_RECORDS: Final = 500  # of the first job of a run
MOST_RECORDS: Final = 100_000  # of one job; those of other pipes are only read
MOST_EVENTS: Final = 10_000  # of one job
MOST_BYTES: Final = 32 * 1024 * 1024  # of the bodies of one job, both sides; the shuffle holds them
JOB_S: Final = 2.0  # for reading and comparing the events of a job
SENT_S: Final = 20.0  # for reading deliveries; most of it is the same for a small job
IDLE_S: Final = 2.0  # until a run that has caught up looks for new events
FEWEST_AT_END: Final = 256  # records of a job, although fewer events are left of the number that the run compares
DEDUP_US: Final = 30_000_000  # events of a pipe with dedup return to the ingest topic before they are sent


class ShadowContext(Struct, frozen=True):
    """Control records that a run depends on, as they are now; None for a missing one.

    problem:  why a plan does not compile; "" if both do
    has_salt: the tenant's salt can be decrypted, or no step of the plans needs it
    slots:    task slots that a job may take
    """

    cell: CellRecord
    pipe: PipeRecord | None
    plan: PlanRecord | None
    problem: str
    has_salt: bool
    slots: int


def next_shadow_step(record: ShadowRecord, progress: ShadowProgress | None, now: ShadowContext) -> RunStep:
    """Return what to do with a run that is not done. A run that follows live traffic always has a next job."""
    is_full = progress is not None and 0 < record.most_events <= progress.events
    has_begun = progress is not None and is_resolved(progress)
    follows = not record.until_us
    if record.state == "ended":
        is_complete = is_full or (progress is not None and has_begun and (follows or not remaining(progress)))
        return RunStep("end", "" if is_complete else ABORTED)
    if is_full:
        return RunStep("end")
    if reason := refusal_of_shadow(record, progress, now):
        return RunStep("end", reason)
    if now.slots < 1:
        return RunStep("wait", NO_SLOT)
    if progress is None or not has_begun:
        return RunStep("resolve")
    return RunStep("run") if follows or remaining(progress) else RunStep("end")


def refusal_of_shadow(record: ShadowRecord, progress: ShadowProgress | None, now: ShadowContext) -> str:
    """Return the reason why a run cannot go on at all, for people; "" if it can."""
    if now.pipe is None or now.plan is None:
        return f"revision {record.revision} is not published"
    ingest = now.cell.topics.get("ingest")
    places = progress.ends if progress is not None else {}
    has_moved = any(ingest is None or parse_place(one)[0] != ingest.name for one in places)
    reasons = {
        "the pipe is closed": now.pipe.state == "closed",
        "the pipe has been migrated to another cell": has_moved or now.pipe.cell != record.cell,
        now.problem: bool(now.problem),
        "the secret of the hash steps cannot be decrypted": not now.has_salt,
        "the draft has no destination of type http, s3, postgres or topic": not ComparedDestinations(
            record.spec, now.plan.spec
        ).chosen,
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


def next_size(record: ShadowRecord, progress: ShadowProgress, size: int) -> int:
    """Return how many records the next job reads.

    Near the end of the number of events, they are about as many as have the rest of the events among them.

    size: as `size_after` has left it
    """
    if not record.most_events or not progress.events:
        return size
    left = record.most_events - progress.events
    return min(size, max(FEWEST_AT_END, left * progress.read // progress.events))


def size_after(size: int, *, records: int, events: int, size_bytes: int, took_s: float, sent_s: float) -> int:
    """Return the size of the next job: it takes about JOB_S, and holds at most MOST_EVENTS and MOST_BYTES.

    It at most doubles, because a job that is too long or too large delays the lanes.

    size:    the most records that the last job could have
    records: those that it had, also of other pipes
    took_s:  time for reading and comparing its events; waiting for a task slot costs a small job as much
    sent_s:  time for reading deliveries
    """
    by_time = size * 2 if took_s < JOB_S / 2 else size // 2 if took_s > JOB_S * 2 else size
    by_sent = max(min(size, FIRST_RECORDS), size // 2) if sent_s > SENT_S else MOST_RECORDS
    by_events = records * MOST_EVENTS // events if events else MOST_RECORDS
    by_bytes = records * MOST_BYTES // size_bytes if size_bytes else MOST_RECORDS
    return max(1, min(by_time, by_sent, by_events, by_bytes, MOST_RECORDS))


def size_after_failure(size: int) -> int:
    """Return the size of the next job after one that was too large or failed, perhaps because of one event."""
    return max(1, size // 4)


def compared_until(
    record: ShadowRecord,
    progress: ShadowProgress,
    times_us: Mapping[str, int],
    idle_us: Mapping[str, int],
) -> int:
    """Return the ingest time up to which all events are compared: the lowest of the partitions, never less than before.

    times_us: by partition, as in `reached`, the ingest time of the last record that was read
    idle_us:  by partition, the time at which the live revision had processed all of its records
    """
    found = []
    for place, end in progress.ends.items():
        known_us = times_us.get(place, progress.compared_until_us)
        is_done = progress.reached.get(place, 0) >= end
        if is_done and record.until_us:
            known_us = record.until_us
        elif is_done:
            known_us = max(known_us, idle_us.get(place, 0))
        found.append(known_us)
    return max(progress.compared_until_us, min(found, default=0))


def with_ends(progress: ShadowProgress, topic: str, committed: Mapping[int, int]) -> dict[str, int]:
    """Return the ends of a run that follows live traffic; an offset that was never committed ends where the run is.

    committed: by partition, the offsets of the process lanes' group; below 0 if there is none
    """
    ends = dict(progress.ends)
    for number, offset in committed.items():
        place = format_place((topic, number))
        ends[place] = max(ends.get(place, 0), progress.reached.get(place, 0), offset)
    return ends
