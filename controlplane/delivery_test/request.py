"""Build a test request, and judge its response by the rules of transmit. Pure."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.plan.encoding import EventEncoder
from dataplane.spec import HttpDestination
from dataplane.transmit.http.answer_excerpt import DEAD_LETTER_CHARS, answer_excerpt
from dataplane.transmit.http.secrets import OpenedSecrets
from dataplane.transmit.http.sender import HttpRequest, HttpResponse
from dataplane.transmit.http.signature import sign
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome, judge
from dataplane.transmit.policy.rules import compile_rules

LONGEST_MS: Final = 15_000
LONGEST_REASON: Final = 300
MARK: Final = "penstock-test: 1"


class DeliveryTestRequest(Struct, frozen=True):
    """Test request as its row describes it; `headers` are those without signature and secrets."""

    id: str
    url: str
    headers: list[str]
    body: bytes
    to: HttpDestination


def http_request_of(request: DeliveryTestRequest, secrets: OpenedSecrets, now_s: int) -> HttpRequest:
    """Return the HTTP request, signed at `now_s` (Unix time).

    Its timeout is the destination's own, at most LONGEST_MS.
    """
    body, id_ = request.body, f"msg_{request.id}"
    lines = ["Expect:", *request.headers, *secrets.headers, MARK, f"webhook-id: {id_}", f"webhook-timestamp: {now_s}"]
    if secrets.signers:
        lines.append(f"webhook-signature: {sign(secrets.signers, id_, now_s, body)}")
    timeout_ms = min(LONGEST_MS, int(request.to.timeout_s * 1_000))
    return HttpRequest(request.id, request.url, lines, body, timeout_ms, identity=secrets.identity)


def result_of(answer: HttpResponse, to: HttpDestination, secrets: Iterable[str]) -> dict[str, Any]:
    """Return the row's fields for a response: the outcome that a message would have had, and the timings.

    secrets: texts to mask in the answer
    """
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
        "answer": answer_excerpt(answer.body, DEAD_LETTER_CHARS, secrets),
    }


def encoded_request(request: DeliveryTestRequest, encoder: EventEncoder) -> DeliveryTestRequest:
    """Return the request with its body and headers as its destination's encoding has them. Raises StageError."""
    own = ("content-type", *(line.partition(":")[0] for line in encoder.lines))
    kept = [line for line in request.headers if line.partition(":")[0].lower() not in own]
    headers = [*kept, *encoder.lines, f"Content-Type: {encoder.content_type}"]
    return msgspec.structs.replace(request, body=encoder(request.body), headers=headers)


def misfit_result(cause: str, reason: str) -> dict[str, Any]:
    """Return the row's fields for a request that was not sent: its message would be a dead letter."""
    return {"outcome": str(DeliveryOutcome.DEAD), "cause": cause, "reason": f"{cause}: {reason}"[:LONGEST_REASON]}


def unsent_result(cause: str) -> dict[str, Any]:
    """Return the row's fields for a request that was not sent: its secrets are missing or cannot be decrypted."""
    return {"outcome": "recoverable", "cause": cause, "reason": cause}
