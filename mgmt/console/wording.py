"""What pages say: a sentence for each cause, and what to do. Never a code without a sentence."""

from typing import Final

# The causes are those of dataplane.transmit.verdict and of the stages; an unknown one is shown as it came.
CAUSES: Final = {
    "decode": "the body is not JSON",
    "step": "a step could not change it",
    "encode": "the changed body cannot be written as JSON",
    "too-large": "it grew too large",
    "rejected": "answered 4xx, which is final",
    "gone": "answered 410: the destination is gone",
    "storm": "refused one message after another",
    "by-rule": "a rule about answers says so",
    "credential": "no token could be had to sign in with",
    "secret-unreadable": "its secrets cannot be opened",
    "unknown-destination": "the destination is not known",
    "header-invalid": "a header of it cannot be sent",
    "gave-up": "tried for the whole retry span, without success",
    "url-invalid": "the URL cannot be used",
    "dns": "the host name is not known",
    "connect": "no connection",
    "protocol": "the answer is not HTTP",
    "answer-cut": "the answer broke off",
    "timeout": "no answer in time",
    "tls": "TLS failed",
    "tls-certificate": "its certificate is not valid",
    "no-answer": "it hung up without an answer",
    "reset": "the connection was reset",
    "transport": "the connection failed",
    "destination-forbidden": "its address may not be called from here",
    "redirect": "answered with a redirect, which is never followed",
    "throttled": "answered 429: too many requests",
    "server-error": "answered 5xx",
    "informational": "answered 1xx only",
}
TODO: Final = {
    "rejected": "Mend the destination or the URL. The messages are kept on the dead topic, none is lost.",
    "gone": "Mend the URL, then resume the destination. The messages are held.",
    "storm": "Mend the destination or the URL, then resume it. The messages are held.",
    "gave-up": "Mend the destination. The messages are kept on the dead topic, none is lost.",
    "decode": "Let the source send JSON, or take the steps out of the pipe.",
    "step": "Publish a revision whose steps fit these events.",
}
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
    if bin_ == "lost":
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
    if bin_ == "lost":
        return "This must not happen: tell the operator."
    return TODO.get(cause, "Look at the attempts for the reason.")
