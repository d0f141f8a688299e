"""Texts in the error of a run's progress record: a note on events that retention has deleted, and a reason. Pure."""

from datetime import UTC, datetime
from typing import Final

_EXPIRED: Final = "events before "
_BETWEEN: Final = "; "


def expiry_note(retained_since_us: int, fate: str = "are no longer retained") -> str:
    """Return the text for events that retention has deleted; "" for 0. `fate`: the predicate of the sentence."""
    if not retained_since_us:
        return ""
    moment = datetime.fromtimestamp(-(-retained_since_us // 1_000_000), UTC)
    return f"{_EXPIRED}{moment:%Y-%m-%dT%H:%M:%SZ} {fate}"


def note_in(error: str) -> str:
    """Return the text of `expiry_note` in a progress record's error; "" if there is none."""
    first = error.partition(_BETWEEN)[0]
    return first if first.startswith(_EXPIRED) else ""


def error_text(before: str, reason: str, expired: str = "") -> str:
    """Return the error of the next progress record: the newest note on deleted events, and the reason."""
    return _BETWEEN.join(filter(None, (expired or note_in(before), reason)))


def reason_in(error: str) -> str:
    """Return the reason why a run waits or has failed, without the note; "" if there is none."""
    note = note_in(error)
    return error.removeprefix(note).removeprefix(_BETWEEN) if note else error
