"""Sets of units (position, child): one roaring bitmap of positions per child, nearly always only child 0."""

from collections.abc import Iterable, Iterator, Mapping

from pyroaring import BitMap64


class UnitSet:
    """Immutable set of (position, child). Operators return new sets and share the unchanged bitmaps."""

    __slots__ = ("_children",)

    def __init__(self, children: Mapping[int, BitMap64] | None = None) -> None:
        self._children = {child: positions for child, positions in (children or {}).items() if positions}

    @classmethod
    def of(cls, positions: Iterable[int]) -> "UnitSet":
        """Return the set of these positions with child 0."""
        return cls({0: BitMap64(positions)})

    def items(self) -> Iterator[tuple[int, BitMap64]]:
        """Return the (child, positions) pairs."""
        return iter(self._children.items())

    def positions(self, child: int = 0) -> BitMap64:
        """Return the positions of one child."""
        return self._children.get(child, BitMap64())

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((position, child) for child, positions in sorted(self._children.items()) for position in positions)

    def __len__(self) -> int:
        return sum(len(positions) for positions in self._children.values())

    def __or__(self, other: "UnitSet") -> "UnitSet":
        merged = dict(self._children)
        for child, positions in other.items():
            merged[child] = merged[child] | positions if child in merged else positions
        return UnitSet(merged)

    def __and__(self, other: "UnitSet") -> "UnitSet":
        return UnitSet({child: positions & other.positions(child) for child, positions in self.items()})

    def __sub__(self, other: "UnitSet") -> "UnitSet":
        return UnitSet({child: positions - other.positions(child) for child, positions in self.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnitSet) and self._children == other._children

    __hash__ = None  # type: ignore[assignment]  # equal sets may be built from unequal bitmaps

    def __repr__(self) -> str:
        return f"UnitSet({len(self)})"


def union(pairs: Iterable[tuple[int, BitMap64]]) -> UnitSet:
    """Return the union of (child, positions) pairs."""
    merged: dict[int, BitMap64] = {}
    for child, positions in pairs:
        merged[child] = merged[child] | positions if child in merged else positions
    return UnitSet(merged)
