"""What one tick of the Deployer looks at: plain values, so that deciding needs no database and no Kafka."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct


class Health(Struct, frozen=True):
    """How a cell's messages did over some whole minutes.

    accepted: units that ingest ACKed;  ended: how many times a unit came to an end or to another try at a destination
    failed:   of these, those that are dead, held, or wait for another try
    p95_us:   95th percentile of the lag at the end of the way, in microseconds; None if nothing was delivered
    """

    accepted: int = 0
    ended: int = 0
    failed: int = 0
    p95_us: int | None = None

    @property
    def failed_share(self) -> float:
        """0..1; nothing ended is no failure."""
        return self.failed / self.ended if self.ended else 0.0


class StepView(Struct, frozen=True):
    """One cell's part in a rollout; `state` as in mgmt's RolloutStep.

    touched_at: when the cell was given the release, or given back the one before;  up_at: when all its lanes reported
    before:     its health before it was touched
    """

    id: int
    number: int
    cell: str
    state: str
    why: str = ""
    touched_at: datetime | None = None
    up_at: datetime | None = None
    before: Health = Health()


class CellSight(Struct, frozen=True):
    """A cell as it is now.

    refusal:  why it may not be given another release now; "" if it may
    occupied: who else may change it just now, in words; "" if nobody: what even a return has to wait for
    missing:  the wanted lane that has not reported lately from the application that was asked for; "" if all have
    silent_s: since when the most silent of these lanes has not
    deaths:   how many times the lane that died most often did so in this application
    found:    its health in the minutes since its lanes came up
    """

    refusal: str = ""
    occupied: str = ""
    missing: str = ""
    silent_s: float = 0.0
    deaths: int = 0
    found: Health = Health()


class RolloutView(Struct, frozen=True):
    """The rollout that is open."""

    id: int
    release: str
    state: str
    steps: list[StepView]


class Policy(Struct, frozen=True):
    """When a release counts as bad.

    up_s:         all lanes of a cell must report within so many seconds, or it has not come up
    watch_s:      how long a cell is watched before the next one's turn
    silent_s:     a lane that says nothing for so long is gone
    deaths:       so many times a lane may die: once it may meet a fault that is not the release's
    failed_more:  the share of failing messages (0..1) may grow by so much
    slower_us:    the lag's 95th percentile may grow by so much, and not more than double
    enough:       fewer messages than this say nothing
    """

    up_s: float
    watch_s: float
    silent_s: float = 20.0
    deaths: int = 1
    failed_more: float = 0.05
    slower_us: int = 1_000_000
    enough: int = 50


class Snapshot(Struct, frozen=True):
    """`blind`: no heartbeat came from anywhere lately, so silence says nothing about any cell."""

    rollout: RolloutView
    cells: Mapping[str, CellSight]
    now: datetime
    policy: Policy
    blind: bool = False
