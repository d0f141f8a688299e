"""What changed between two texts, line by line, in time that grows with their length alone. Pure.

Patience diff: lines that stand once in both texts are the anchors, the longest run of them that keeps its order stays,
and between two anchors the texts are compared again. difflib's time grows with the square of the lines or worse, and
the lines are a tenant's.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["same", "gone", "new"]


class Line(NamedTuple):
    """A line of a body: `same`, `new` (made here) or `gone` (taken away here)."""

    kind: Kind
    text: str


def changed_lines(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    """Return the lines of both texts, each marked. A comma at the end of a line is no change."""
    bare_old, bare_new = _bare(old), _bare(new)
    lines: list[Line] = []
    at_old = at_new = 0
    for place_old, place_new in [*_kept(bare_old, bare_new), (len(old), len(new))]:
        lines += [Line("gone", text) for text in old[at_old:place_old]]
        lines += [Line("new", text) for text in new[at_new:place_new]]
        if place_new < len(new):
            lines.append(Line("same", new[place_new]))
        at_old, at_new = place_old + 1, place_new + 1
    return lines


class _Part(NamedTuple):
    """A part of both texts that is still to be compared: from and to, of the old one and of the new one."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def _kept(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of lines that stay, in order."""
    work = [_Part(0, len(old), 0, len(new))]
    while work:
        part = work.pop()
        head = _common(old[part.old_from : part.old_to], new[part.new_from : part.new_to])
        yield from ((part.old_from + n, part.new_from + n) for n in range(head))
        rest = part._replace(old_from=part.old_from + head, new_from=part.new_from + head)
        work += reversed(list(_parts(old, new, rest)))


def _parts(old: Sequence[str], new: Sequence[str], whole: _Part) -> Iterator[_Part]:
    """Yield what is between the anchors, each part with the anchor that it begins with; and the common end."""
    inner_old, inner_new = old[whole.old_from : whole.old_to], new[whole.new_from : whole.new_to]
    end = _common(inner_old[::-1], inner_new[::-1])
    old_to, new_to = whole.old_to - end, whole.new_to - end
    anchors = _anchors(inner_old[: len(inner_old) - end], inner_new[: len(inner_new) - end])
    starts = [(whole.old_from + place_old, whole.new_from + place_new) for place_old, place_new in anchors]
    for (old_from, new_from), (next_old, next_new) in pairwise([*starts, (old_to, new_to)]):
        yield _Part(old_from, next_old, new_from, next_new)
    if end:
        yield _Part(old_to, whole.old_to, new_to, whole.new_to)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of lines that stand once in both texts, as many as keep their order in both."""
    counts_old, counts_new = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if counts_new[line] == 1}
    pairs = [(place, places[line]) for place, line in enumerate(old) if counts_old[line] == 1 and line in places]
    return _longest_rising(pairs)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs whose second values rise (patience sorting)."""
    tops: list[int] = []  # the second value on top of each pile
    chain: list[int] = []  # and the pair that is there
    before: list[int] = []
    for number, (_, value) in enumerate(pairs):
        pile = bisect_left(tops, value)
        before.append(chain[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [value]
        chain[pile : pile + 1] = [number]
    found, number = [], chain[-1] if chain else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.removesuffix(",") for line in lines]
