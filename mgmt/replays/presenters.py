"""View models of replays: rows and accounts in, words and colours out. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dataplane.ledger.bins import OPEN, Bin
from dataplane.tables.run_notes import reason_in
from mgmt.deliveries.cause_wording import BINS, run_note
from mgmt.ledger.queries.minutes import Counts, MinuteLoss
from mgmt.models import Backfill, Replay
from mgmt.replays.models import UNDONE

NARROW: Final = "\u202f"
# Outcomes of a copy, where they differ from those of an original.
MEANINGS: Final = BINS | {
    Bin.DEAD: "failed permanently",
    Bin.CANCELLED: "not sent, because the destination or the pipe was paused or suspended",
}
_COLOURS: Final = {
    Replay.State.PAUSED: "wait",
    Replay.State.ABORTING: "wait",
    Replay.State.ABORTED: "off",
    Replay.State.FAILED: "bad",
}
_ALWAYS: Final = (Bin.DELIVERED, Bin.FILTERED, Bin.DEAD, Bin.CANCELLED, Bin.RETRYING, Bin.QUEUED, Bin.LOST)


@dataclass(frozen=True)
class ReplayLine:
    """Replay in words. `progress`: such as "62 %, about 4 min left"; "" once it has ended.

    messages: all units of its account; `waiting`, `undone`: those without an outcome yet, and those not delivered. A
    lost one counts once the result is final
    """

    row: Replay
    colour: str
    words: str
    progress: str
    asked: int
    delivered: int
    messages: int
    waiting: int
    undone: int

    @property
    def is_final(self) -> bool:
        """True if no outcome changes any more."""
        return self.row.result_at is not None

    @property
    def note(self) -> str:
        """Return why it waits, or which events it leaves out, as a sentence; "" for neither."""
        return run_note(self.row.error)

    @property
    def percent(self) -> int | None:
        """Read part of the range in whole percent, 100 only when all of it is read; None if it is not known."""
        share = self.row.share
        return None if share is None else int(share * 100)

    @property
    def to_send(self) -> int:
        """Messages sent so far; of a rehearsal, those that would be sent."""
        return sum(self.row.units.values())


def replay_line(row: Replay, account: MinuteLoss, now: datetime) -> ReplayLine:
    """Return a replay in words, with the figures of its account."""
    bins = account.bins
    waiting = 0 if row.result_at or row.rehearsal else sum(bins.get(name, 0) for name in (*OPEN, Bin.LOST))
    undone = sum(bins.get(name, 0) for name in row.undone_bins)
    colour, words = _state(row, waiting, undone)
    return ReplayLine(
        row=row,
        colour=colour,
        words=words,
        progress=_progress(row, now) if row.is_under_way else "",
        asked=max(account.accepted, row.asked),
        delivered=bins.get(Bin.DELIVERED, 0),
        messages=sum(bins.values()),
        waiting=waiting,
        undone=undone,
    )


@dataclass(frozen=True)
class BackfillLine:
    """Backfill of a destination in words. `progress`: of its replay, as of a ReplayLine."""

    row: Backfill
    colour: str
    words: str
    progress: str


def backfill_line(row: Backfill, now: datetime) -> BackfillLine:
    """Return a backfill in words, without the ledger: failed messages show once the result of its replay is final."""
    replay = row.replay
    if replay is None:
        return BackfillLine(row, "wait" if row.is_waiting else "off" if row.is_cancelled else "bad", row.state, "")
    bins = (replay.result or {}).get("bins", {}).values()
    colour, words = _state(replay, 0, sum(counts.get(name, 0) for counts in bins for name in UNDONE))
    return BackfillLine(row, colour, words, _progress(replay, now) if replay.is_under_way else "")


def columns_of(bins: Counts) -> list[str]:
    """Return the outcomes to show as columns: the usual ones of copies, and any other that has a message."""
    return [name for name in BINS if name in _ALWAYS or bins.get(name)]


def time_left(row: Replay, now: datetime) -> str:
    """Return how long a running replay still takes at its speed so far: "about 4 min left"; "" if not known."""
    end = row.expected_end
    if end is None or not row.unread:
        return ""
    left_s = (end - now).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if left_s >= size:
            return f"about {round(left_s / size)}{NARROW}{unit} left"
    return f"less than 1{NARROW}min left"


def _progress(row: Replay, now: datetime) -> str:
    share = row.share
    percent = "" if share is None else f"{int(share * 100)}{NARROW}%"
    return ", ".join(part for part in (percent, time_left(row, now)) if part)


def _state(row: Replay, waiting: int, undone: int) -> tuple[str, str]:
    if row.state == Replay.State.RUNNING:
        return "wait", "waiting" if reason_in(row.error) else "starting" if row.is_waiting else "running"
    if row.state != Replay.State.DONE:
        return _COLOURS[Replay.State(row.state)], str(row.state)
    if row.rehearsal:
        return "fine", "rehearsed"
    if undone:
        return "bad", "done, some failed"
    return ("wait", "waiting for outcomes") if waiting or row.result_at is None else ("fine", "done")
