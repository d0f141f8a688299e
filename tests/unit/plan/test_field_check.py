"""Steps checked against the event types of the sources: unknown fields and wrong types are refused at their place."""

import json
from typing import Any

import pytest

from dataplane.plan.field_check import check_fields
from dataplane.schemas.parse import parse
from dataplane.schemas.shapes import Shape, shape_of
from dataplane.schemas.types import SchemaType
from dataplane.spec import SpecError, parse_pipe_spec
from tests.db.mgmt.registry_schemas import record

LINE = record("com.shop.Line", sku="string", count="int")
ORDER = record(
    id="string", count="int", paid="boolean", note=["null", "string"],
    lines={"type": {"type": "array", "items": LINE}}, address={"type": record("com.shop.Address", street="string")},
)  # fmt: skip
CRM = {"url": "https://crm.example.com/hook"}


def shapes(schema: Any = ORDER) -> dict[str, Shape]:
    return {"shop": shape_of([parse(SchemaType.AVRO, json.dumps(schema))])}


def check(normalize: Any = (), *, of: dict[str, Shape] | None = None, **more: Any) -> None:
    spec = {"sources": {"shop": {}}, "destinations": {"crm": CRM}, "normalize": list(normalize)}
    check_fields(parse_pipe_spec(spec | more), shapes() if of is None else of)


def refused(*steps: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(SpecError) as caught:
        check(steps, **more)
    return caught.value.path, caught.value.reason


@pytest.mark.parametrize(
    "steps",
    [
        [{"op": "cast", "path": "count", "to": "string"}, {"op": "filter", "when": 'body.count == "1"'}],
        [{"op": "rename", "path": "count", "to": "total.units"}, {"op": "filter", "when": "body.total.units > 1"}],
        [{"op": "set", "path": "shop", "value": "eu"}, {"op": "map", "path": "x", "expr": "body.shop + body.id"}],
        [{"op": "keep", "fields": ["lines"]}, {"op": "explode", "path": "lines"}, {"op": "mask", "path": "lines.sku"}],
        [{"op": "filter", "when": "has(body.note) && body.note != null && body.lines.all(one, one.count > 0)"}],
        [{"op": "map", "path": "$", "expr": '{"a": 1}'}, {"op": "remove", "path": "whatever"}],
        [{"op": "filter", "when": 'body.lines[0].sku == "a" && body["id"] != ""'}],
        [{"op": "default", "path": "country", "value": "DE"}, {"op": "mask", "path": "country"}],
        [{"op": "mask", "path": "lines.*.sku"}],
        [{"op": "filter", "when": "has(body.discount) || true"}],
    ],
)  # fmt: skip
def test_steps_that_suit_the_event_types_are_accepted(steps: list[Any]):
    check(steps)


@pytest.mark.parametrize(
    ("step", "field", "reason"),
    [
        ({"op": "remove", "path": "nte"}, "path", "got `nte`; did you mean `note`?"),
        ({"op": "rename", "path": "adress.street", "to": "s"}, "path", "did you mean `address`?"),
        ({"op": "keep", "fields": ["id", "totl"]}, "fields", "got `totl`"),
        ({"op": "mask", "path": "address.stret"}, "path", "did you mean `address.street`?"),
        ({"op": "mask", "path": "lines.*.price"}, "path", "got `lines.*.price`"),
        ({"op": "cast", "path": "lines", "to": "int"}, "path", "but `lines` is array in the event types"),
        ({"op": "explode", "path": "address"}, "path", "needs array, but `address` is object"),
        ({"op": "filter", "when": "body.cuont > 1"}, "when", "line 1, column 1: no event type has a field `cuont`"),
        ({"op": "filter", "when": "true && body.id > 5"}, "when", "line 1, column 9: `>` compares text with number"),
        ({"op": "filter", "when": "body.paid == 1"}, "when", "`==` compares boolean with number"),
        ({"op": "map", "path": "x", "expr": "body.id * 2"}, "expr", "`*` needs numbers"),
        ({"op": "map", "path": "x", "expr": "body.lines.map(one, one.price)"}, "expr", "a field `price`"),
        ({"op": "map", "path": "x", "expr": '{"k": size(body.lins)}'}, "expr", "did you mean `lines`?"),
    ],
)
def test_step_that_cannot_work_is_refused_at_its_field(step: Any, field: str, reason: str):
    path, found = refused({"op": "set", "path": "first", "value": 1}, step)
    assert path == f"$.normalize[1].{field}"
    assert reason in found


def test_field_that_an_earlier_step_removed_is_unknown():
    assert refused({"op": "remove", "path": "id"}, {"op": "mask", "path": "id"})[0] == "$.normalize[1].path"
    assert refused({"op": "keep", "fields": ["id"]}, {"op": "mask", "path": "note"})[0] == "$.normalize[1].path"


def test_element_of_an_exploded_array_takes_its_place():
    explode = {"op": "explode", "path": "lines"}
    assert refused(explode, {"op": "mask", "path": "lines.price"})[0] == "$.normalize[1].path"


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"sources": {"shop": {"key": "customer"}}}, "$.sources.shop.key"),
        ({"enrich": [{"table": "t", "key": "body.customer", "into": "c"}]}, "$.enrich[0].key"),
        ({"routes": {"rules": [{"when": "body.total > 1", "to": ["crm"]}]}}, "$.routes.rules[0].when"),
        ({"transform": {"crm": [{"op": "mask", "path": "total"}]}}, "$.transform.crm[0].path"),
        ({"destinations": {"crm": CRM | {"template": {"path": "/${body.total}"}}}}, "$.destinations.crm.template.path"),
        (
            {"destinations": {"crm": CRM | {"template": {"headers": {"x-a": "${body.b}"}}}}},
            "$.destinations.crm.template.headers",
        ),
        ({"destinations": {"crm": CRM | {"template": {"body": "body.total"}}}}, "$.destinations.crm.template.body"),
        ({"destinations": {"crm": {"type": "table", "table": "t", "key": "body.total"}}}, "$.destinations.crm.key"),
    ],
)  # fmt: skip
def test_other_parts_of_a_spec_are_checked_too(part: Any, path: str):
    assert refused(**part)[0] == path


def test_field_of_one_of_two_event_types_is_known():
    both = [ORDER, record("com.shop.Refund", id="string", why="string")]
    of = {"shop": shape_of(parse(SchemaType.AVRO, json.dumps(one)) for one in both)}
    check([{"op": "mask", "path": "why"}, {"op": "mask", "path": "note"}], of=of)
    assert refused({"op": "mask", "path": "whi"}, of=of)[0] == "$.normalize[0].path"


def test_pipe_with_a_source_without_event_types_takes_any_step():
    check([{"op": "mask", "path": "whatever"}], sources={"shop": {}, "web": {}})


def test_result_of_a_look_up_may_have_any_fields():
    look_up = {"table": "t", "key": "body.id", "into": "customer"}
    check(enrich=[look_up], routes={"rules": [{"when": 'body.customer.tier == "a"', "to": ["crm"]}]})
