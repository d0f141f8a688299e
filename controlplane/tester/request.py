"""A test request as it goes out, and what its answer says of the destination: by transmit's own rules. Pure."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from dataplane.spec import HttpDestination
from dataplane.transmit.rules import compile_rules
from dataplane.transmit.secrets import Secrets
from dataplane.transmit.sender import Answer, Post
from dataplane.transmit.shown import DEAD_LETTER_CHARS, shown
from dataplane.transmit.signature import sign
from dataplane.transmit.verdict import judge

LONGEST_MS: Final = 15_000
LONGEST_REASON: Final = 300
MARK: Final = "penstock-test: 1"


class Request(Struct, frozen=True):
    """What a row asks for; `headers` are those that are neither signature nor secret."""

    id: str
    url: str
    headers: list[str]
    body: str
    to: HttpDestination


def post_of(request: Request, secrets: Secrets, now_s: int) -> Post:
    """The request, signed as of now. It gives up when the destination's own timeout is over, or ours."""
    body, id_ = request.body.encode(), f"msg_{request.id}"
    lines = ["Expect:", *request.headers, *secrets.headers, MARK, f"webhook-id: {id_}", f"webhook-timestamp: {now_s}"]
    if secrets.signers:
        lines.append(f"webhook-signature: {sign(secrets.signers, id_, now_s, body)}")
    timeout_ms = min(LONGEST_MS, int(request.to.timeout_s * 1_000))
    return Post(request.id, request.url, lines, body, timeout_ms, identity=secrets.identity)


def answer_of(answer: Answer, to: HttpDestination, secrets: Iterable[str]) -> dict[str, Any]:
    """What the row says of it: the verdict that a message would have got, and where the time went."""
    verdict = answer.verdict or judge(
        answer.status, answer.curl_code, forbidden=answer.forbidden, rules=compile_rules(to.rules), body=answer.body
    )
    detail = "" if answer.status or answer.forbidden else answer.message
    return {
        "status": answer.status,
        "outcome": str(verdict.outcome),
        "cause": verdict.cause,
        "reason": (f"{verdict.cause}: {detail}" if detail else verdict.cause)[:LONGEST_REASON],
        "address": answer.address[:60],
        "dns_us": answer.dns_us,
        "connect_us": answer.connect_us,
        "tls_us": answer.tls_us,
        "first_byte_us": answer.first_byte_us,
        "total_us": answer.total_us,
        "answer": shown(answer.body, DEAD_LETTER_CHARS, secrets),
    }


def locked(cause: str) -> dict[str, Any]:
    """What the row says where nothing may be sent: its secrets cannot be opened, or are not there."""
    return {"outcome": "recoverable", "cause": cause, "reason": cause}
