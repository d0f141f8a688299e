"""Dead letters, moves and alerts as pages tell them: rows in, words and colours out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dataplane.ledger.units import format_position
from mgmt.console.causes import BY_CODE
from mgmt.console.spans import typed_span
from mgmt.console.wording import capitalised, cause_in_words, trouble_in_words
from mgmt.models import Alert, DeadLetter, Destination, Move
from mgmt.queries.delivery import Standing
from mgmt.queries.places import Waiting

_MOVES: Final = {
    Move.State.RUNNING: ("wait", "under way"),
    Move.State.ABORTING: ("wait", "stopping"),
    Move.State.ABORTED: ("off", "aborted"),
    Move.State.DONE: ("fine", "done"),
}
_ALERTS: Final = {
    Alert.State.OPENED: "bad",
    Alert.State.ACKNOWLEDGED: "wait",
    Alert.State.SNOOZED: "off",
    Alert.State.RESOLVED: "fine",
}
STATES: Final = {
    Destination.State.ACTIVE: "fine",
    Destination.State.PAUSED: "wait",
    Destination.State.SUSPENDED: "bad",
    Destination.State.REMOVED: "off",
}


@dataclass(frozen=True)
class DeadLine:
    """A dead letter in words; `code` is "" if there is no help page for its cause."""

    row: DeadLetter
    words: str
    detail: str
    code: str
    position: str


@dataclass(frozen=True)
class Content:
    """A message as it lies in its topic; `reason` says why it cannot be shown."""

    headers: Sequence[tuple[str, str]] = ()
    body: str = ""
    shown: int = 0
    size: int = 0
    reason: str = ""

    @property
    def cut(self) -> bool:
        """Whether there is more than is shown."""
        return self.shown < self.size


@dataclass(frozen=True)
class HeapLine:
    """Dead letters of one destination and one cause that wait for somebody."""

    fact: Waiting
    words: str
    code: str


@dataclass(frozen=True)
class HeldLine:
    """A destination's held messages, and why they are."""

    fact: Standing
    row: Destination
    colour: str
    words: str
    code: str


@dataclass(frozen=True)
class MoveLine:
    """A redrive or a release, and how far it has come."""

    row: Move
    colour: str
    words: str
    handled: int
    running: bool


@dataclass(frozen=True)
class AlertLine:
    """An alert in words."""

    row: Alert
    colour: str
    words: str
    code: str


@dataclass(frozen=True)
class AlertShown:
    """One alert with what its page needs beyond the line."""

    line: AlertLine
    sentence: str
    todo: Sequence[str]
    open_for: str
    held: int
    dead: int
    position: str
    answer: str
    curl: str
    probe: tuple[str, str] | None


def dead_line(row: DeadLetter) -> DeadLine:
    """One dead letter."""
    detail = _without_cause(row.detail)
    words = cause_in_words(row.cause)
    if detail.startswith("answered "):  # says the status, and so all that the cause says
        words, detail = detail, ""
    return DeadLine(row, capitalised(words), detail, _code(row.cause), format_position(row.position))


def readable_body(body: bytes) -> str:
    """JSON with its lines apart, anything else as text."""
    text = body.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def heap_line(fact: Waiting) -> HeapLine:
    """One heap."""
    return HeapLine(fact, cause_in_words(fact.cause), _code(fact.cause))


def held_line(fact: Standing) -> HeldLine:
    """One destination."""
    row = fact.destination
    words = state_in_words(row) or ("its pipe is paused" if fact.pipe_paused else "")
    return HeldLine(fact, row, STATES[Destination.State(row.state)], words, _code(row.state_cause))


def state_in_words(row: Destination) -> str:
    """Why a destination is in its state; "" for an active one."""
    if row.state == Destination.State.PAUSED:
        return f"paused by {row.state_by.get_username()}" if row.state_by else "paused"
    if row.state == Destination.State.SUSPENDED:
        words = cause_in_words(row.state_cause)
        return f"{words} ({_without_cause(row.state_reason)})" if row.state_reason else words
    return ""


def move_line(row: Move) -> MoveLine:
    """One move."""
    colour, words = _MOVES[Move.State(row.state)]
    if row.state == Move.State.DONE and row.skipped:
        colour, words = "wait", "done, with some left out"
    running = row.state in Move.UNDER_WAY
    return MoveLine(row, colour, words, row.moved + row.skipped, running)


def alert_line(row: Alert) -> AlertLine:
    """One alert."""
    status = row.sample.get("status") or 0
    words = trouble_in_words(bin_="", where=row.destination, cause=row.cause, reason="", status=status)
    return AlertLine(row, _ALERTS[Alert.State(row.state)], words, _code(row.cause))


def alert_shown(row: Alert, *, held: int, dead: int, now: datetime) -> AlertShown:
    """One alert, whole; `held` and `dead` wait at its destination now."""
    known = BY_CODE.get(row.cause)
    return AlertShown(
        line=alert_line(row),
        sentence=_sentence(row),
        todo=known.todo if known else ("Look at the attempts for the reason.",),
        open_for=_rounded((row.resolved_at or now) - row.opened_at),
        held=held,
        dead=dead,
        position=str(row.sample.get("position") or ""),
        answer=str(row.sample.get("answer") or ""),
        curl=str(row.sample.get("curl") or ""),
        probe=_probe(row),
    )


def _sentence(row: Alert) -> str:
    where = row.destination or "The pipe"
    if row.state == Alert.State.RESOLVED:
        return f"It is over: {row.resolution or 'resolved'}."
    if row.suspended:
        return f"{where} is suspended for this cause: what comes is held and follows when it is well. None is lost."
    return (
        f"{where} ended {row.count} message{'s' if row.count != 1 else ''} for this cause. They are kept, none is lost."
    )


def _probe(row: Alert) -> tuple[str, str] | None:
    """The colour and the words for the message that was sent to try."""
    words = {
        Alert.Probe.RUNNING: ("wait", "One message is on its way. We wait for its answer."),
        Alert.Probe.ACCEPTED: ("fine", "The message was accepted. The rest follows by itself."),
        Alert.Probe.REFUSED: ("bad", f"The message was not accepted: {row.probe_says or 'no reason came'}."),
    }
    return words.get(Alert.Probe(row.probe)) if row.probe else None


def _rounded(span: timedelta) -> str:
    """In its largest whole unit."""
    whole_s = max(int(span.total_seconds()), 0)
    for size in (86_400, 3_600, 60):
        if whole_s >= size:
            return typed_span(whole_s - whole_s % size)
    return typed_span(whole_s)


def _without_cause(reason: str) -> str:
    """What stands behind the cause that a reason begins with."""
    cause, _, detail = reason.partition(": ")
    return detail if cause in BY_CODE and detail else reason


def _code(cause: str) -> str:
    return cause if cause in BY_CODE else ""
