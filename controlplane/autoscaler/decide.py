"""How many lanes a group should have, from what it did lately. Pure: figures, a policy and a memory in, a decision out.

What is said of lanes holds for replicas of ingest as well; for them, what is settled is what Kafka has stored.

Out quickly: what the last minute asks for at the target, or the last ten seconds beyond what lanes can do, is given at
once. In slowly: only what ten minutes at their busiest did not need is taken back, when not all lanes there are have
been needed for as long as the group's patience lasts. Patience is ten minutes at least; it doubles when lanes that were
taken back have to be added again before it is over, and halves when that comes later.

    work (cores) = messages that come a second x CPU seconds that one message costs
    lanes needed = work of a minute / target,
                   or (work of 10 s + what is left over, done within RECOVER_S) / FULL if that is more

Nothing in this names the lanes there are, so a change that is under way does not ask for another one.

Where lag rises although CPU says that there are lanes enough, lanes wait for something else: a lock within their own
process (then another lane helps) or a destination, a broker, a disk (then it does not). Nobody can tell from outside,
so one lane is added as a trial. If more is settled then, the CPU at which lanes stood still is the group's ceiling, and
the target is kept below it from then on; if not, the decision says that lanes do not help, takes the lane back, and
tries no more for a while.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final

import msgspec
from msgspec import Struct

from controlplane.autoscaler.figures import Figure
from controlplane.autoscaler.load import Load, by_minute, latest, mean
from controlplane.autoscaler.sleeping import Turn

SOON_S: Final = 10.0
STEADY_S: Final = 60.0
LATE_S: Final = 30.0
IN_WINDOW_S: Final = 600.0
PATIENCE_S: Final = 600.0
MOST_PATIENCE_S: Final = 3_600.0
FULL: Final = 0.9  # of a core, or of the ceiling: what a lane may use while it makes good what was left over
STALE_S: Final = 20.0
TRIAL_S: Final = 45.0  # a lane starts within 20 s; what it brings is seen over the rest
NO_TRIAL_S: Final = 1_800.0
HELPED: Final = 0.5  # of what one more lane of n should bring, 1/n of the rate
BELOW_CEILING: Final = 0.85
BEYOND: Final = 1.2  # so much more CPU than at the ceiling, and it was none
SLACK: Final = 0.9  # lanes are taken back only if the target is kept with this much to spare


class Policy(Struct, frozen=True):
    """What is wanted of a group. `target`: CPU of one lane, in cores; `goal_s`: how far behind it may be."""

    minimum: int
    maximum: int
    target: float = 0.75
    goal_s: float = 5.0


class Trial(Struct, frozen=True):
    """One lane more than CPU asked for, and how it was before."""

    at_s: float
    lanes: int
    settled: float
    cpu: float


class Memory(Struct, frozen=True):
    """What the group's earlier decisions leave to the next one."""

    full_s: float = 0.0  # when all lanes there were had work last
    out_s: float = 0.0  # when lanes were added last
    in_s: float = 0.0  # when lanes were taken back last
    patience_s: float = PATIENCE_S
    ceiling: float = 0.0  # CPU of one lane beyond which it does not get, in cores; 0 if none was seen
    trial: Trial | None = None
    no_trial_before_s: float = 0.0
    short_since_s: float = 0.0  # since when all lanes that may be are busy and more are asked for; 0: they are enough


class Group(Struct, frozen=True):
    """A group at this moment: the lanes that are wanted, and the figures of the last ten minutes.

    unit: what the group has many of, in a word
    beyond: what is to be done when it stands at its most, in words
    """

    now_s: float
    lanes: int
    policy: Policy
    memory: Memory
    figures: Sequence[Figure]
    unit: str = "lane"
    beyond: str = "another cell comes next"


class Decision(Struct, frozen=True):
    """How many lanes there should be and why, in words. `lanes` are those there are if nothing changes."""

    lanes: int
    why: str
    memory: Memory


def decide(group: Group, turn: Turn | None = None) -> Decision:
    """The next number of lanes; the one there is as long as nothing is known. `turn`: the whole cell's, before all."""
    short_since_s = group.memory.short_since_s
    group = _remember(group, short_since_s=0.0)  # until it is seen again below
    if turn is not None:
        lanes = 0 if turn.asleep else max(1, group.policy.minimum)
        return _stay(group, turn.why) if lanes == group.lanes else _change(group, lanes, turn.why)
    if not group.lanes:
        return _stay(group, f"no {group.unit}s are wanted")
    within = _within(group)
    if within != group.lanes:
        return _change(group, within, f"the policy allows {group.policy.minimum} to {group.policy.maximum}")
    if not group.figures or group.figures[-1].at_s < group.now_s - STALE_S:
        return _stay(group, "no figures of the last seconds")
    if (reporting := group.figures[-1].lanes) < group.lanes:
        return _stay(group, f"{reporting} of {group.lanes} wanted report; waiting for the others")
    load = mean(latest(group.figures, SOON_S))
    group = _judge(group, load)
    needed = lanes_for(group, load)
    if needed >= group.lanes and not _helpless(group):
        group = _remember(group, full_s=group.now_s)
    if _is_short(group, load, needed):
        group = _remember(group, short_since_s=short_since_s or group.now_s)
    return _out(group, load, needed) or _in(group, load) or _try(group, load) or _stay(group, _words(group, load))


def _is_short(group: Group, load: Load, needed: int) -> bool:
    """Whether all lanes that may be are busy, and more are asked for."""
    return needed > group.lanes == group.policy.maximum and load.cpu >= target_of(group) * group.lanes


def lanes_for(group: Group, load: Load) -> int:
    """Lanes for this load: at the target for what comes, nearly full until what was left over is done."""
    full = FULL * (group.memory.ceiling or 1.0)
    steady = mean(latest(group.figures, STEADY_S))
    return ceil(max(steady.work / target_of(group), (load.work + load.rest) / full))


def target_of(group: Group) -> float:
    """CPU that a lane should use at most: the policy's, or less where lanes do not get that far."""
    ceiling = group.memory.ceiling
    return min(group.policy.target, ceiling * BELOW_CEILING) if ceiling else group.policy.target


def _within(group: Group) -> int:
    return min(max(group.lanes, group.policy.minimum), group.policy.maximum)


def _out(group: Group, load: Load, needed: int) -> Decision | None:
    """As many as the work asks for, at once, if the lanes there are are busy: else they wait for something else."""
    if needed <= group.lanes or load.cpu < target_of(group) * group.lanes:
        return None
    lanes = min(needed, group.policy.maximum)
    if lanes == group.lanes:
        return _stay(group, f"{needed} are asked for, and {lanes} is the most: {group.beyond}")
    return _change(group, lanes, f"the work asks for {load.work:.2f} cores; {_words(group, load)}")


def _try(group: Group, load: Load) -> Decision | None:
    """One lane more where lag rises and CPU does not say why, although the lanes have been the same for a while."""
    known = latest(group.figures, LATE_S)
    steady = mean(known)
    long = steady.span_s > LATE_S / 2 and {figure.lanes for figure in known} == {group.lanes}
    late = known[0].backlog > group.policy.goal_s * steady.settled
    if _helpless(group):
        return _stay(group, f"a trial has shown that more {group.unit}s do not help now; {_words(group, load)}")
    if not long or not late or steady.growth <= 0:
        return None
    words = f"lag rises while CPU stays flat ({_words(group, load)})"
    if not steady.settled:
        return _stay(
            group, f"nothing is settled: {group.unit}s are stuck, and more would be, too ({_words(group, load)})"
        )
    if group.memory.trial is not None:
        return _stay(group, f"{words}; a trial of one {group.unit} more is under way")
    if group.lanes >= group.policy.maximum:
        return _stay(group, f"{words}; {group.lanes} is the most")
    trial = Trial(group.now_s, group.lanes, steady.settled, steady.cpu / group.lanes)
    return _change(_remember(group, trial=trial), group.lanes + 1, f"trial of one {group.unit} more: {words}")


def _helpless(group: Group) -> bool:
    """Whether a trial has shown lately that lanes do not help."""
    return group.now_s < group.memory.no_trial_before_s


def _judge(group: Group, load: Load) -> Group:
    """Whether a trial that is over has helped, and whether a ceiling seen earlier still holds.

    It is a ceiling only if more was settled at no more CPU for each lane: a broker that came back lets lanes do more.
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
        return _remember(group, trial=None)  # it went by itself
    return _remember(group, trial=None, no_trial_before_s=group.now_s + NO_TRIAL_S)


def _in(group: Group, load: Load) -> Decision | None:
    """Fewer, if the busiest minute of the last ten would have been served by fewer."""
    memory = group.memory
    known = latest(group.figures, IN_WINDOW_S)
    if (
        group.now_s < memory.full_s + memory.patience_s
        or mean(known).span_s < IN_WINDOW_S * SLACK
        or (load.lag_s > group.policy.goal_s and not _helpless(group))
    ):
        return None
    busiest = max(minute.cpu if _helpless(group) else minute.work for minute in by_minute(known))
    needed = max(group.policy.minimum, ceil(busiest / (target_of(group) * SLACK)))
    if needed >= group.lanes:
        return None
    return _change(group, needed, f"the busiest minute of the last ten took {busiest:.2f} cores; {_words(group, load)}")


def _words(group: Group, load: Load) -> str:
    cpu = f"CPU {load.cpu / max(load.lanes, 1):.0%} of a core in each {group.unit}, target {target_of(group):.0%}"
    if not (load.settled or load.backlog):
        return f"{cpu}; nothing waits"
    lag = f"{load.lag_s:.1f} s" if load.settled else f"{load.backlog} messages, none settled"
    return f"{cpu}; lag {lag}, goal {group.policy.goal_s:g} s"


def _remember(group: Group, **changes: object) -> Group:
    return msgspec.structs.replace(group, memory=msgspec.structs.replace(group.memory, **changes))


def _stay(group: Group, why: str) -> Decision:
    return Decision(group.lanes, why, group.memory)


def _change(group: Group, lanes: int, why: str) -> Decision:
    """Lanes added soon after some were taken back: that was too early, and patience grows. Later: it was right."""
    memory = group.memory
    if lanes < group.lanes:
        return Decision(lanes, why, _remember(group, in_s=group.now_s, full_s=group.now_s).memory)
    patience_s = memory.patience_s
    if memory.in_s > memory.out_s:
        soon = group.now_s - memory.in_s < patience_s
        patience_s = min(2 * patience_s, MOST_PATIENCE_S) if soon else max(patience_s / 2, PATIENCE_S)
    return Decision(lanes, why, _remember(group, out_s=group.now_s, full_s=group.now_s, patience_s=patience_s).memory)
