"""Fold repeated refusals in the history of a controller. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from mgmt.models import ControlAction

_Refused = tuple[str | None, str, str]  # cell, action, type of the reason


@dataclass
class HistoryLine:
    """One action of a controller, or refusals of the same action on the same cell for the same type of reason.

    action:   the only or newest entry
    count:    number of folded entries
    first_at: time of the oldest one
    pipes:    ids of the pipes that they were about
    """

    action: ControlAction
    count: int
    first_at: datetime
    pipes: set[str] = field(default_factory=set)

    @property
    def last_at(self) -> datetime:
        """Time of the newest entry."""
        return self.action.at


@dataclass(frozen=True)
class History:
    """Lines of a history, the newest first. `next_before`: the oldest entry that they include, if there are older."""

    lines: list[HistoryLine]
    next_before: int | None


def folded(actions: Iterable[ControlAction], *, lines: int, entries: int) -> History:
    """Fold the entries, newest first, into at most so many lines, of at most so many entries.

    Refusals are folded until the same controller changes the cell: what was refused before and after a change was not
    refused for one reason. A line has the place of its newest entry.
    """
    found: list[HistoryLine] = []
    open_: dict[_Refused, HistoryLine] = {}
    last_id = 0
    for number, action in enumerate(actions):
        key = (action.cell_id, action.action, action.refusal)
        line = open_.get(key) if action.outcome == ControlAction.Outcome.REFUSED else None
        if number == entries or (line is None and len(found) == lines):
            return History(found, last_id)
        if line is not None:
            line.count, line.first_at = line.count + 1, action.at
        else:
            line = HistoryLine(action, 1, action.at)
            found.append(line)
            if action.outcome == ControlAction.Outcome.REFUSED:
                open_[key] = line
            else:
                open_ = {known: one for known, one in open_.items() if known[0] != action.cell_id}
        if action.pipe_id:
            line.pipes.add(action.pipe_id)
        last_id = action.id
    return History(found, None)
