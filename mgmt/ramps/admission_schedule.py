"""Policy of admissions, by which a new pipe admits growing shares of its keys. Pure."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from dataplane.names import ALL_KEYS_PERCENT

GRAIN: Final = 10  # percent; held messages are filed by tens, so that a share can be released without reading them
MOST_EXPECTED: Final = 1_000_000  # events a second
FASTER: Final = 2.0  # rate of a release of held messages, relative to the pipe's expected rate


class AdmissionPolicy(Struct, frozen=True):
    """Policy of admissions.

    above:    expected events per second above which a new pipe gets an admission; others admit all keys at once
    steps:    shares of the keys in percent, increasing multiples of ten; the last is 100
    hold:     minimum duration of each step, from its first message on
    evidence: messages that a step must have taken to be judged
    patience: duration after which a step with fewer messages is passed without a judgement
    few:      number of failures that never lowers the share
    failing:  share of failed messages above which the admitted share is lowered
    """

    above: int = 500
    steps: tuple[int, ...] = (20, 50, 100)
    hold: timedelta = timedelta(seconds=30)
    evidence: int = 20
    patience: timedelta = timedelta(minutes=5)
    few: int = 2
    failing: float = 0.05


def admission_steps(text: str) -> tuple[int, ...]:
    """Parse comma-separated shares, in percent. Raises ValueError unless they are multiples of 10 that grow to 100."""
    steps = tuple(int(part) for part in text.split(","))
    if (
        list(steps) != sorted({*steps})
        or steps[0] < 1
        or steps[-1] != ALL_KEYS_PERCENT
        or any(step % GRAIN for step in steps)
    ):
        raise ValueError(f"PENSTOCK_ADMISSION_STEPS: needs increasing multiples of 10 that end with 100, got {text!r}")
    return steps


def first_admitted(policy: AdmissionPolicy, expected_per_s: int) -> int:
    """Return the share in percent that a new pipe begins with; 100 if it needs no admission."""
    return policy.steps[0] if expected_per_s > policy.above else ALL_KEYS_PERCENT


def filed_under(share: int) -> str:
    """Return the cause under which messages are held until this share is admitted: the share, rounded up to tens.

    Returns "" for a share of 0: messages that are held for another reason.
    """
    return f"{-(-share // GRAIN) * GRAIN:03d}" if share else ""


def release_rate_per_s(expected_per_s: float) -> float:
    """Return the release rate of held messages, which exceeds the rate at which more of them can arrive."""
    return FASTER * expected_per_s
