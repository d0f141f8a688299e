"""`spread_key` distributes the events of a key, so it needs keys, and destinations without order."""

from typing import Any

import pytest

from dataplane.plan import compile_plan
from dataplane.spec import SpecError, parse_pipe_spec, spec_to_builtins

CRM = {"type": "http", "url": "https://crm.example.com/in"}
KAFKA = {"type": "kafka", "cluster": "main", "topic": "orders"}


def spec(source: dict[str, Any], **destinations: Any) -> dict[str, Any]:
    return {"sources": {"shop": source, "web": {}}, "destinations": destinations or {"crm": CRM}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param(spec({"spread_key": True}), "needs `key`", id="no keys"),
        pytest.param(
            spec({"key": "id", "spread_key": True}, crm=CRM, books=CRM | {"ordered": True}),
            "books keeps the order of each key",
            id="ordered destination",
        ),
        pytest.param(
            spec({"key": "id", "spread_key": True}, feed={"type": "topic", "partitions": 2}),
            "feed keeps the order of each key",
            id="topic",
        ),
    ],
)
def test_spread_key_is_refused_with_the_reason(document: dict[str, Any], reason: str):
    with pytest.raises(SpecError, match=reason) as refused:
        parse_pipe_spec(document)
    assert refused.value.path == "$.sources.shop.spread_key"


@pytest.mark.parametrize("source", [{"key": "id"}, KAFKA], ids=["http", "kafka"])
def test_spread_source_is_known_to_the_plan_and_survives_storage(source: dict[str, Any]):
    parsed = parse_pipe_spec(spec(source | {"spread_key": True}))
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed
    plan = compile_plan(parsed)
    assert plan.spread == {"shop"}
    assert (plan.sources["shop"].spread, plan.sources["web"].spread) == (True, False)


def test_spec_without_the_option_is_stored_as_earlier_releases_know_it():
    stored = spec_to_builtins(parse_pipe_spec(spec({"key": "id"})))
    assert "spread_key" not in stored["sources"]["shop"]
    ordered = spec({"key": "id", "spread_key": False}, crm=CRM | {"ordered": True})
    assert not compile_plan(parse_pipe_spec(ordered)).spread
