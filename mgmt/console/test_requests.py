"""Test requests as pages tell them: what came back, what would become of a message, and what to do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from mgmt.console.causes import BY_CODE
from mgmt.console.wording import capitalised, failure_in_words
from mgmt.models import DestinationTest, Tenant
from mgmt.queries.attempts import split_us

_OUTCOMES: Final = {
    "delivered": ("fine", "A message would be delivered."),
    "recoverable": ("wait", "A message would be tried again later."),
    "dead": ("bad", "A message would be dead: this answer is final."),
    "gone": ("bad", "The destination would be suspended, and its messages held."),
}


@dataclass(frozen=True)
class Tried:
    """A test request in words. `code` is the cause's help page, "" if there is none or nothing is wrong."""

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
        """Whether its answer is still to come."""
        return self.row.state != DestinationTest.State.DONE


def tried(row: DestinationTest) -> Tried:
    """A row in words."""
    if row.state != DestinationTest.State.DONE:
        return Tried(row, "wait", "Sending…", "", "", "", "", (), ())
    colour, words = _OUTCOMES.get(row.outcome, ("off", row.outcome))
    head, detail = failure_in_words(row.reason, row.status) if row.cause else (f"Answered {row.status}", "")
    known = BY_CODE.get(row.cause)
    split = split_us(
        {"dns": row.dns_us, "connect": row.connect_us, "tls": row.tls_us, "first_byte": row.first_byte_us,
         "total": row.total_us},
        answered=bool(row.status),
    )  # fmt: skip
    code, todo = (known.code, known.todo[0]) if known else ("", "")
    return Tried(row, colour, capitalised(head), words, detail, code, todo, _notes(row), split)


def tests_of(tenant: Tenant, ids: Collection[str]) -> dict[str, Tried]:
    """Those of the tenant's test requests, by id."""
    rows = DestinationTest.objects.filter(tenant=tenant, id__in=ids) if ids else ()
    return {row.id: tried(row) for row in rows}


def _notes(row: DestinationTest) -> list[str]:
    """How it differs from what a message's request would be."""
    auth = row.config.get("auth", {}).get("type", "none")
    notes = ["It was signed with the destination's own secret."]
    if row.pipe_id is None:
        notes = ["It was signed with a secret made for this request alone: your endpoint cannot check it yet."]
    if auth != "none" and (row.pipe_id is None or auth == "oauth2"):
        notes.append(f"What signs us in ({auth}) was left out.")
    if row.config.get("batch"):
        notes.append("Messages come in batches; this was one alone.")
    return notes
