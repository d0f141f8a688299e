"""View models of dead letters, redrives and alerts: rows in, words and colours out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dataplane.causes import Cause
from dataplane.ledger.units import format_position
from mgmt.alerts.common_fields import in_words
from mgmt.alerts.drift import DriftTable, drift_tables
from mgmt.deliveries.cause_wording import capitalised, cause_in_words, failure_in_words, problem_in_words
from mgmt.deliveries.causes import BY_CODE, FINAL
from mgmt.deliveries.queries.delivery import DeliveryState
from mgmt.deliveries.queries.message_selection import WaitingMessages
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.models import Alert, DeadLetter, Destination, Redrive
from mgmt.web.durations import typed_duration

_REDRIVE_STATES: Final = {
    Redrive.State.RUNNING: ("wait", "running"),
    Redrive.State.ABORTING: ("wait", "stopping"),
    Redrive.State.ABORTED: ("off", "aborted"),
    Redrive.State.DONE: ("fine", "done"),
}
_REDRIVEN: Final = ("wait", "redriven")
_SEND_AGAIN: Final = "cannot be redriven: publish a fix, then send the events again with the same ids"
_ALERTS: Final = {
    Alert.State.OPENED: "bad",
    Alert.State.ACKNOWLEDGED: "wait",
    Alert.State.SNOOZED: "off",
    Alert.State.RESOLVED: "fine",
}
MOST_MINUTES: Final = 20  # minutes with losses that an alert links to
_WAITING: Final = (Cause.FAILING, Cause.DELAYED)  # alerts about messages that are still retried
# Sentence about lost messages in alerts whose messages neither fail nor are lost.
_UNHARMED: Final[dict[str, str]] = {
    Cause.HOT_PARTITION: "Events of some keys wait longer than others. None is lost. The alert is resolved "
    "automatically.",
    Cause.NUMERIC_DRIFT: "Messages are delivered as usual. The alert is resolved once the values are usual again, or "
    "have stayed for a day.",
    Cause.REJECTING: "These events are not processed. Their sender gets the reason in the response to each. The alert "
    "is resolved ten minutes after the last one.",
    Cause.SEQUENCE_GAP: "Penstock has not received these numbers. Events that arrived are processed as usual. The "
    "alert is resolved when the numbers arrive, or after an hour without a new gap.",
    **dict.fromkeys(
        _WAITING, "Messages wait and are retried. None is lost. The alert is resolved automatically on recovery."
    ),
}
# Alerts whose remedy is a corrected revision, with the label of the link to the editor.
FIXES: Final[dict[str, str]] = {
    Cause.ROUTE: "Fix rule",
    Cause.STEP: "Fix steps",
    Cause.TRANSFORM_LIMIT: "Fix steps",
    Cause.LOOKUP: "Fix steps",
    Cause.ENCODE: "Fix steps",
    Cause.DEAD_RATE: "Edit pipe",
}
STATES: Final = {
    Destination.State.ACTIVE: "fine",
    Destination.State.PAUSED: "wait",
    Destination.State.SUSPENDED: "bad",
    Destination.State.REMOVED: "off",
}


@dataclass(frozen=True)
class DeadLetterLine:
    """Dead letter in words; `code` is "" if its cause has no help page. `state`: (colour, words)."""

    row: DeadLetter
    words: str
    detail: str
    code: str
    position: str
    state: tuple[str, str]


@dataclass(frozen=True)
class MessageContent:
    """Message as stored in its topic; `reason` says why it cannot be shown."""

    headers: Sequence[tuple[str, str]] = ()
    body: str = ""
    shown: int = 0
    size: int = 0
    reason: str = ""

    @property
    def cut(self) -> bool:
        """True if only a part of the body is shown."""
        return self.shown < self.size


@dataclass(frozen=True)
class DeadLetterGroup:
    """Dead letters of one destination and cause that were not redriven.

    `redrivable` is false if no redrive can take them; then `todo` says what helps.
    """

    fact: WaitingMessages
    words: str
    code: str
    redrivable: bool
    todo: str


@dataclass(frozen=True)
class HeldGroup:
    """Held messages of a destination, with the reason."""

    fact: DeliveryState
    row: Destination
    colour: str
    words: str
    code: str


@dataclass(frozen=True)
class RedriveLine:
    """Redrive or release with its progress."""

    row: Redrive
    colour: str
    words: str
    handled: int
    running: bool


@dataclass(frozen=True)
class AlertLine:
    """Alert in words."""

    row: Alert
    colour: str
    words: str
    code: str


@dataclass(frozen=True)
class AlertDetails:
    """Alert with the further data of its page. `can_run_again`: events that died in the steps may run again.

    `failure`: words and detail of the latest failure. `is_hot`: the alert is about a hot partition. `drift`: the
    distributions of fields that drift; `drift_more`: further ones. `rejections`: kinds of rejected events. `gaps`: of
    sequences. `fix`: label of the link to the editor; "" if no revision helps, or one that went live after the last
    failure is being tested by the traffic.
    """

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
    can_run_again: bool
    fix: str = ""
    failure: tuple[str, str] = ("", "")
    figures: Sequence[tuple[str, str]] = ()
    counted: str = "Failures, with repeats"
    can_probe: bool = False
    oldest_at: datetime | None = None
    common: Sequence[str] = ()
    loss: Mapping[str, Any] | None = None
    loss_minutes: Sequence[tuple[int, datetime]] = ()
    is_hot: bool = False
    drift: Sequence[DriftTable] = ()
    drift_more: int = 0
    rejections: Sequence[Mapping[str, Any]] = ()
    gaps: Sequence[Mapping[str, Any]] = ()


def dead_letter_line(row: DeadLetter, after_redrive: str = "") -> DeadLetterLine:
    """Return a dead letter in words. `after_redrive`: what became of it since it was redriven, if that is known."""
    detail = _without_cause(row.detail)
    words = cause_in_words(row.cause)
    if detail.startswith("returned "):  # the status includes the information of the cause
        words, detail = detail, ""
    state = ("bad", "open")
    if row.move_id:
        state = ("off" if after_redrive == "filtered" else "fine", after_redrive) if after_redrive else _REDRIVEN
    return DeadLetterLine(row, capitalised(words), detail, _code(row.cause), format_position(row.position), state)


def readable_body(body: bytes) -> str:
    """Return JSON indented, anything else as text."""
    text = body.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def dead_letter_group(fact: WaitingMessages, *, redrivable: bool = True) -> DeadLetterGroup:
    """Return a group of dead letters in words."""
    return DeadLetterGroup(fact, cause_in_words(fact.cause), _code(fact.cause), redrivable, _SEND_AGAIN)


def held_group(fact: DeliveryState) -> HeldGroup:
    """Return a destination's held messages in words."""
    row = fact.destination
    words = state_in_words(row) or ("the pipe is paused" if fact.pipe_paused else "")
    return HeldGroup(fact, row, STATES[Destination.State(row.state)], words, _code(row.state_cause))


def state_in_words(row: Destination) -> str:
    """Return the reason for a destination's state; "" for an active one."""
    if row.state == Destination.State.PAUSED:
        return f"paused by {row.state_by.get_username()}" if row.state_by else "paused"
    if row.state == Destination.State.SUSPENDED:
        words = cause_in_words(row.state_cause)
        return f"{words} ({_without_cause(row.state_reason)})" if row.state_reason else words
    return ""


def redrive_line(row: Redrive) -> RedriveLine:
    """Return a redrive or release in words."""
    colour, words = _REDRIVE_STATES[Redrive.State(row.state)]
    if row.state == Redrive.State.DONE and row.skipped:
        colour, words = "wait", "done, some skipped"
    running = row.state in Redrive.UNDER_WAY
    return RedriveLine(row, colour, words, row.moved + row.skipped, running)


def alert_line(row: Alert) -> AlertLine:
    """Return an alert in words."""
    return AlertLine(row, _ALERTS[Alert.State(row.state)], alert_words(row, where=row.destination), _code(row.cause))


def alert_words(row: Alert, *, where: str = "") -> str:
    """Return what an alert is about, after the name `where` if it is given."""
    status = row.status or (row.sample.get("status") or 0 if row.fingerprint != Alert.OTHER else 0)
    return problem_in_words(bin_="", where=where, cause=row.cause, reason="", status=status)


def alert_details(row: Alert, *, held: int, dead: int, now: datetime, is_fixed: bool = False) -> AlertDetails:
    """Return an alert with its details; `held` and `dead` count the messages at its destination now.

    is_fixed: a revision went live after the last failure
    """
    known = BY_CODE.get(row.cause)
    return AlertDetails(
        line=alert_line(row),
        sentence=_sentence(row),
        todo=known.todo if known else ("Check the attempts for the reason.",),
        open_for=_rounded((row.resolved_at or now) - row.opened_at),
        held=held,
        dead=dead,
        position=str(row.sample.get("position") or ""),
        answer=str(row.sample.get("answer") or ""),
        curl=str(row.sample.get("curl") or ""),
        probe=_probe(row),
        can_run_again=bool(dead and known and known.ending == FINAL and not row.destination),
        fix="" if is_fixed else FIXES.get(row.cause, ""),
        common=in_words(row.details.get("common", ())),
        failure=failure_in_words(str(row.sample.get("reason") or ""), int(row.sample.get("status") or 0)),
        figures=_figures(row),
        counted=_counted(row),
        loss=row.details if row.cause == Cause.LOST else None,
        loss_minutes=[(bucket, start_of(bucket)) for bucket in row.details.get("buckets", ())[-MOST_MINUTES:]],
        is_hot=row.cause == Cause.HOT_PARTITION,
        drift=drift_tables(row.details) if row.cause == Cause.NUMERIC_DRIFT else (),
        drift_more=row.details.get("more", 0) if row.cause == Cause.NUMERIC_DRIFT else 0,
        rejections=row.details.get("rejections", ()),
        gaps=row.details.get("gaps", ()),
        can_probe=bool(row.destination) and row.cause not in _WAITING,
        oldest_at=datetime.fromisoformat(row.details["oldest_at"]) if row.details.get("oldest_at") else None,
    )


def _sentence(row: Alert) -> str:
    where = row.destination or "The pipe"
    if row.state == Alert.State.RESOLVED:
        return f"{capitalised(row.resolution or 'resolved')}."
    if row.cause == Cause.LOST:
        return (
            f"{row.count} message{'s were' if row.count != 1 else ' was'} lost: no outcome was recorded before the "
            f"minute was sealed. You are alerted above {row.details.get('threshold_percent', 0):g} %."
        )
    if row.cause in _UNHARMED:
        return _UNHARMED[row.cause]
    if row.suspended:
        return f"{where} is suspended. New messages are held and delivered in order once it is resumed. None is lost."
    failures = f"{row.count} failure{'s' if row.count != 1 else ''}"
    return (
        f"{failures} at {row.destination or 'the pipe'} with this cause. Messages that fail are kept as dead letters."
    )


def _counted(row: Alert) -> str:
    """Return what the alert's count counts."""
    if row.cause == Cause.LOST:
        return "Messages lost"
    if row.cause == Cause.HOT_PARTITION:
        return "Most messages waiting on the partition"
    if row.cause == Cause.NUMERIC_DRIFT:
        return "Fields"
    if row.cause == Cause.REJECTING:
        return f"Most events rejected in {row.details.get('window_min', 0)} min"
    if row.cause == Cause.SEQUENCE_GAP:
        return "Most gaps at once"
    return "Most messages waiting" if row.cause in _WAITING else "Failures, with repeats"


def _figures(row: Alert) -> list[tuple[str, str]]:
    """Return the figures of an alert's details for its page."""
    details = row.details
    if row.cause == Cause.HOT_PARTITION:
        return _hot_figures(details)
    if row.cause not in _WAITING:
        return []
    return [
        ("Attempts failed (3 min)", f"{details.get('failed', 0)} of {details.get('attempts', 0)}"),
        ("Waiting now", str(details.get("waiting", 0))),
    ]


def _hot_figures(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures of a hot partition; `keys` are masked by the pipe's rules already."""
    share = f"{details['share_percent']:g} % of the events; even: {details['fair_percent']:g} %"
    keys = [(f"Key {one['key']}", f"{one['share_percent']:g} % of the partition") for one in details["keys"]]
    return [
        (f"Partition {details['partition']}", share),
        ("Events per second on it", f"{details['per_s']:g}"),
        ("Messages waiting on it", f"{details['lag']}"),
        *(keys or [("Keys", details["keys_unknown"])]),
    ]


def _probe(row: Alert) -> tuple[str, str] | None:
    """Return the state of the probe message as (colour, words)."""
    words = {
        Alert.Probe.RUNNING: ("wait", "One message was sent. Waiting for the response."),
        Alert.Probe.ACCEPTED: ("fine", "The message was accepted. The rest is released automatically."),
        Alert.Probe.REFUSED: ("bad", f"The message was not accepted: {row.probe_says or 'no reason recorded'}."),
    }
    return words.get(Alert.Probe(row.probe)) if row.probe else None


def _rounded(span: timedelta) -> str:
    """Format a duration in its largest whole unit."""
    whole_s = max(int(span.total_seconds()), 0)
    for size in (86_400, 3_600, 60):
        if whole_s >= size:
            return typed_duration(whole_s - whole_s % size)
    return typed_duration(whole_s)


def _without_cause(reason: str) -> str:
    """Return a reason without its leading cause."""
    cause, _, detail = reason.partition(": ")
    return detail if cause in BY_CODE and detail else reason


def _code(cause: str) -> str:
    return cause if cause in BY_CODE else ""
