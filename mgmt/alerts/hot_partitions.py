"""Decide whether one partition gets so much more than its share of a pipe's events that it lags, or soon will. Pure.

One lane reads a partition, as one consumer of a group does in Kafka, so more lanes do not help a hot partition: only
other keys, or other partitions for the events of a key, do. An uneven distribution without a delay raises no alert.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from msgspec import Struct

from mgmt.deliveries.health import Condition, next_condition

EVEN: Final = Condition()
BucketCounts = Mapping[int, Sequence[int]]  # bucket -> events of the pipe on each partition


class HotPartitionPolicy(Struct, frozen=True):
    """Thresholds of the alert `hot-partition`.

    The thresholds that end an alert are stricter than those that open it and must hold for `recovery`.

    hot:        times the fair share from which a partition is hot; with two or three partitions, where that is nearly
                all there is, half of the way from the fair share to all. Source: the page of sources (decision 0226)
    least:      fewest events for each partition between two checks from which a share is more than chance: with 25,
                twice the fair share is five standard deviations away
    lasts:      time for which a partition must be hot and harmful before an alert opens: with checks every ten seconds
                and notifications ten seconds later, an alert is sent within a minute. A burst of one batch, or a
                restart of a lane, is shorter
    behind:     lag, as time of the partition's own traffic, from which it does harm if it does not shrink
    elsewhere:  times the lag of the pipe's other partitions from which the partition, and not the lanes, is the cause
    part:       share of the partition's records that are of this pipe, from which it can be the cause
    load:       share of what a process lane sustains from which the partition will lag with a little more traffic
    lane_per_s: that rate, in events per second, for a cell without a capacity test: end to end at full speed, single
                events, in docs/performance.md
    recovery:   time for which all must be well before an alert is resolved
    """

    hot: float = 2.0
    least: int = 25
    lasts: timedelta = timedelta(seconds=20)
    behind: timedelta = timedelta(seconds=10)
    elsewhere: float = 2.0
    part: float = 0.3
    load: float = 0.5
    lane_per_s: float = 4_000.0
    recovery: timedelta = timedelta(minutes=5)


class PartitionFigures(Struct, frozen=True):
    """Measurements of the pipe's fullest partition since the last check.

    share, fair: its share of the pipe's events, and an equal share; 0 to 1
    per_s:       events of the pipe on it, per second
    part:        share of its records that are of the pipe, 0 to 1; the rest are of other pipes
    lag:         records of it that no lane has settled yet, of all pipes
    shrinks:     the lag is smaller than at the last check
    elsewhere:   median lag of the pipe's other partitions
    """

    partition: int
    share: float
    fair: float
    per_s: float
    part: float = 1.0
    lag: int = 0
    shrinks: bool = False
    elsewhere: float = 0.0


class HotState(Struct, frozen=True):
    """State of a pipe between checks: its fullest partition, since when it is hot and harmful, and the alert."""

    partition: int | None = None
    suspect_since: datetime | None = None
    alert: Condition = EVEN


def figures_between(
    was: BucketCounts, now: BucketCounts, elapsed: timedelta, least: int
) -> tuple[int, float, float] | None:
    """Return the fullest partition, its share and its events per second, for the events between two checks.

    None if these are fewer than `least` for each partition: then no share is known.
    """
    arrived = [0] * max(map(len, now.values()), default=0)
    for bucket, counts in now.items():
        before = was.get(bucket, ())
        for partition, count in enumerate(counts):
            arrived[partition] += max(0, count - (before[partition] if partition < len(before) else 0))
    total = sum(arrived)
    if total < max(least * len(arrived), 1) or elapsed <= timedelta(0):
        return None
    most = max(arrived)
    return arrived.index(most), most / total, most / elapsed.total_seconds()


def lag_elsewhere(lags: Mapping[int, int], partition: int) -> float:
    """Return the median lag of the other partitions; 0 without any."""
    return median([lag for other, lag in lags.items() if other != partition] or [0])


def next_state(
    was: HotState,
    figures: PartitionFigures | None,
    policy: HotPartitionPolicy,
    now: datetime,
    *,
    lane_per_s: float,
    is_quiet: bool,
) -> HotState:
    """Return the state after a check.

    figures:    None if the pipe has too few events to have a hot partition
    lane_per_s: events per second that a process lane of the cell sustains
    is_quiet:   a ramp, migration or change of the cell is in progress: nothing opens and nothing ends
    """
    if is_quiet:
        return HotState(was.partition, None, Condition(was.alert.since))
    if figures is None:
        return HotState(None, None, next_condition(was.alert, bad=False, well=True, recovery=policy.recovery, now=now))
    is_bad = is_hot(figures, policy) and harms(figures, policy, lane_per_s)
    suspect_since = None
    if is_bad:
        is_same = was.suspect_since is not None and was.partition == figures.partition
        suspect_since = was.suspect_since if is_same else now
    lasts = suspect_since is not None and now - suspect_since >= policy.lasts
    alert = next_condition(
        was.alert, bad=lasts, well=_is_well(figures, policy, lane_per_s), recovery=policy.recovery, now=now
    )
    return HotState(figures.partition, suspect_since, alert)


def is_hot(figures: PartitionFigures, policy: HotPartitionPolicy) -> bool:
    """Return True if the partition gets much more than its fair share."""
    return figures.fair < 1 and figures.share >= _hot_share(figures.fair, policy)


def harms(figures: PartitionFigures, policy: HotPartitionPolicy, lane_per_s: float) -> bool:
    """Return True if the partition lags because of this pipe, or is near what one lane sustains."""
    return _lags(figures, policy) or figures.per_s >= policy.load * lane_per_s


def _hot_share(fair: float, policy: HotPartitionPolicy) -> float:
    return min(policy.hot * fair, (1 + fair) / 2)


def _lags(figures: PartitionFigures, policy: HotPartitionPolicy) -> bool:
    if figures.shrinks or figures.part < policy.part:
        return False
    records_per_s = figures.per_s / figures.part
    behind = policy.behind.total_seconds() * records_per_s
    return figures.lag >= max(behind, policy.elsewhere * figures.elsewhere, 1)


def _is_well(figures: PartitionFigures, policy: HotPartitionPolicy, lane_per_s: float) -> bool:
    """Return True if the share is halfway back to the fair one, or the partition has neither lag nor much load."""
    if figures.fair >= 1 or figures.share < (_hot_share(figures.fair, policy) + figures.fair) / 2:
        return True
    light = figures.per_s < policy.load * lane_per_s * 0.8
    return light and figures.lag < policy.behind.total_seconds() / 2 * figures.per_s
