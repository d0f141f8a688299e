"""Judgement of blocks: the unusual patterns of a block, and their streaks from block to block.

One block outside the usual range is chance or a burst; the second in a row is reported. One block inside does not end a
pattern; the second does. A pattern that a change of the pipe's cell explains is silenced, not reported; its blocks
count from the end of the change.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, structs

from mgmt.patterns.blocks import Known, PatternBlock
from mgmt.patterns.usual import FAILING, LAG, SIGNALS, VOLUME, PatternSignal, UsualRange, blocks_to_compare, usual_of

REPORTED_AFTER: Final = 2
OVER_AFTER: Final = 2
KnownChange = Literal["deploy", "scale", "ramp", "pause", "unstable"]


class UnusualSignal(Struct, frozen=True):
    """A signal outside the usual range on one side. `caused_by`: changes of the platform that explain it."""

    name: str
    signal: PatternSignal
    high: bool
    caused_by: frozenset[KnownChange] = frozenset()


PATTERNS: Final = (
    UnusualSignal("quiet", VOLUME, high=False),
    UnusualSignal("busy", VOLUME, high=True),
    UnusualSignal("failing", FAILING, high=True, caused_by=frozenset({"ramp"})),
    UnusualSignal("slow", LAG, high=True, caused_by=frozenset({"deploy", "scale", "ramp", "pause", "unstable"})),
)


class SignalReading(Struct, frozen=True):
    """A signal of one block and its usual range; either is None if it is unknown."""

    signal: PatternSignal
    value: float | None
    usual: UsualRange | None

    @property
    def words(self) -> str:
        """Sentence with the measured value and the usual one; "" if either is unknown."""
        if self.value is None or self.usual is None:
            return ""
        return self.signal.sentence.format(
            seen=self.signal.text(self.value), usual=range_of(self.signal, self.usual), basis=self.usual.basis
        )

    def shows(self, pattern: UnusualSignal) -> bool | None:
        """Return True if the block is outside the usual range on the pattern's side; None if unknown."""
        if self.value is None or self.usual is None:
            return None
        return self.value > self.usual.above if pattern.high else self.value < self.usual.below


class PatternStreak(Struct, frozen=True):
    """Streak of a pattern: its first block, and the number of blocks in a row outside or inside the usual range.

    told:     True once it lasted long enough to be a finding
    silenced: the change that explains it, in words; "" if none does
    over:     True once it has ended
    """

    since: int
    outside: int = 0
    inside: int = 0
    told: bool = False
    silenced: str = ""
    over: bool = False


def read(block: PatternBlock, known: Known, hour: int) -> Mapping[str, SignalReading]:
    """Return the reading of each signal of a block, by name, compared with the hours known for `hour`."""
    compared, basis = blocks_to_compare(known, hour)
    return {
        signal.name: SignalReading(signal, signal.of(block), usual_of(signal, compared, basis, block))
        if compared and signal.of(block) is not None
        else SignalReading(signal, signal.of(block), None)
        for signal in SIGNALS
    }


def follow(before: PatternStreak | None, number: int, *, shows: bool | None, silenced: str) -> PatternStreak | None:
    """Return the streak of a pattern after block `number`; None if there is nothing to remember."""
    if shows is None:
        return before
    if shows:
        return _outside(before or PatternStreak(number), silenced)
    return _inside(before) if before else None


def range_of(signal: PatternSignal, usual: UsualRange) -> str:
    """Return the range in which eight of ten blocks lie, as text."""
    low, high = signal.text(usual.low), signal.text(usual.high)
    return low if low == high else f"{low} to {high}"


def _outside(before: PatternStreak, silenced: str) -> PatternStreak:
    if silenced and not before.told:
        return structs.replace(before, outside=0, inside=0, silenced=silenced)
    seen = before.outside + 1
    return structs.replace(before, outside=seen, inside=0, told=before.told or seen >= REPORTED_AFTER)


def _inside(before: PatternStreak) -> PatternStreak | None:
    """Count a block inside. A silenced streak then ends as such; a streak of one block is forgotten."""
    if not before.told and not before.silenced:
        return None
    seen = before.inside + 1
    return structs.replace(before, outside=0, inside=seen, over=seen >= OVER_AFTER or not before.told)
