"""Choice of the delay tier for a message. Pure: time is an argument.

All messages in a tier wait about equally long, so the first message is the first that may leave, and a lane needs to
hold only the head of each partition. A message with a longer wait than its tier then moves to another tier.
"""

from typing import Final, NamedTuple

from dataplane.names import DELAYS_S, Purpose

SMALLEST: Final[Purpose] = min(DELAYS_S, key=DELAYS_S.__getitem__)
SLACK_US: Final = 5_000_000  # half the smallest tier: the most by which messages ahead in a tier may delay a message


class TierDelay(NamedTuple):
    """Tier of a message, and the time at which it leaves the tier, no later than it is due."""

    tier: Purpose
    leave_us: int


def delay_until(due_us: int, now_us: int) -> TierDelay:
    """Return the longest tier that ends by `due_us`, within the slack; the smallest tier if none does.

    The slack saves many passes through shorter tiers: a wait of one minute is always slightly less when it begins. A
    message behind another one is late by at most the slack, because each leaves by the end of the tier.
    """
    wait_us = max(0, due_us - now_us)
    fitting = [tier for tier, seconds in DELAYS_S.items() if seconds * 1_000_000 <= wait_us + SLACK_US]
    tier = max(fitting, key=DELAYS_S.__getitem__, default=SMALLEST)
    return TierDelay(tier, now_us + min(wait_us, DELAYS_S[tier] * 1_000_000))


def remaining_us(until_us: int, stored_us: int, *, steady_us: int, wall_us: int) -> int:
    """Return how much of a wait is left, robust against changes of the wall clock since the record was written.

    A clock change while this process runs never shortens the wait. It lengthens the wait by at most the size of the
    change, and at most to twice its length.

    until_us, stored_us: end of the wait and time of its record, both by the wall clock of the writer
    steady_us:           this process's steady time, which continues evenly when the wall clock is set
    wall_us:             this process's wall time
    """
    was_set_ahead_before = stored_us > steady_us
    now_us = wall_us if was_set_ahead_before else min(steady_us, wall_us)
    return max(0, until_us - max(stored_us, now_us))
