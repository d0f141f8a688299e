"""The verdict on an attempt, in one place: delivered, worth a retry, dead, or the end of the destination. Pure.

Recoverable: connect, DNS, TLS handshake, timeout, 5xx, 429. Non-recoverable: any 4xx but 429, never retried.
A 3xx is a failure and never followed; it may be mended by the receiver, so it is tried again. A 410 says that the
destination is gone: it is suspended and the message held. The destination's own rules come before all of these.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from dataplane.spec.loops import LOOP_DETECTED, is_loop
from dataplane.transmit.rules import NO_RULES, Rules, decide


class Outcome(StrEnum):
    """What to do with the message now."""

    DELIVERED = "delivered"
    RECOVERABLE = "recoverable"
    DEAD = "dead"
    GONE = "gone"


class Verdict(Struct, frozen=True):
    """An outcome and its cause: one word from a closed list, shown to the customer.

    `throttled` says that the destination is well and asks for less.
    """

    outcome: Outcome
    cause: str
    throttled: bool = False


# libcurl's error codes (curl.se/libcurl/c/libcurl-errors.html) by the cause a customer can act on.
CURL_CAUSES: Final = {
    3: "url-invalid",
    5: "dns",
    6: "dns",
    7: "connect",
    8: "protocol",
    18: "answer-cut",
    28: "timeout",
    35: "tls",
    52: "no-answer",
    53: "tls",
    54: "tls",
    55: "reset",
    56: "reset",
    58: "tls",
    59: "tls",
    60: "tls-certificate",
    66: "tls",
    77: "tls",
    80: "tls",
    83: "tls-certificate",
    90: "tls-certificate",
    91: "tls-certificate",
}
CAUSES: Final = (
    *dict.fromkeys(CURL_CAUSES.values()),
    "transport",
    "destination-forbidden",
    "redirect",
    "throttled",
    "server-error",
    "rejected",
    "gone",
    "storm",
    "by-rule",
    "credential",
    "secret-unreadable",
    "credential-missing",
    "unknown-destination",
    "header-invalid",
    "request-invalid",
    "informational",
    "topic-unwritable",
    "row",
    "too-large",
    "expired",
    LOOP_DETECTED,
)
OK: Final = Verdict(Outcome.DELIVERED, "")
LOOP: Final = Verdict(Outcome.DEAD, LOOP_DETECTED)
_BY_RULE: Final = {
    "delivered": OK,
    "retry": Verdict(Outcome.RECOVERABLE, "by-rule"),
    "dead": Verdict(Outcome.DEAD, "by-rule"),
    "throttle": Verdict(Outcome.RECOVERABLE, "throttled", throttled=True),
}
_BY_STATUS: Final = {
    410: Verdict(Outcome.GONE, "gone"),
    429: Verdict(Outcome.RECOVERABLE, "throttled", throttled=True),
}
_BY_CLASS: Final = {
    1: Verdict(Outcome.RECOVERABLE, "informational"),
    2: OK,
    3: Verdict(Outcome.RECOVERABLE, "redirect"),
    4: Verdict(Outcome.DEAD, "rejected"),
    5: Verdict(Outcome.RECOVERABLE, "server-error"),
}


def judge(
    status: int, curl_code: int, *, forbidden: bool = False, rules: Rules = NO_RULES, body: bytes = b""
) -> Verdict:
    """The verdict for an HTTP status (0 if no answer came) and libcurl's code (0 if the transfer went well).

    `forbidden` says that the address guard refused the connection. An answer that was cut off after its status line
    counts by its status: the receiver has decided. `body` is as much of the answer as was kept.
    """
    if forbidden:
        return Verdict(Outcome.RECOVERABLE, "destination-forbidden")
    if not status:
        return Verdict(Outcome.RECOVERABLE, CURL_CAUSES.get(curl_code, "transport"))
    if is_loop(status, body):
        return LOOP
    if rules and (then := decide(rules, status, body)):
        return _BY_RULE[then]
    return _BY_STATUS.get(status) or _BY_CLASS.get(status // 100, Verdict(Outcome.RECOVERABLE, "protocol"))
