"""A destination that sends the original body needs a path on which nothing changes the body."""

from typing import Any

import pytest

from dataplane.spec import SpecError, parse_pipe_spec, sends_original, spec_to_builtins

FILTER = {"op": "filter", "when": "body.n == 1.0"}
PEEK = {"op": "peek", "name": "raw", "share": 1.0}
MASK = {"op": "mask", "path": "phone"}
ENRICH = [{"table": "customers", "key": "body.id", "into": "customer"}]
URL = "https://crm.example/"
AVRO = {"format": "avro", "subject": "orders", "version": 1}


def document(to: dict[str, Any], **more: Any) -> dict[str, Any]:
    destinations = {"crm": {"type": "http", "url": URL, **to}, "erp": {"type": "http", "url": URL}}
    return {"sources": {"shop": {}}, "destinations": destinations, **more}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"normalize": [FILTER, PEEK], "transform": {"crm": [FILTER], "erp": [MASK]}},
        {"routes": {"rules": [{"when": "body.n == 1.0", "to": ["crm"]}], "otherwise": []}},
        {"dedup": {"by": "idempotency-key"}},
    ],
)
def test_steps_that_only_read_the_body_are_accepted(more: dict[str, Any]):
    spec = parse_pipe_spec(document({"original_body": True}, **more))
    assert [name for name, to in spec.destinations.items() if sends_original(to)] == ["crm"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"normalize": [FILTER, MASK]}, r"normalize\[1\]"),
        ({"normalize": [{"op": "explode", "path": "lines"}]}, r"normalize\[0\]"),
        ({"transform": {"crm": [MASK]}}, r"transform.crm\[0\]"),
        ({"enrich": ENRICH}, r"enrich\[0\]"),
    ],
)
def test_steps_that_change_the_body_are_refused_with_the_reason(more: dict[str, Any], named: str):
    with pytest.raises(SpecError, match=f"{named} changes it: the sender's signature would not fit") as refused:
        parse_pipe_spec(document({"original_body": True}, **more))
    assert refused.value.path == "$.destinations.crm.original_body"
    assert parse_pipe_spec(document({"original_body": False}, **more))


@pytest.mark.parametrize(
    ("more", "named"),
    [({"batch": {}}, "a batch"), ({"encoding": AVRO}, "an encoding"), ({"template": {"body": "body"}}, "a body")],
)
def test_destination_with_a_body_of_its_own_is_refused(more: dict[str, Any], named: str):
    with pytest.raises(SpecError, match=named) as refused:
        parse_pipe_spec(document({"original_body": True} | more))
    assert refused.value.path == "$.destinations.crm.original_body"


def test_template_without_a_body_is_accepted():
    parse_pipe_spec(document({"original_body": True, "template": {"headers": {"X-Id": "${meta.id}"}}}))


def test_spec_without_it_is_published_as_earlier_releases_know_it():
    plain = spec_to_builtins(parse_pipe_spec(document({})))
    assert "original_body" not in plain["destinations"]["crm"]
