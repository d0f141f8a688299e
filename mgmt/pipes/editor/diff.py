"""Line diff of two texts whose time grows only with their length. Pure.

Patience diff: lines that occur once in both texts are anchors, the longest subsequence of anchors in the same order is
kept, and the texts between two anchors are compared recursively. difflib takes quadratic time or worse, and the lines
are tenant input.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

DiffKind = Literal["same", "gone", "new"]


class DiffLine(NamedTuple):
    """Line of a body: `same`, `new` (added) or `gone` (removed)."""

    kind: DiffKind
    text: str


def changed_lines(old: Sequence[str], new: Sequence[str]) -> list[DiffLine]:
    """Return the lines of both texts, each marked; a trailing comma does not count as a change."""
    bare_old, bare_new = _bare(old), _bare(new)
    lines: list[DiffLine] = []
    at_old = at_new = 0
    for place_old, place_new in [*_kept(bare_old, bare_new), (len(old), len(new))]:
        lines += [DiffLine("gone", text) for text in old[at_old:place_old]]
        lines += [DiffLine("new", text) for text in new[at_new:place_new]]
        if place_new < len(new):
            lines.append(DiffLine("same", new[place_new]))
        at_old, at_new = place_old + 1, place_new + 1
    return lines


class _Part(NamedTuple):
    """Ranges of both texts that are still to be compared."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def _kept(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the index pairs of unchanged lines, in order."""
    work = [_Part(0, len(old), 0, len(new))]
    while work:
        part = work.pop()
        head = _common(old[part.old_from : part.old_to], new[part.new_from : part.new_to])
        yield from ((part.old_from + n, part.new_from + n) for n in range(head))
        rest = part._replace(old_from=part.old_from + head, new_from=part.new_from + head)
        work += reversed(list(_parts(old, new, rest)))


def _parts(old: Sequence[str], new: Sequence[str], whole: _Part) -> Iterator[_Part]:
    """Yield the parts between the anchors, each with its leading anchor, and the common suffix."""
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
    """Return the length of the common prefix."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of lines that occur once in both texts, as a longest sequence in the same order."""
    counts_old, counts_new = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if counts_new[line] == 1}
    pairs = [(place, places[line]) for place, line in enumerate(old) if counts_old[line] == 1 and line in places]
    return _longest_rising(pairs)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence whose second values increase (patience sorting)."""
    tops: list[int] = []  # second value on top of each pile
    chain: list[int] = []  # index of the pair on top of each pile
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
