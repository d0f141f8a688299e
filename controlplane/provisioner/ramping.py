"""Decides if a ramp advances, keeps its share, or is rolled back: from the figures of its two revisions alone. Pure.

The stable revision runs next to the ramping one, in the same lanes and at the same time: a fault of the cell or of a
destination shows in both, and only figures that are worse for the ramping revision count against it.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from mgmt.ramps.queries import RampFigures
from mgmt.ramps.schedule import RampPolicy

SIGMAS: Final = 3.0  # how far above its mean chance alone may carry a count


class RampProgress(Struct, frozen=True):
    """An open ramp, at its present step.

    share:  percent of the keys that the ramping revision has
    stable: figures of the stable revision at this step, or, if it gets no messages any more, at its last step with some
    changes_execution: one of the two has bulk execution, so that their lags cannot be compared
    """

    revision: int
    stable_number: int
    share: int
    began_at: datetime
    held_by: str
    ramping: RampFigures
    stable: RampFigures
    changes_execution: bool = False


class AdvanceRamp(Struct, frozen=True):
    """Advance to this share in percent; None: the revision goes live."""

    share: int | None


class KeepShare(Struct, frozen=True):
    """Keep the share. `reason`: what the ramp waits for."""

    reason: str


def rollback_reason(ramp: RampProgress, policy: RampPolicy) -> str:
    """Return why the ramp must be rolled back, or "". Neither a hold nor an unstable cell prevents a rollback."""
    ours, theirs = ramp.ramping, ramp.stable
    here = f"at {ramp.share} % of the keys"
    if ours.failed > most_failures(ours.taken, theirs, policy):
        return f"{ours.failed} of its {ours.taken} messages failed {here}; {_stable(ramp, theirs.failed)}"
    if ours.lost > ours.taken * _rate(theirs.lost, theirs.taken):
        return f"{ours.lost} of its {ours.taken} messages were lost {here}; {_stable(ramp, theirs.lost)}"
    if ours.stuck and not theirs.stuck:
        return f"{ours.stuck} of its {ours.taken} messages have not reached the route {here}; {_stable(ramp, 0)}"
    if not ramp.changes_execution and _is_slow(ours, theirs, policy):
        return (
            f"its p95 from ingest to the end of the steps is {_ms(ours.p95_us)} {here}; "
            f"that of revision {ramp.stable_number} is {_ms(theirs.p95_us)}"
        )
    return ""


def next_step(ramp: RampProgress, policy: RampPolicy, now: datetime) -> AdvanceRamp | KeepShare:
    """Return the next step of a ramp without a reason to roll back and without a refusal by the interlocks."""
    if ramp.held_by:
        return KeepShare(f"held at {ramp.share} % of the keys by {ramp.held_by}")
    due = ramp.began_at + policy.hold
    if now < due:
        return KeepShare(f"at {ramp.share} % of the keys until {_clock(due)}")
    latest = ramp.began_at + policy.patience
    if ramp.ramping.taken < policy.evidence and now < latest:
        return KeepShare(
            f"at {ramp.share} % of the keys until it has processed {policy.evidence} messages, "
            f"or until {_clock(latest)}"
        )
    return AdvanceRamp(next((share for share in policy.steps if share > ramp.share), None))


def most_failures(taken: int, stable: RampFigures, policy: RampPolicy) -> float:
    """Return how many of `taken` messages may fail before the ramping revision counts as worse than the stable one.

    That is the stable revision's rate plus SIGMAS standard deviations of chance plus the policy's tolerance, and at
    least the policy's `few`, because a single bad message proves nothing.
    """
    expected = taken * _rate(stable.failed, stable.taken)
    return max(policy.few, expected + SIGMAS * math.sqrt(expected) + policy.tolerance * taken)


def figures_to_keep(ramp: RampProgress) -> Mapping[str, Any]:
    """Return the figures of both revisions in the form that the step's row stores."""
    return {"ramping": msgspec.to_builtins(ramp.ramping), "stable": msgspec.to_builtins(ramp.stable)}


def _is_slow(ours: RampFigures, theirs: RampFigures, policy: RampPolicy) -> bool:
    if ours.p95_us is None or theirs.p95_us is None or min(ours.taken, theirs.taken) < policy.evidence:
        return False
    return ours.p95_us > max(policy.slower * theirs.p95_us, theirs.p95_us + policy.slower_by_us)


def _rate(count: int, of: int) -> float:
    return count / of if of else 0.0


def _stable(ramp: RampProgress, count: int) -> str:
    return f"with revision {ramp.stable_number}, {count} of {ramp.stable.taken}"


def _ms(microseconds: int | None) -> str:
    return f"{(microseconds or 0) / 1_000:.0f} ms"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S} UTC"
