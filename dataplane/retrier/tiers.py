"""Which delay tier a message waits in. Pure: time comes in as an argument.

All that is in a tier waits about equally long, so its first message is the first that may leave, and a lane needs to
hold only the head of each partition. What has longer to wait than its tier goes on to another one.
"""

from typing import Final, NamedTuple

from dataplane.names import DELAYS_S, Purpose

SMALLEST: Final[Purpose] = min(DELAYS_S, key=DELAYS_S.__getitem__)
SLACK_US: Final = 5_000_000  # half the smallest tier: what a message may be late at most behind others in its tier


class Delay(NamedTuple):
    """A tier, and when the message leaves it: not later than it is due."""

    tier: Purpose
    leave_us: int


def delay_until(due_us: int, now_us: int) -> Delay:
    """Where to wait now for `due_us`: the longest tier that is over by then, give or take the slack.

    The slack saves many turns of the shorter tiers: a wait of a minute is always a little less when it begins. Whoever
    stands behind another in the tier is late by it at most, for the other leaves at the end of the tier at the latest.
    """
    wait_us = max(0, due_us - now_us)
    fitting = [tier for tier, seconds in DELAYS_S.items() if seconds * 1_000_000 <= wait_us + SLACK_US]
    tier = max(fitting, key=DELAYS_S.__getitem__, default=SMALLEST)
    return Delay(tier, now_us + min(wait_us, DELAYS_S[tier] * 1_000_000))


def remaining_us(until_us: int, stored_us: int, *, steady_us: int, wall_us: int) -> int:
    """Return how much of a wait is left, whatever became of the wall clocks since it was written.

    Nothing of it is skipped because a clock was set while this process ran, and it becomes longer by at most as much as
    the clock was moved, and by no more than itself.

    until_us, stored_us: the end of the wait and the time of its record, both by the wall clock of the writer
    steady_us:           this process's time, which goes on evenly when the wall clock is set
    """
    was_set_ahead_before = stored_us > steady_us
    now_us = wall_us if was_set_ahead_before else min(steady_us, wall_us)
    return max(0, until_us - max(stored_us, now_us))
