"""How a new pipe's traffic is let in by shares of its keys: the policy, and who begins so. Pure."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from dataplane.names import WHOLE

GRAIN: Final = 10  # percent: what is held is filed by tens, so that a share can be released without looking at it
MOST_EXPECTED: Final = 1_000_000  # events a second
FASTER: Final = 2.0  # what was held comes back so many times as fast as the pipe is expected to send


class AdmissionPolicy(Struct, frozen=True):
    """How a new pipe's traffic is let in.

    above:    a pipe that expects more events a second than this begins by shares; all others take everything at once
    steps:    shares of the keys in percent, growing, in tens; the last is 100
    hold:     each step lasts at least so long from its first message on
    evidence: messages that must have been taken for a step to say anything
    patience: a step without so many goes on after this
    few:      so many failures are never a reason to go back
    failing:  a larger share of failures is
    """

    above: int = 500
    steps: tuple[int, ...] = (20, 50, 100)
    hold: timedelta = timedelta(seconds=30)
    evidence: int = 20
    patience: timedelta = timedelta(minutes=5)
    few: int = 2
    failing: float = 0.05


def admission_steps(text: str) -> tuple[int, ...]:
    """The shares that `text` lists, in percent. Raises ValueError unless they are tens and grow up to 100."""
    steps = tuple(int(part) for part in text.split(","))
    if list(steps) != sorted({*steps}) or steps[0] < 1 or steps[-1] != WHOLE or any(step % GRAIN for step in steps):
        raise ValueError(f"PENSTOCK_ADMISSION_STEPS: needs growing tens of percent that end with 100, got {text!r}")
    return steps


def first_admitted(policy: AdmissionPolicy, expected_per_s: int) -> int:
    """The share that a new pipe begins with; 100: everything at once."""
    return policy.steps[0] if expected_per_s > policy.above else WHOLE


def filed_under(share: int) -> str:
    """What is held until this share is admitted is filed under it, rounded up to tens; "" for all other held ones."""
    return f"{-(-share // GRAIN) * GRAIN:03d}" if share else ""


def release_rate_per_s(expected_per_s: float) -> float:
    """How fast what was held comes back: faster than more of it can come."""
    return FASTER * expected_per_s
