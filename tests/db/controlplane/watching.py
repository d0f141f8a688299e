"""Helpers for the tests of pattern watching: the times of the first block, and a stable cell."""

from datetime import UTC, datetime, timedelta
from typing import Final

from mgmt.models import Cell, CellVerdict, PatternMark, Pipe
from mgmt.patterns.blocks import MINUTES, block_at

GRACE_S: Final = 60
START: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NOW: Final = datetime(2026, 11, 21, 12, 7, 1, tzinfo=UTC)  # the first moment at which START's block is complete
FIRST: Final = block_at(START)
BLOCK: Final = timedelta(minutes=MINUTES)


def well_cell() -> Cell:
    """Create a cell that has been stable since long before START."""
    cell = Cell.objects.create(id="c1")
    CellVerdict.objects.create(cell=cell, state="stable", since=START - timedelta(days=1), at=NOW + timedelta(days=1))
    return cell


def watch_from_first(pipe: Pipe, cell: Cell) -> None:
    """Put the pipe on the cell; FIRST is the next block to be judged."""
    pipe.cell = cell
    pipe.save()
    PatternMark.objects.create(block=FIRST - 1)
