"""`sequence` of a source: it needs the order of each key."""

from typing import Any

import pytest

from dataplane.plan import compile_plan
from dataplane.plan.field_check import check_fields
from dataplane.plan.queries import needs_query
from dataplane.schemas.shapes import NUMBER, OBJECT, Shape, plain
from dataplane.spec import SpecError, parse_pipe_spec, spec_to_builtins

KAFKA = {"type": "kafka", "cluster": "main", "topic": "orders"}


def spec(source: dict[str, Any]) -> dict[str, Any]:
    destinations = {"crm": {"type": "http", "url": "https://crm.example.com/in"}}
    return {"sources": {"shop": source, "web": {}}, "destinations": destinations}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param({"sequence": "seq"}, "needs a key path", id="no key"),
        pytest.param({"key": "id", "sequence": "$"}, "the path of one value", id="the whole body"),
        pytest.param({"key": "id", "sequence": "lines.*.n"}, "the path of one value", id="many values"),
        pytest.param(
            {"key": "id", "sequence": "seq", "spread_key": True}, "needs keys that are not spread", id="spread key"
        ),
        pytest.param({"key": "id", "sequence": ""}, "needs", id="empty"),
    ],
)
def test_sequence_is_refused_with_the_reason(source: dict[str, Any], reason: str):
    with pytest.raises(SpecError, match=reason) as refused:
        parse_pipe_spec(spec(source))
    assert refused.value.path == "$.sources.shop.sequence"


@pytest.mark.parametrize("path", ["order.seq", "order", "order.*"])
def test_sequence_of_a_masked_value_is_refused(path: str):
    masks = {"normalize": [{"op": "mask", "path": path, "how": "redact"}]}
    with pytest.raises(SpecError, match="no step masks") as refused:
        parse_pipe_spec(spec({"key": "id", "sequence": "order.seq"}) | masks)
    assert refused.value.path == "$.sources.shop.sequence"


@pytest.mark.parametrize("source", [{"key": "id"}, KAFKA], ids=["http", "kafka"])
def test_sequence_is_known_to_the_plan_and_survives_storage(source: dict[str, Any]):
    parsed = parse_pipe_spec(spec(source | {"sequence": "order.seq"}))
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed
    assert compile_plan(parsed).sequences["shop"].path == ("order", "seq")
    assert needs_query("sequence", parsed)


def test_spec_without_the_option_is_stored_as_earlier_releases_know_it():
    parsed = parse_pipe_spec(spec({"key": "id"}))
    assert "sequence" not in spec_to_builtins(parsed)["sources"]["shop"]
    assert compile_plan(parsed).sequences == {}
    assert not needs_query("sequence", parsed)


def test_path_that_no_event_type_has_is_refused():
    shape = Shape(frozenset((OBJECT,)), {"id": plain(NUMBER), "seq": plain(NUMBER)})
    check_fields(parse_pipe_spec(spec({"key": "id", "sequence": "seq"})), {"shop": shape})
    with pytest.raises(SpecError) as refused:
        check_fields(parse_pipe_spec(spec({"key": "id", "sequence": "sequence"})), {"shop": shape})
    assert refused.value.path == "$.sources.shop.sequence"
