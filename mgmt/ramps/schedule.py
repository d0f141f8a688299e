"""Policy of ramps, by which a new revision takes growing shares of a pipe's keys. Pure."""

from datetime import timedelta

from msgspec import Struct

from dataplane.names import ALL_KEYS_PERCENT


class RampPolicy(Struct, frozen=True):
    """Policy of ramps.

    steps:     shares of the keys in percent, increasing; the last is 100
    hold:      minimum duration of each step
    evidence:  messages that the ramping revision must have taken for a step to be judged
    patience:  duration after which a step with fewer messages is passed without a judgement
    few:       number of failures that never causes a rollback
    tolerance: share of messages that may fail beyond the stable revision's rate
    slower, slower_by_us: the p95 may be this factor of the stable revision's p95, or this much above it, whichever is
               larger
    recently:  period whose traffic predicts how soon a step has its evidence; first steps that would not have it within
               `patience` are skipped, and a pipe with too little traffic for any step has no ramp
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


def ramp_steps(text: str) -> tuple[int, ...]:
    """Parse the comma-separated shares, in percent. Raises ValueError unless they grow, from 1 or more to 100."""
    steps = tuple(int(part) for part in text.split(","))
    if list(steps) != sorted({*steps}) or steps[0] < 1 or steps[-1] != ALL_KEYS_PERCENT:
        raise ValueError(f"PENSTOCK_RAMP_STEPS: needs increasing percentages that end with 100, got {text!r}")
    return steps


def first_share(policy: RampPolicy, recent: int) -> int:
    """Return the first share that can have its evidence within `policy.patience`; 0 if none can: there is no ramp.

    recent: messages that the pipe took within `policy.recently`, which gives the assumed rate.
    """
    whole = recent * (policy.patience / policy.recently)
    return next((share for share in policy.steps if whole * share / ALL_KEYS_PERCENT >= policy.evidence), 0)
