"""Texts of bins, outcomes and causes for pages. A page never shows a code without a sentence."""

from typing import Final

from dataplane.causes import Cause
from dataplane.tables.run_notes import reason_in
from mgmt.deliveries.causes import BY_CODE

CAUSES: Final[dict[str, str]] = {code: cause.words for code, cause in BY_CODE.items()}
BINS: Final = {
    "delivered": "accepted by a destination",
    "filtered": "not selected for any destination",
    "duplicate": "repeat of an earlier event",
    "cancelled": "cancelled before delivery",
    "dead": "failed permanently; can be redriven",
    "held": "kept until released",
    "retrying": "failed, waiting for the next attempt",
    "queued": "in progress",
    "lost": "no outcome was recorded",
}
BIN_COLOURS: Final = {
    "delivered": "fine",
    "dead": "bad",
    "lost": "bad",
    "held": "wait",
    "retrying": "wait",
    "queued": "wait",
}
_ANSWERS: Final = (
    Cause.REJECTED,
    Cause.STORE_REFUSED,
    Cause.THROTTLED,
    Cause.SERVER_ERROR,
    Cause.REDIRECT,
    Cause.INFORMATIONAL,
)
OUTCOMES: Final = {
    "delivered": ("fine", "delivered"),
    "retry": ("wait", "failed, retried immediately"),
    "parked": ("wait", "failed, retry scheduled"),
    "dead": ("bad", "dead"),
    "held": ("off", "held"),
    "cancelled": ("off", "cancelled"),
}


def cause_in_words(cause: str, reason: str = "") -> str:
    """Return a cause as a phrase; for an unknown cause the attempt's `reason`, if there is one."""
    return CAUSES.get(cause) or reason or cause or "the cause was not recorded"


def failure_in_words(reason: str, status: int) -> tuple[str, str]:
    """Split an attempt's reason into (words, detail): `connect: refused` gives ("No connection", "refused")."""
    cause, _, detail = reason.partition(": ")
    if cause not in CAUSES:
        return reason, ""
    if status and cause in _ANSWERS:
        return f"Returned {status}", ""
    return capitalised(CAUSES[cause]), detail


def capitalised(words: str) -> str:
    """Capitalise the first letter only; `str.capitalize` would lower the others."""
    return words[:1].upper() + words[1:]


def run_note(error: str) -> str:
    """Return the error of a replay or shadow run that runs as a sentence: why it waits, or the events it leaves out."""
    if reason_in(error):
        return f"Waiting: {error}."
    return f"{capitalised(error)}." if error else ""


def problem_in_words(*, bin_: str, where: str, cause: str, reason: str, status: int) -> str:
    """Return the title of a line under "Not delivered": the destination or node, and what happened."""
    if bin_ == "held":
        words = bin_
    elif bin_ == "lost":
        words = f"lost: {BINS[bin_]}"
    elif status and (cause or reason.partition(": ")[0]) in _ANSWERS:
        words = f"returned {status}"
    else:
        words = cause_in_words(cause or reason.partition(": ")[0], reason)
    return f"{where}: {words}" if where else capitalised(words)


def what_to_do(bin_: str, cause: str) -> str:
    """Return the next step for the reader."""
    if bin_ == "retrying":
        return "Penstock retries automatically."
    if bin_ == "held":
        return "The destination is paused or suspended. Resume it once it works: held messages are delivered in order."
    if bin_ == "lost":
        return "This is a defect of Penstock. Contact the operator."
    known = BY_CODE.get(cause)
    return known.todo[0] if known else "Check the attempts for the reason."
