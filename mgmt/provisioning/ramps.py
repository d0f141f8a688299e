"""How a revision of a pipe with traffic comes live: the policy, and the share that it begins with. Pure."""

from datetime import timedelta

from msgspec import Struct

from dataplane.names import WHOLE


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


def ramp_steps(text: str) -> tuple[int, ...]:
    """The shares that `text` lists, in percent. Raises ValueError unless they grow, from 1 or more to 100."""
    steps = tuple(int(part) for part in text.split(","))
    if list(steps) != sorted({*steps}) or steps[0] < 1 or steps[-1] != WHOLE:
        raise ValueError(f"PENSTOCK_RAMP_STEPS: needs growing percents that end with 100, got {text!r}")
    return steps


def first_share(policy: RampPolicy, recent: int) -> int:
    """The share that a ramp begins with: the first that can say anything in time. 0: none can, so there is no ramp.

    recent: messages that the pipe took within `policy.recently`; at that rate a step must come to its evidence.
    """
    whole = recent * (policy.patience / policy.recently)
    return next((share for share in policy.steps if whole * share / WHOLE >= policy.evidence), 0)
