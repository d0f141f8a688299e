"""Whether a ramp goes on, stays where it is, or goes back: from the figures of its two revisions alone. Pure.

The stable revision runs beside the ramping one, over the same lanes and at the same time: what is wrong with the cell,
or with a destination, shows in both, and only what is worse in the ramping one counts against it.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from mgmt.provisioning.ramps import RampPolicy
from mgmt.queries.ramps import Figures

SIGMAS: Final = 3.0  # how far above its mean chance alone may carry a count


class RampView(Struct, frozen=True):
    """A ramp under way, at its present step.

    stable: the figures of the stable revision at this step, or, where it takes nothing any more, at its last with some
    """

    revision: int
    stable_number: int
    share: int
    began_at: datetime
    held_by: str
    ramping: Figures
    stable: Figures


class Back(Struct, frozen=True):
    """Roll back, and why."""

    reason: str


class On(Struct, frozen=True):
    """Go on to this share; None: the revision goes live."""

    share: int | None


class Stay(Struct, frozen=True):
    """Stay, and until what."""

    reason: str


def why_back(ramp: RampView, policy: RampPolicy) -> str:
    """Why the ramp must go back, "" if nothing says so. Neither a hold nor an unstable cell keeps it from that."""
    ours, theirs = ramp.ramping, ramp.stable
    here = f"at {ramp.share} % of the keys"
    if ours.failed > most_failures(ours.taken, theirs, policy):
        return f"{ours.failed} of its {ours.taken} messages failed {here}; {_stable(ramp, theirs.failed)} did"
    if ours.lost > ours.taken * _rate(theirs.lost, theirs.taken):
        return f"{ours.lost} of its {ours.taken} messages were lost {here}; {_stable(ramp, theirs.lost)} were"
    if ours.stuck and not theirs.stuck:
        return f"{ours.stuck} of its {ours.taken} messages wait before the route {here}; {_stable(ramp, 0)} do"
    if _is_slow(ours, theirs, policy):
        return (
            f"its p95 from ingest through the steps is {_ms(ours.p95_us)} {here}; "
            f"that of revision {ramp.stable_number} is {_ms(theirs.p95_us)}"
        )
    return ""


def next_step(ramp: RampView, policy: RampPolicy, now: datetime) -> On | Stay:
    """What follows where nothing speaks against the ramp and nobody else holds it up."""
    if ramp.held_by:
        return Stay(f"held at {ramp.share} % of the keys by {ramp.held_by}")
    due = ramp.began_at + policy.hold
    if now < due:
        return Stay(f"at {ramp.share} % of the keys until {_clock(due)}")
    latest = ramp.began_at + policy.patience
    if ramp.ramping.taken < policy.evidence and now < latest:
        return Stay(
            f"at {ramp.share} % of the keys, until it has taken {policy.evidence} messages; "
            f"at the latest until {_clock(latest)}"
        )
    return On(next((share for share in policy.steps if share > ramp.share), None))


def most_failures(taken: int, stable: Figures, policy: RampPolicy) -> float:
    """How many of `taken` messages may fail without being worse than the stable revision's: its rate, what chance may
    add to that, and the policy's tolerance; always the policy's few, for a single bad message is no verdict.
    """
    expected = taken * _rate(stable.failed, stable.taken)
    return max(policy.few, expected + SIGMAS * math.sqrt(expected) + policy.tolerance * taken)


def figures_to_keep(ramp: RampView) -> Mapping[str, Any]:
    """The figures as the step's row has them."""
    return {"ramping": msgspec.to_builtins(ramp.ramping), "stable": msgspec.to_builtins(ramp.stable)}


def _is_slow(ours: Figures, theirs: Figures, policy: RampPolicy) -> bool:
    if ours.p95_us is None or theirs.p95_us is None or min(ours.taken, theirs.taken) < policy.evidence:
        return False
    return ours.p95_us > max(policy.slower * theirs.p95_us, theirs.p95_us + policy.slower_by_us)


def _rate(count: int, of: int) -> float:
    return count / of if of else 0.0


def _stable(ramp: RampView, count: int) -> str:
    return f"of revision {ramp.stable_number} {count} of {ramp.stable.taken}"


def _ms(microseconds: int | None) -> str:
    return f"{(microseconds or 0) / 1_000:.0f} ms"


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S} UTC"
