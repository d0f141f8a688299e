"""Which patterns a block shows, and what follows from block to block: noted when it lasts, over when that lasts.

One block outside is chance or a burst; the second in a row is told. One block inside ends nothing, the second does.
What a change of the pipe's cell explains is listed as silenced and not told; it counts from when the change is over.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, structs

from mgmt.patterns.blocks import Block, Known
from mgmt.patterns.usual import FAILING, LAG, SIGNALS, VOLUME, Signal, Usual, blocks_to_compare, usual_of

TOLD_AFTER: Final = 2
OVER_AFTER: Final = 2
Cause = Literal["deploy", "scale", "ramp", "pause", "unstable"]


class Pattern(Struct, frozen=True):
    """A signal beyond the usual on one side. `caused_by`: what explains it; what customers send we do not cause."""

    name: str
    signal: Signal
    high: bool
    caused_by: frozenset[Cause] = frozenset()


PATTERNS: Final = (
    Pattern("quiet", VOLUME, high=False),
    Pattern("busy", VOLUME, high=True),
    Pattern("failing", FAILING, high=True, caused_by=frozenset({"ramp"})),
    Pattern("slow", LAG, high=True, caused_by=frozenset({"deploy", "scale", "ramp", "pause", "unstable"})),
)


class Reading(Struct, frozen=True):
    """A signal of one block beside what is usual; either is None where nothing can be said."""

    signal: Signal
    value: float | None
    usual: Usual | None

    @property
    def words(self) -> str:
        """What is seen and what is usual, in one sentence; "" if nothing can be said."""
        if self.value is None or self.usual is None:
            return ""
        return self.signal.sentence.format(
            seen=self.signal.text(self.value), usual=range_of(self.signal, self.usual), basis=self.usual.basis
        )

    def shows(self, pattern: Pattern) -> bool | None:
        """Whether the block lies beyond the border; None if nothing can be said."""
        if self.value is None or self.usual is None:
            return None
        return self.value > self.usual.above if pattern.high else self.value < self.usual.below


class Watch(Struct, frozen=True):
    """A pattern that has been seen: since which block, how many in a row are outside or inside now.

    told:     it lasted, and is a finding
    silenced: what explains it, in words; "" if nothing does
    over:     it has ended
    """

    since: int
    outside: int = 0
    inside: int = 0
    told: bool = False
    silenced: str = ""
    over: bool = False


def read(block: Block, known: Known, hour: int) -> Mapping[str, Reading]:
    """Each signal of a block in that hour, by name."""
    compared, basis = blocks_to_compare(known, hour)
    return {
        signal.name: Reading(signal, signal.of(block), usual_of(signal, compared, basis, block))
        if compared and signal.of(block) is not None
        else Reading(signal, signal.of(block), None)
        for signal in SIGNALS
    }


def follow(before: Watch | None, number: int, *, shows: bool | None, silenced: str) -> Watch | None:
    """What a pattern has become with block `number`; None if there is nothing to remember."""
    if shows is None:
        return before
    if shows:
        return _outside(before or Watch(number), silenced)
    return _inside(before) if before else None


def range_of(signal: Signal, usual: Usual) -> str:
    """Eight of ten blocks lie within it."""
    low, high = signal.text(usual.low), signal.text(usual.high)
    return low if low == high else f"{low} to {high}"


def _outside(before: Watch, silenced: str) -> Watch:
    if silenced and not before.told:
        return structs.replace(before, outside=0, inside=0, silenced=silenced)
    seen = before.outside + 1
    return structs.replace(before, outside=seen, inside=0, told=before.told or seen >= TOLD_AFTER)


def _inside(before: Watch) -> Watch | None:
    """What was only silenced is kept as such; what was seen once is forgotten."""
    if not before.told and not before.silenced:
        return None
    seen = before.inside + 1
    return structs.replace(before, outside=0, inside=seen, over=seen >= OVER_AFTER or not before.told)
