"""Input of one tick of the Deployer: plain values, so that deciding needs no database and no Kafka."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from controlplane.interlocks import RefusalKind

LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class CellErrorRate(Struct, frozen=True):
    """Error rate and lag of a cell's messages over some whole minutes.

    accepted: units that ingest ACKed
    ended:    how many times a unit ended, was held, or was scheduled for a retry
    failed:   of these, the units that are dead, held, or scheduled for a retry
    p95_us:   95th percentile of the lag after delivery, in microseconds; None if nothing was delivered

    Of ingest: responses of its replicas since they started, the refused ones and internal errors (500) among them, and
    responses of the replicas that have another release.
    """

    accepted: int = 0
    ended: int = 0
    failed: int = 0
    p95_us: int | None = None
    responses: int = 0
    refused: int = 0
    errors: int = 0
    of_others: int = 0

    @property
    def refused_share(self) -> float:
        """Return the share of refused requests, 0..1; 0 if there were none."""
        return self.refused / self.responses if self.responses else 0.0

    @property
    def error_share(self) -> float:
        """Return the share of responses that are internal errors, 0..1; 0 if there were none."""
        return self.errors / self.responses if self.responses else 0.0

    @property
    def failed_share(self) -> float:
        """Return the share of failed units, 0..1; 0 if no unit has ended."""
        return self.failed / self.ended if self.ended else 0.0


class RolloutStepView(Struct, frozen=True):
    """One step of a rollout; `cell` and `state` as in mgmt's RolloutStep.

    touched_at: when the cell got the release, or its earlier release again
    up_at:      when all its lanes had reported
    before:     the cell's error rate before it was touched
    """

    id: int
    number: int
    cell: str
    state: str
    why: str = ""
    touched_at: datetime | None = None
    up_at: datetime | None = None
    before: CellErrorRate = CellErrorRate()


class CellStatus(Struct, frozen=True):
    """A cell as it is now.

    refusal:  why it may not get another release now; "" if it may
    refusal_kind: type of that reason
    occupied: which other controller is changing it, in words; "" if none; even a rollback waits for that
    missing:  the expected writer that has been silent longest in the present application; "" if all are fresh
    silent_s: seconds of that silence; infinite if the writer never sent a heartbeat
    lane_restarts: restarts of the lane or replica that has been restarted most often in this application
    in_series: number of replicas that are replaced one after the other
    found:    error rate in the minutes since its lanes came up
    """

    refusal: str = ""
    refusal_kind: RefusalKind | None = None
    occupied: str = ""
    missing: str = ""
    silent_s: float = 0.0
    lane_restarts: int = 0
    in_series: int = 1
    found: CellErrorRate = CellErrorRate()


class RolloutView(Struct, frozen=True):
    """The open rollout."""

    id: int
    release: str
    state: str
    steps: list[RolloutStepView]


class RolloutPolicy(Struct, frozen=True):
    """Limits beyond which a release counts as bad.

    up_s:         seconds within which all lanes of a cell must report
    watch_s:      seconds for which a cell is watched before the next one's step
    silent_s:     seconds of silence after which a lane counts as gone
    lane_restarts: restarts allowed per lane: one may be due to a fault that is not the release's
    failed_more:  allowed increase of the share of failing messages (0..1)
    slower_us:    allowed increase of the lag's 95th percentile, in microseconds; twice the earlier lag is allowed, too
    enough:       number of messages, or of requests, below which nothing is judged
    errors:       internal errors of ingest allowed
    refused_before, refused_after: share of refused requests above which ingest refused much before, and is bad now; far
                  apart, because one sender with bad requests may be connected to any replica
    enough_of_others: responses of other replicas after which a replica without any is bad
    """

    up_s: float
    watch_s: float
    silent_s: float = 20.0
    lane_restarts: int = 1
    failed_more: float = 0.05
    slower_us: int = 1_000_000
    enough: int = 50
    errors: int = 5
    refused_before: float = 0.25
    refused_after: float = 0.5
    enough_of_others: int = 500


class DeployerSnapshot(Struct, frozen=True):
    """Rollout and cells at one moment.

    since: when this control plane started; silence before that may be that of a whole installation which was down
    blind: no recent heartbeat at all, so silence says nothing about a cell
    """

    rollout: RolloutView
    cells: Mapping[str, CellStatus]
    now: datetime
    policy: RolloutPolicy
    since: datetime = LONG_AGO
    blind: bool = False
