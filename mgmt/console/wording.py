"""What pages say: a sentence for each cause, and what to do. Never a code without a sentence."""

from typing import Final

from mgmt.console.causes import BY_CODE

CAUSES: Final = {code: cause.words for code, cause in BY_CODE.items()}
BINS: Final = {
    "delivered": "a destination answered 2xx",
    "filtered": "no destination was due",
    "duplicate": "seen before",
    "cancelled": "stopped by someone",
    "dead": "will not be tried again",
    "held": "kept until someone releases them",
    "retrying": "failed and waiting for the next try",
    "queued": "on the way",
    "lost": "passed by every node and settled by none",
}
BIN_COLOURS: Final = {
    "delivered": "fine",
    "dead": "bad",
    "lost": "bad",
    "held": "wait",
    "retrying": "wait",
    "queued": "wait",
}
_ANSWERS: Final = ("rejected", "throttled", "server-error", "redirect", "informational")
OUTCOMES: Final = {
    "delivered": ("fine", "delivered"),
    "retry": ("wait", "failed, tried again at once"),
    "parked": ("wait", "failed, tried again later"),
    "dead": ("bad", "dead"),
    "held": ("off", "held"),
    "cancelled": ("off", "cancelled"),
}


def cause_in_words(cause: str, reason: str = "") -> str:
    """A cause as half a sentence; a reason that came with an attempt says more and wins for unknown causes."""
    return CAUSES.get(cause) or reason or cause or "the cause was not recorded"


def failure_in_words(reason: str, status: int) -> tuple[str, str]:
    """An attempt's reason as (words, detail): `connect: refused` is ("No connection", "refused")."""
    cause, _, detail = reason.partition(": ")
    if cause not in CAUSES:
        return reason, ""
    if status and cause in _ANSWERS:
        return f"Answered {status}", ""
    return capitalised(CAUSES[cause]), detail


def capitalised(words: str) -> str:
    """With a capital first letter, and the others as they are."""
    return words[:1].upper() + words[1:]


def trouble_in_words(*, bin_: str, where: str, cause: str, reason: str, status: int) -> str:
    """The head of a line under "Not delivered": who did what."""
    if bin_ == "held":
        words = bin_
    elif bin_ == "lost":
        words = f"lost: {BINS[bin_]}"
    elif status and (cause or reason.partition(": ")[0]) in _ANSWERS:
        words = f"answered {status}"
    else:
        words = cause_in_words(cause or reason.partition(": ")[0], reason)
    return f"{where}: {words}" if where else capitalised(words)


def what_to_do(bin_: str, cause: str) -> str:
    """The next step for whoever reads."""
    if bin_ == "retrying":
        return "We try again by ourselves."
    if bin_ == "held":
        return "It is paused or suspended. Resume it when it is well: they go out in order."
    if bin_ == "lost":
        return "This must not happen: tell the operator."
    known = BY_CODE.get(cause)
    return known.todo[0] if known else "Look at the attempts for the reason."
