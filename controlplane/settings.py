"""What the control plane reads from Django's settings, in one typed place; the defaults suit one box in development."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings as django_settings
from msgspec import Struct

from dataplane.addresses import DEFAULT_KAFKA
from dataplane.names import DELAYS_S, WHOLE, Purpose

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

# The longest retry span a spec may ask for is 7 days; what waits or ended must outlive it by 7 more (lanes.md).
RETENTION_MS: Final[dict[Purpose, int]] = {
    "ingest": 7 * DAY_MS,
    "egress": 7 * DAY_MS,
    "slow": 7 * DAY_MS,
    "retry-in": 14 * DAY_MS,
    **dict.fromkeys(DELAYS_S, 14 * DAY_MS),
    "retry-out": 14 * DAY_MS,
    "dead": 14 * DAY_MS,
    "held": 14 * DAY_MS,
    "lake": 14 * DAY_MS,
    "attempts": 2 * DAY_MS,
    "signals": -1,  # compacted
    "tail": HOUR_MS,  # copies for whoever looks on
    "dedup": 7 * DAY_MS,
    "taps": 7 * DAY_MS,
    "panes": 14 * DAY_MS,  # compacted as well: who has had no event for so long is not asked about
    "blocked": 14 * DAY_MS,  # compacted as well: what blocked a key has ended long before
}
AUDIT_RETENTION_MS: Final = 7 * DAY_MS
HEARTBEAT_RETENTION_MS: Final = HOUR_MS


class TopicShape(Struct, frozen=True):
    """How topics are made: partitions of a cell's topics, copies, and how many must hold what is ACKed."""

    partitions: int
    replication: int
    min_isr: int
    max_record_bytes: int
    retention_ms: dict[Purpose, int]


class RampPolicy(Struct, frozen=True):
    """How a revision of a pipe with traffic comes live.

    steps:     shares of the keys in percent, growing; the last is 100
    hold:      each step lasts at least so long
    evidence:  messages that the ramping revision must have taken for a step to say anything about it
    patience:  a step without so many goes on after this
    few:       so many failures are never a reason to go back
    tolerance: share of messages that may fail beyond the stable revision's rate
    slower, slower_by_us: its p95 may be so many times the stable one's, or so much more, whichever is larger
    recently:  what a pipe took within it says how soon its steps come to their evidence; those that would not in
               `patience` are left out, and a pipe that takes too little for any changes over at once
    """

    steps: tuple[int, ...] = (1, 5, 25, 50, 100)
    hold: timedelta = timedelta(seconds=30)
    evidence: int = 20
    patience: timedelta = timedelta(minutes=5)
    few: int = 2
    tolerance: float = 0.01
    slower: float = 2.0
    slower_by_us: int = 500_000
    recently: timedelta = timedelta(hours=1)


class ControlSettings(Struct, frozen=True):
    """Addresses and limits of the control plane."""

    kafka: str
    var: Path
    cell_master: str
    grace_s: int
    topics: TopicShape
    attempt_sample_per_s: int  # successes kept per pipe and second; failures are all kept
    attempts_keep_h: int
    facts_keep_d: int
    rollout_up_s: float
    rollout_watch_s: float
    lanes_max: int  # of one kind in a cell, where staff have said nothing else
    ramp: RampPolicy = RampPolicy()

    @property
    def ends_keep(self) -> timedelta:
        """How long dead letters and held messages are there to be shown and brought back: as long as their topics."""
        kept = self.topics.retention_ms
        return timedelta(milliseconds=max(kept["dead"], kept["held"]))


def control_settings() -> ControlSettings:
    """Read Django's settings."""
    production = _get("PENSTOCK_ENV", "development") == "production"
    return ControlSettings(
        kafka=_get("PENSTOCK_KAFKA", DEFAULT_KAFKA),
        var=Path(_get("PENSTOCK_VAR", "var")).absolute(),
        cell_master=_get("PENSTOCK_CELL_MASTER", "local[16,1000]"),
        grace_s=int(_get("PENSTOCK_GRACE_S", 60)),
        topics=TopicShape(
            partitions=int(_get("PENSTOCK_PARTITIONS", 4)),
            replication=int(_get("PENSTOCK_REPLICATION", 3 if production else 1)),
            min_isr=int(_get("PENSTOCK_MIN_ISR", 2 if production else 1)),
            # Headroom over the largest event: headers, and what normalize and enrich may add.
            max_record_bytes=max(1_048_588, 4 * int(_get("PENSTOCK_MAX_EVENT_BYTES", 256 * 1024))),
            retention_ms={**RETENTION_MS, **getattr(django_settings, "PENSTOCK_RETENTION_MS", {})},
        ),
        attempt_sample_per_s=int(_get("PENSTOCK_ATTEMPT_SAMPLE", 5)),
        attempts_keep_h=int(_get("PENSTOCK_ATTEMPTS_KEEP_H", 72)),
        facts_keep_d=int(_get("PENSTOCK_FACTS_KEEP_D", 30)),
        rollout_up_s=float(_get("PENSTOCK_ROLLOUT_UP_S", 75)),
        rollout_watch_s=float(_get("PENSTOCK_ROLLOUT_WATCH_S", 90)),
        ramp=RampPolicy(
            steps=ramp_steps(str(_get("PENSTOCK_RAMP_STEPS", "1,5,25,50,100"))),
            hold=timedelta(seconds=float(_get("PENSTOCK_RAMP_HOLD_S", 30))),
            evidence=int(_get("PENSTOCK_RAMP_EVIDENCE", 20)),
            patience=timedelta(seconds=float(_get("PENSTOCK_RAMP_PATIENCE_S", 300))),
        ),
        lanes_max=int(_get("PENSTOCK_LANES_MAX", 1)),
    )


def ramp_steps(text: str) -> tuple[int, ...]:
    """The shares that `text` lists, in percent. Raises ValueError unless they grow, from 1 or more to 100."""
    steps = tuple(int(part) for part in text.split(","))
    if list(steps) != sorted({*steps}) or steps[0] < 1 or steps[-1] != WHOLE:
        raise ValueError(f"PENSTOCK_RAMP_STEPS: needs growing percents that end with 100, got {text!r}")
    return steps


def _get(name: str, default: Any) -> Any:
    """Django's setting of that name, else the environment's variable, else `default`."""
    known = getattr(django_settings, name, None)
    return os.environ.get(name, default) if known is None else known
