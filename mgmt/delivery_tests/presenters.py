"""View models of test requests: response, consequence for a real message, and next step."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from mgmt.deliveries.cause_wording import capitalised, failure_in_words
from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.queries.attempts import split_us
from mgmt.models import DestinationTest, Tenant

_OUTCOMES: Final = {
    "delivered": ("fine", "A message would be delivered."),
    "recoverable": ("wait", "A message would be retried later."),
    "dead": ("bad", "A message would become a dead letter: this failure is final."),
    "gone": ("bad", "The destination would be suspended, and its messages held."),
}


@dataclass(frozen=True)
class DeliveryTestResult:
    """Test request in words. `code` names the help page of the cause; "" if there is none or the request succeeded."""

    row: DestinationTest
    colour: str
    head: str
    words: str
    detail: str
    code: str
    todo: str
    notes: Sequence[str]
    split: Sequence[tuple[str, int]]

    @property
    def waits(self) -> bool:
        """True while the response is pending."""
        return self.row.state != DestinationTest.State.DONE


def delivery_test_result(row: DestinationTest) -> DeliveryTestResult:
    """Return a test request in words."""
    if row.state != DestinationTest.State.DONE:
        return DeliveryTestResult(row, "wait", "Sending…", "", "", "", "", (), ())
    colour, words = _OUTCOMES.get(row.outcome, ("off", row.outcome))
    head, detail = failure_in_words(row.reason, row.status) if row.cause else (f"Returned {row.status}", "")
    known = BY_CODE.get(row.cause)
    split = split_us(
        {"dns": row.dns_us, "connect": row.connect_us, "tls": row.tls_us, "first_byte": row.first_byte_us,
         "total": row.total_us},
        answered=bool(row.status),
    )  # fmt: skip
    code, todo = (known.code, known.todo[0]) if known else ("", "")
    return DeliveryTestResult(row, colour, capitalised(head), words, detail, code, todo, _notes(row), split)


def tests_of(tenant: Tenant, ids: Collection[str]) -> dict[str, DeliveryTestResult]:
    """Return the tenant's test requests among `ids`, by id."""
    rows = DestinationTest.objects.filter(tenant=tenant, id__in=ids) if ids else ()
    return {row.id: delivery_test_result(row) for row in rows}


def _notes(row: DestinationTest) -> list[str]:
    """Return the differences between this request and that of a real message."""
    auth = row.config.get("auth", {}).get("type", "none")
    notes = ["Signed with the destination's signing secret."]
    if row.pipe_id is None:
        notes = ["Signed with a temporary secret: your endpoint cannot verify the signature yet."]
    if auth != "none" and (row.pipe_id is None or auth == "oauth2"):
        notes.append(f"Sent without credentials ({auth}).")
    if row.config.get("batch"):
        notes.append("Real messages are sent in batches; this request had a single message.")
    return notes
