"""Verdict on an attempt, decided in one place: delivered, recoverable, dead, or gone. Pure.

Recoverable: connect, DNS, TLS handshake, timeout, 5xx, 429. Non-recoverable: any 4xx except 429, never retried.
A 3xx is a failure and never followed; the receiver may correct it, so it is retried. A 410 means that the destination
is gone: it is suspended and the message held. The destination's own rules take precedence over all of these.
"""

from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from dataplane.causes import Cause
from dataplane.spec.loops import is_loop
from dataplane.transmit.policy.rules import NO_RULES, Rules, decide


class DeliveryOutcome(StrEnum):
    """Outcome of an attempt, which decides how the message continues."""

    DELIVERED = "delivered"
    RECOVERABLE = "recoverable"
    DEAD = "dead"
    GONE = "gone"


class DeliveryVerdict(Struct, frozen=True):
    """An outcome and its cause, which is "" for a delivery.

    throttled: the destination works and asks for fewer requests
    """

    outcome: DeliveryOutcome
    cause: Cause | Literal[""]
    throttled: bool = False


# Causes that a customer can act on, by libcurl's error code (curl.se/libcurl/c/libcurl-errors.html).
CURL_CAUSES: Final = {
    3: Cause.URL_INVALID,
    5: Cause.DNS,
    6: Cause.DNS,
    7: Cause.CONNECT,
    8: Cause.PROTOCOL,
    18: Cause.ANSWER_CUT,
    28: Cause.TIMEOUT,
    35: Cause.TLS,
    52: Cause.NO_ANSWER,
    53: Cause.TLS,
    54: Cause.TLS,
    55: Cause.RESET,
    56: Cause.RESET,
    58: Cause.TLS,
    59: Cause.TLS,
    60: Cause.TLS_CERTIFICATE,
    66: Cause.TLS,
    77: Cause.TLS,
    80: Cause.TLS,
    83: Cause.TLS_CERTIFICATE,
    90: Cause.TLS_CERTIFICATE,
    91: Cause.TLS_CERTIFICATE,
}
OK: Final = DeliveryVerdict(DeliveryOutcome.DELIVERED, "")
LOOP: Final = DeliveryVerdict(DeliveryOutcome.DEAD, Cause.LOOP_DETECTED)
_BY_RULE: Final = {
    "delivered": OK,
    "retry": DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.BY_RULE),
    "dead": DeliveryVerdict(DeliveryOutcome.DEAD, Cause.BY_RULE),
    "throttle": DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.THROTTLED, throttled=True),
}
_BY_STATUS: Final = {
    410: DeliveryVerdict(DeliveryOutcome.GONE, Cause.GONE),
    429: DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.THROTTLED, throttled=True),
}
_BY_CLASS: Final = {
    1: DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.INFORMATIONAL),
    2: OK,
    3: DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.REDIRECT),
    4: DeliveryVerdict(DeliveryOutcome.DEAD, Cause.REJECTED),
    5: DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.SERVER_ERROR),
}
_UNKNOWN: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.PROTOCOL)


# An object store refuses a key, a region or a missing bucket, never one message: each 4xx is retried.
_REFUSED_BY_STORE: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.STORE_REFUSED)


def judge_object_store(status: int, curl_code: int, *, forbidden: bool = False) -> DeliveryVerdict:
    """Return the verdict for a response of an S3-compatible store; the arguments are those of `judge`."""
    verdict = judge(status, curl_code, forbidden=forbidden)
    return _REFUSED_BY_STORE if verdict.outcome in (DeliveryOutcome.DEAD, DeliveryOutcome.GONE) else verdict


def judge(
    status: int, curl_code: int, *, forbidden: bool = False, rules: Rules = NO_RULES, body: bytes = b""
) -> DeliveryVerdict:
    """Return the verdict for an HTTP status (0 if no response came) and libcurl's code (0 if the transfer succeeded).

    `forbidden` means that the address guard refused the connection. An answer that was cut off after its status line
    counts by its status, because the receiver has decided. `body` is the kept beginning of the answer.
    """
    if forbidden:
        return DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.DESTINATION_FORBIDDEN)
    if not status:
        return DeliveryVerdict(DeliveryOutcome.RECOVERABLE, CURL_CAUSES.get(curl_code, Cause.TRANSPORT))
    if is_loop(status, body):
        return LOOP
    if rules and (then := decide(rules, status, body)):
        return _BY_RULE[then]
    return _BY_STATUS.get(status) or _BY_CLASS.get(status // 100, _UNKNOWN)
