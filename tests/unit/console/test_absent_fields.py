"""Post of a page that an earlier release rendered: fields that it has not keep the values of the stored spec."""

from typing import Any, Final

import pytest
from django.http import QueryDict

from dataplane.spec import parse_pipe_spec, spec_to_builtins
from mgmt.pipes.editor.destination_row import BATCH_LIMITS
from mgmt.pipes.editor.draft import Draft, draft_from_spec
from mgmt.pipes.editor.fields import destination_rows
from mgmt.pipes.editor.posted import draft_from_post

LIMITS: Final = {"max_events": 50, "max_bytes": 20_000, "max_wait_ms": 9_000}
OUT: Final[dict[str, dict[str, Any]]] = {
    "s3": {
        "url": "https://s3.example.com/orders",
        "region": "eu-central-1",
        "access_key_id": "AKIAIOSFODNN7EXAMPLE",
    },
    "postgres": {"host": "db.example.com", "database": "shop", "user": "penstock", "table": "orders"},
}


def stored(kind: str) -> dict[str, Any]:
    out = {"type": kind, "batch": LIMITS, **OUT[kind]}
    crm = {"type": "http", "url": "https://crm.example.com"}
    return spec_to_builtins(parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"crm": crm, "out": out}}))


def posted(draft: Draft, *absent: str) -> QueryDict:
    """Return what the page of the draft posts, without these fields."""
    sent = QueryDict(mutable=True)
    sent.update({"name": "orders", "source.name": "shop", "source.was": "shop", "source.kind": "http"})
    for row in destination_rows(draft):
        for name, value in [*((field.name, field.value) for field in row.fields), *row.hidden]:
            if name.removeprefix("destination.") not in absent:
                sent.appendlist(name, value)
    return sent


@pytest.mark.parametrize("kind", OUT)
def test_limits_of_a_batch_are_kept_by_a_page_without_their_fields(kind: str):
    base = stored(kind)
    sent = posted(draft_from_spec("orders", base), *BATCH_LIMITS)
    draft = draft_from_post(sent, base)
    assert draft.document()["destinations"]["out"]["batch"] == LIMITS
    assert parse_pipe_spec(draft.document()) == parse_pipe_spec(base)
    shown_again = draft_from_post(posted(draft), base)
    assert shown_again.document()["destinations"]["out"]["batch"] == LIMITS, "the page is now one of this release"


@pytest.mark.parametrize("kind", OUT)
def test_limits_of_a_batch_are_removed_by_empty_fields(kind: str):
    base = stored(kind)
    sent = posted(draft_from_spec("orders", base))
    for name in BATCH_LIMITS:
        assert len(sent.getlist(f"destination.{name}")) == 2, "each row posts the field, so that rows have their own"
        sent.setlist(f"destination.{name}", ["", ""])
    assert "batch" not in draft_from_post(sent, base).document()["destinations"]["out"]


def test_limits_of_a_batch_are_not_those_of_another_type():
    base = stored("s3")
    sent = posted(draft_from_spec("orders", base), *BATCH_LIMITS)
    sent.setlist("destination.kind", ["http", "postgres"])
    assert "batch" not in draft_from_post(sent, base).document()["destinations"]["out"]
