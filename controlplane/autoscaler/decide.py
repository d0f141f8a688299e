"""Decides how many lanes a group should have. Pure: recent figures, a policy and a memory in, a decision out.

All rules for lanes apply to replicas of ingest as well; for them, settled messages are those that Kafka has stored.

Scale-out is quick: lanes that the last minute needs at the target, or that the last ten seconds need beyond the lanes'
capacity, are added at once. Scale-in is slow: lanes are removed only if the busiest of the last ten minutes did not
need them, and if for the group's patience not all lanes have been needed. Patience is ten minutes at least; it doubles
when removed lanes have to be added again within it, and halves when that happens later.

    work (cores) = arriving messages per second x CPU seconds per message
    lanes needed = work of a minute / target,
                   or (work of 10 s + backlog, done within RECOVER_S) / FULL if that is more

The formula does not contain the present number of lanes, so a change in progress does not cause another one.

If lag rises although the lanes' CPU is below the target, the lanes wait for something else: for a lock within their own
process (then another lane helps) or for a destination, a broker or a disk (then it does not). The two cannot be
distinguished from outside, so one lane is added as a trial. If the group settles more with it, the CPU at which the
lanes stagnated becomes the group's ceiling, and the target is kept below it from then on; if not, the decision says
that lanes do not help, removes the lane, and starts no other trial for a while.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final

import msgspec
from msgspec import Struct

from controlplane.autoscaler.figures import GroupRates
from controlplane.autoscaler.load import GroupLoad, by_minute, latest, mean
from controlplane.autoscaler.sleeping import SleepChange

SOON_S: Final = 10.0
STEADY_S: Final = 60.0
LATE_S: Final = 30.0
IN_WINDOW_S: Final = 600.0
PATIENCE_S: Final = 600.0
MOST_PATIENCE_S: Final = 3_600.0
FULL: Final = 0.9  # of a core, or of the ceiling: what a lane may use while it works off a backlog
STALE_S: Final = 20.0
TRIAL_S: Final = 45.0  # a lane starts within 20 s; its effect is measured over the rest
NO_TRIAL_S: Final = 1_800.0
HELPED: Final = 0.5  # a trial helped if it brought this share of what one more lane of n should bring, 1/n of the rate
BELOW_CEILING: Final = 0.85
BEYOND: Final = 1.2  # CPU above this multiple of the ceiling proves that it was none
SLACK: Final = 0.9  # lanes are removed only if the rest stay below this share of the target


class ScalePolicy(Struct, frozen=True):
    """Limits and targets of a group. `target`: CPU of one lane, in cores; `goal_s`: allowed lag in seconds."""

    minimum: int
    maximum: int
    target: float = 0.75
    goal_s: float = 5.0


class LaneTrial(Struct, frozen=True):
    """A trial of one more lane than CPU requires, and the state before it: per second and in cores of one lane."""

    at_s: float
    lanes: int
    settled: float
    cpu: float


class DecisionMemory(Struct, frozen=True):
    """Memory that a group's decisions pass on to the next one. Times are Unix seconds, 0 for never."""

    full_s: float = 0.0  # when all lanes were last needed
    out_s: float = 0.0  # when lanes were last added
    in_s: float = 0.0  # when lanes were last removed
    patience_s: float = PATIENCE_S
    ceiling: float = 0.0  # highest CPU that one lane reaches, in cores; 0 if none was seen
    trial: LaneTrial | None = None
    no_trial_before_s: float = 0.0
    short_since_s: float = 0.0  # since when the maximum of lanes is busy and more are needed; 0: they are enough


class LaneGroup(Struct, frozen=True):
    """A group at this moment: its desired number of lanes, and its figures of the last ten minutes.

    unit:   `lane` or `replica`
    beyond: what follows when the group is at its maximum, in words
    """

    now_s: float
    lanes: int
    policy: ScalePolicy
    memory: DecisionMemory
    figures: Sequence[GroupRates]
    unit: str = "lane"
    beyond: str = "the next step is another cell"


class ScaleDecision(Struct, frozen=True):
    """The desired number of lanes and the reason, in words. `lanes` is the present number if nothing changes."""

    lanes: int
    why: str
    memory: DecisionMemory


def decide(group: LaneGroup, turn: SleepChange | None = None) -> ScaleDecision:
    """Return the next number of lanes; without recent figures, the present one. `turn`: of the cell, it comes first."""
    short_since_s = group.memory.short_since_s
    group = _remember(group, short_since_s=0.0)  # set again below if it is still short
    if turn is not None:
        lanes = 0 if turn.asleep else max(1, group.policy.minimum)
        return _keep(group, turn.why) if lanes == group.lanes else _change(group, lanes, turn.why)
    if not group.lanes:
        return _keep(group, f"no {group.unit}s are needed")
    within = min(max(group.lanes, group.policy.minimum), group.policy.maximum)
    if within != group.lanes:
        return _change(group, within, f"the policy allows {group.policy.minimum} to {group.policy.maximum}")
    if not group.figures or group.figures[-1].at_s < group.now_s - STALE_S:
        return _keep(group, "no measurements in the last seconds")
    if (reporting := group.figures[-1].lanes) < group.lanes:
        return _keep(group, f"{reporting} of {group.lanes} {group.unit}s report; waiting for the others")
    load = mean(latest(group.figures, SOON_S))
    group = _judge_trial(group, load)
    needed = lanes_for(group, load)
    if needed >= group.lanes and not _trial_failed(group):
        group = _remember(group, full_s=group.now_s)
    if _is_short(group, load, needed):
        group = _remember(group, short_since_s=short_since_s or group.now_s)
    return (
        _scale_out(group, load, needed)
        or _scale_in(group, load)
        or _try(group, load)
        or _keep(group, _summary(group, load))
    )


def _is_short(group: LaneGroup, load: GroupLoad, needed: int) -> bool:
    """Return True if the group is at its maximum, all lanes are busy, and more are needed."""
    return needed > group.lanes == group.policy.maximum and load.cpu >= target_of(group) * group.lanes


def lanes_for(group: LaneGroup, load: GroupLoad) -> int:
    """Return the lanes that this load needs: at the target for arriving messages, nearly full while a backlog lasts."""
    full = FULL * (group.memory.ceiling or 1.0)
    steady = mean(latest(group.figures, STEADY_S))
    return ceil(max(steady.work / target_of(group), (load.work + load.rest) / full))


def target_of(group: LaneGroup) -> float:
    """Return the CPU that a lane should use at most, in cores: the policy's, or less below the group's ceiling."""
    ceiling = group.memory.ceiling
    return min(group.policy.target, ceiling * BELOW_CEILING) if ceiling else group.policy.target


def _scale_out(group: LaneGroup, load: GroupLoad, needed: int) -> ScaleDecision | None:
    """Add all lanes that the work needs at once, if the present ones are busy: else they wait for something else."""
    if needed <= group.lanes or load.cpu < target_of(group) * group.lanes:
        return None
    lanes = min(needed, group.policy.maximum)
    if lanes == group.lanes:
        return _keep(group, f"{needed} are needed, but the maximum is {lanes}: {group.beyond}")
    return _change(group, lanes, f"the load needs {load.work:.2f} cores; {_summary(group, load)}")


def _try(group: LaneGroup, load: GroupLoad) -> ScaleDecision | None:
    """Add one lane as a trial if lag rises without high CPU while the number of lanes is unchanged."""
    known = latest(group.figures, LATE_S)
    steady = mean(known)
    is_unchanged = steady.span_s > LATE_S / 2 and {figure.lanes for figure in known} == {group.lanes}
    is_late = known[0].backlog > group.policy.goal_s * steady.settled
    if _trial_failed(group):
        return _keep(group, f"a trial showed that more {group.unit}s do not help; {_summary(group, load)}")
    if not is_unchanged or not is_late or steady.growth <= 0:
        return None
    words = f"lag rises while CPU stays flat ({_summary(group, load)})"
    if not steady.settled:
        return _keep(
            group,
            f"no message is settled: the {group.unit}s are stuck, and more would not help ({_summary(group, load)})",
        )
    if group.memory.trial is not None:
        return _keep(group, f"{words}; a trial of one more {group.unit} is in progress")
    if group.lanes >= group.policy.maximum:
        return _keep(group, f"{words}; the maximum is {group.lanes}")
    trial = LaneTrial(group.now_s, group.lanes, steady.settled, steady.cpu / group.lanes)
    return _change(_remember(group, trial=trial), group.lanes + 1, f"trial of one more {group.unit}: {words}")


def _trial_failed(group: LaneGroup) -> bool:
    """Return True if a recent trial has shown that lanes do not help."""
    return group.now_s < group.memory.no_trial_before_s


def _judge_trial(group: LaneGroup, load: GroupLoad) -> LaneGroup:
    """Update the memory: store the result of a finished trial, and drop a ceiling that no longer applies.

    A trial finds a ceiling only if more was settled at no more CPU per lane: a broker that recovered would let lanes do
    more.
    """
    memory, trial = group.memory, group.memory.trial
    if memory.ceiling and load.cpu > memory.ceiling * BEYOND * group.lanes:
        return _remember(group, ceiling=0.0)
    if trial is None or group.now_s < trial.at_s + TRIAL_S:
        return group
    best = max(latest(group.figures, TRIAL_S), key=lambda figure: figure.settled)
    same = best.cpu <= trial.cpu * BEYOND * best.lanes
    if same and best.settled >= trial.settled * (1 + HELPED / trial.lanes):
        return _remember(group, trial=None, ceiling=trial.cpu)
    if load.lag_s <= group.policy.goal_s:
        return _remember(group, trial=None)  # the lag is gone without the trial's help
    return _remember(group, trial=None, no_trial_before_s=group.now_s + NO_TRIAL_S)


def _scale_in(group: LaneGroup, load: GroupLoad) -> ScaleDecision | None:
    """Remove lanes, if fewer would have been enough for the busiest minute of the last ten."""
    memory = group.memory
    known = latest(group.figures, IN_WINDOW_S)
    if (
        group.now_s < memory.full_s + memory.patience_s
        or mean(known).span_s < IN_WINDOW_S * SLACK
        or (load.lag_s > group.policy.goal_s and not _trial_failed(group))
    ):
        return None
    busiest = max(minute.cpu if _trial_failed(group) else minute.work for minute in by_minute(known))
    needed = max(group.policy.minimum, ceil(busiest / (target_of(group) * SLACK)))
    if needed >= group.lanes:
        return None
    return _change(
        group, needed, f"the busiest minute of the last ten needed {busiest:.2f} cores; {_summary(group, load)}"
    )


def _summary(group: LaneGroup, load: GroupLoad) -> str:
    cpu = f"CPU {load.cpu / max(load.lanes, 1):.0%} of a core in each {group.unit}, target {target_of(group):.0%}"
    if not (load.settled or load.backlog):
        return f"{cpu}; no backlog"
    lag = f"{load.lag_s:.1f} s" if load.settled else f"{load.backlog} messages, none settled"
    return f"{cpu}; lag {lag}, goal {group.policy.goal_s:g} s"


def _remember(group: LaneGroup, **changes: object) -> LaneGroup:
    return msgspec.structs.replace(group, memory=msgspec.structs.replace(group.memory, **changes))


def _keep(group: LaneGroup, why: str) -> ScaleDecision:
    return ScaleDecision(group.lanes, why, group.memory)


def _change(group: LaneGroup, lanes: int, why: str) -> ScaleDecision:
    """Return the change. If lanes are added soon after a removal, patience grows: it was too early. Else it shrinks."""
    memory = group.memory
    if lanes < group.lanes:
        return ScaleDecision(lanes, why, _remember(group, in_s=group.now_s, full_s=group.now_s).memory)
    patience_s = memory.patience_s
    if memory.in_s > memory.out_s:
        soon = group.now_s - memory.in_s < patience_s
        patience_s = min(2 * patience_s, MOST_PATIENCE_S) if soon else max(patience_s / 2, PATIENCE_S)
    return ScaleDecision(
        lanes, why, _remember(group, out_s=group.now_s, full_s=group.now_s, patience_s=patience_s).memory
    )
