"""Watch busy pipes for a hot partition: open and resolve the alert `hot-partition`."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from dataplane.causes import Cause
from dataplane.spec import PipeSpec, can_spread, parse_pipe_spec
from mgmt.alerts.hot_partitions import (
    HotPartitionPolicy,
    HotState,
    PartitionFigures,
    figures_between,
    lag_elsewhere,
    next_state,
)
from mgmt.alerts.services.alerts import AlertReport, end_condition, open_alerts, report_condition
from mgmt.cells.policies import cell_master
from mgmt.cells.queries.capacity_tests import newest_capacity_results
from mgmt.deliveries.health import Condition
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.ledger.queries.heavy_keys import HeavyKey, newest_heavy_keys, shown_keys
from mgmt.ledger.queries.partition_counts import PartitionCounts, busiest_pipes, lags_of, partition_counts
from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import (
    Admission,
    CapacityResult,
    Lease,
    PartitionWatch,
    Pipe,
    PipeMigration,
    PipeRevision,
    Ramp,
    SettledOffset,
    Topic,
)

MINUTES: Final = 3  # of event time, in which events arrive; older ones are too few to matter
AT_ONCE: Final = 200  # pipes checked in one run, the busiest first
MOST_READS: Final = 3  # of keys from Kafka in one run; each waits for three seconds at most
GAP: Final = timedelta(minutes=1)  # after a longer pause the events since the last check are not of one moment
CHANGING: Final = ("deploy", "scale")
SPREAD: Final = "no partition is overloaded any more"
STOPPED: Final = "the pipe is paused or closed"


class _KeyReader:
    """Reader of the heavy keys of partitions, with a limit for one run."""

    def __init__(self) -> None:
        self._left = MOST_READS

    def read(self, pipe: Pipe, topic: str, partition: int) -> tuple[Sequence[HeavyKey], str] | None:
        """Return the heavy keys, or why they cannot be read; None if the limit is reached."""
        if not self._left:
            return None
        self._left -= 1
        try:
            return newest_heavy_keys(pipe, topic, partition), ""
        except RecordUnavailableError as exc:
            return (), str(exc)


class _Run(Struct, frozen=True):
    """Settings and rows that all checks of one run share.

    quiet_cells, quiet_pipes: a ramp, admission, migration, rollout or scaling is in progress
    rates:                    events per second of one process lane, by cell
    topics:                   newest generation of the ingest topic, by cell
    settled:                  settled offsets of these topics, by partition
    """

    now: datetime
    policy: HotPartitionPolicy
    keys: _KeyReader
    quiet_cells: Collection[str]
    quiet_pipes: Collection[str]
    rates: Mapping[str, float]
    topics: Mapping[str, Topic]
    settled: Mapping[str, Mapping[int, int]]


def watch_partitions(now: datetime, policy: HotPartitionPolicy) -> int:
    """Check each busy pipe whose events have keys. Returns the number of pipes with an alert.

    Safe to run twice: the state is stored with the time since which it holds, and an alert is opened once.
    """
    run = _run(now, policy)
    rows = {row.pipe_id: row for row in PartitionWatch.objects.all()}
    least = policy.least * min((topic.partitions for topic in run.topics.values()), default=1)
    busy = busiest_pipes(_first(now), least=least, most=AT_ONCE)
    alerted = [pipe_id for pipe_id, row in rows.items() if row.hot_since]
    live = PipeRevision.objects.filter(pipe_id__in={*busy, *alerted}, state=PipeRevision.State.LIVE)
    found = [_checked(revision, rows.get(revision.pipe_id), run) for revision in live.select_related("pipe")]
    checked = [row for row in found if row is not None]
    PartitionWatch.objects.exclude(pipe_id__in=[row.pipe_id for row in checked]).delete()
    fields = [field.name for field in PartitionWatch._meta.fields if not field.primary_key]
    PartitionWatch.objects.bulk_create(checked, update_conflicts=True, unique_fields=["pipe_id"], update_fields=fields)
    return sum(row.hot_since is not None for row in checked)


def _first(now: datetime) -> int:
    return bucket_at(now) - MINUTES + 1


def _run(now: datetime, policy: HotPartitionPolicy) -> _Run:
    leases = Lease.objects.filter(taken_at__lte=now, until__gt=now, holder__in=CHANGING)
    moving = PipeMigration.objects.filter(state__in=PipeMigration.UNDER_WAY).values_list("source", "target")
    ramping = Ramp.objects.filter(ended_at=None).values_list("revision__pipe_id", flat=True)
    admitting = Admission.objects.filter(ended_at=None).values_list("pipe_id", flat=True)
    tests = newest_capacity_results(master=cell_master(), group=CapacityResult.Group.PROCESS)
    newest = Topic.objects.filter(purpose="ingest").order_by("cell", "-generation").distinct("cell")
    topics = {topic.cell_id: topic for topic in newest}
    settled: defaultdict[str, dict[int, int]] = defaultdict(dict)
    marks = SettledOffset.objects.filter(topic__in=[topic.name for topic in topics.values()])
    for name, partition, offset in marks.values_list("topic", "partition", "offset"):
        settled[name][partition] = offset
    return _Run(
        now,
        policy,
        _KeyReader(),
        quiet_cells={*leases.values_list("cell_id", flat=True), *chain.from_iterable(moving)},
        quiet_pipes={*ramping, *admitting},
        rates={cell: result[CapacityResult.Group.PROCESS].per_s for cell, result in tests.items()},
        topics=topics,
        settled=settled,
    )


def _checked(revision: PipeRevision, row: PartitionWatch | None, run: _Run) -> PartitionWatch | None:
    """Check one pipe; return its new state, None for a pipe that needs none."""
    pipe, spec = revision.pipe, parse_pipe_spec(revision.spec)
    topic = run.topics.get(str(pipe.cell_id))
    was = _state_of(row) if row else HotState()
    if pipe.state != Pipe.State.ACTIVE or topic is None:
        if was.alert.since:
            _end(pipe, STOPPED, run.now)
        return None
    if not _shares_partitions(spec) and was.alert.since is None:
        return None
    reading = partition_counts(pipe.id, _first(run.now), topic)
    lags = lags_of(run.settled.get(topic.name, {}), reading.ends)
    figures = _figures(row, reading, lags, topic, run) if row and _shares_partitions(spec) else None
    is_quiet = pipe.cell_id in run.quiet_cells or pipe.id in run.quiet_pipes
    lane_per_s = run.rates.get(topic.cell_id, run.policy.lane_per_s)
    state = next_state(was, figures, run.policy, run.now, lane_per_s=lane_per_s, is_quiet=is_quiet)
    if figures and state.alert.since and not state.alert.well_since and not is_quiet:
        if not _report(pipe, spec, topic, figures, run, is_new=was.alert.since is None):
            state = HotState(state.partition, state.suspect_since)
    elif was.alert.since and not state.alert.since:
        _end(pipe, SPREAD, run.now)
    return PartitionWatch(
        pipe_id=pipe.id,
        checked_at=run.now,
        counts={str(bucket): list(counts) for bucket, counts in reading.counts.items()},
        partition=state.partition,
        lag=lags.get(state.partition, 0) if state.partition is not None else 0,
        suspect_since=state.suspect_since,
        hot_since=state.alert.since,
        well_since=state.alert.well_since,
    )


def _shares_partitions(spec: PipeSpec) -> bool:
    """Return True if events of one key share a partition; events without keys are distributed in turn."""
    return any(can_spread(source) for source in spec.sources.values())


def _figures(
    row: PartitionWatch,
    reading: PartitionCounts,
    lags: Mapping[int, int],
    topic: Topic,
    run: _Run,
) -> PartitionFigures | None:
    elapsed = run.now - row.checked_at
    if elapsed > GAP:
        return None
    before = {int(bucket): counts for bucket, counts in row.counts.items()}
    found = figures_between(before, reading.counts, elapsed, run.policy.least)
    if found is None:
        return None
    partition, share, per_s = found
    lag = lags.get(partition, 0)
    return PartitionFigures(
        partition=partition,
        share=share,
        fair=1 / topic.partitions,
        per_s=per_s,
        part=reading.parts.get(partition, 0.0),
        lag=lag,
        shrinks=row.partition == partition and lag < row.lag,
        elsewhere=lag_elsewhere(lags, partition),
    )


def _report(pipe: Pipe, spec: PipeSpec, topic: Topic, figures: PartitionFigures, run: _Run, *, is_new: bool) -> bool:
    """Open the alert or update its figures. Returns False if it must not be opened, or not in this run.

    It is not opened if no key has a large part of the partition: then no key explains it, and no cure of keys helps.
    """
    rows = open_alerts().filter(pipe_id=pipe.id, destination="", cause=Cause.HOT_PARTITION)
    alert = None if is_new else rows.first()
    known = alert.details if alert else {}
    if known.get("partition") == figures.partition and known.get("keys"):
        named: dict[str, Any] = {"keys": known["keys"], "keys_unknown": ""}
    else:
        read = run.keys.read(pipe, topic.name, figures.partition)
        if read is None:
            return not is_new
        heavy, unknown = read
        if is_new and not heavy and not unknown:
            return False
        shown = [{"key": one.key, "share_percent": round(one.share * 100, 1)} for one in shown_keys(heavy, spec)]
        named = {"keys": shown, "keys_unknown": unknown or ("" if shown else "no key has a large part")}
    details = {
        "partition": figures.partition,
        "share_percent": round(figures.share * 100, 1),
        "fair_percent": round(figures.fair * 100, 1),
        "per_s": round(figures.per_s, 1),
        "lag": figures.lag,
        **named,
    }
    report_condition(report=AlertReport(pipe.id, "", Cause.HOT_PARTITION, figures.lag, details, {}), now=run.now)
    return True


def _end(pipe: Pipe, resolution: str, now: datetime) -> None:
    end_condition(pipe_id=pipe.id, destination="", cause=Cause.HOT_PARTITION, resolution=resolution, now=now)


def _state_of(row: PartitionWatch) -> HotState:
    return HotState(row.partition, row.suspect_since, Condition(row.hot_since, row.well_since))
