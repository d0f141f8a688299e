"""A dry run shows what a lane would do: every node's output, why a message ends, and the exact request."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.ledger.meta import read_meta
from dataplane.plan import compile_plan
from dataplane.plan.dryrun import MAX_SHOWN, DryRun, DryRunResult, SampleEvent, dry_run
from dataplane.spec import parse_pipe_spec
from dataplane.stages.enrich import EmptyTables
from tests.support.process_lane import arrived, egress, opened, plan

NOW_US = 1_790_000_000_000_000


def run(body: bytes, **fields: Any) -> DryRun:
    names = fields.pop("destinations", ("crm",))
    destinations = {name: {"type": "http", "url": f"https://{name}.example/"} for name in names}
    destinations |= fields.pop("more", {})
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations, **fields})
    sample = SampleEvent(body, "shop", "msg_1", NOW_US, NOW_US, "pipe_1", 7)
    return dry_run(spec, compile_plan(spec, b"salt"), sample, itertools.count(0, 5_000).__next__)


def results(shown: DryRun) -> dict[str, list[DryRunResult]]:
    return {node.node: node.results for node in shown.nodes}


def test_body_without_steps_passes_unchanged():
    shown = run(b' {"a" : 1} ')
    assert [(node.node, node.took_us) for node in shown.nodes] == [("normalize", 5), ("transform:crm", 5)]
    assert shown.requests[0].body == ' {"a" : 1} '


def test_every_node_shows_its_output():
    shown = run(
        b'{"total":"120"}',
        destinations=("crm", "lake"),
        normalize=[{"op": "cast", "path": "total", "to": "int"}, {"op": "peek", "name": "typed"}],
        routes={"rules": [{"when": "body.total > 100", "to": ["crm"]}]},
        transform={"crm": [{"op": "map", "path": "eur", "expr": "body.total * 2"}]},
    )
    assert results(shown) == {
        "normalize": [DryRunResult("msg_1", "passed", '{"total":120}', peeked=['typed: {"total":120}'])],
        "route": [DryRunResult("msg_1", "passed", '{"total":120}', to=["crm"])],
        "transform:crm": [DryRunResult("msg_1", "passed", '{"total":120,"eur":240}')],
    }
    assert [(request.destination, request.body) for request in shown.requests] == [("crm", '{"total":120,"eur":240}')]


def test_row_of_a_database_is_shown_or_why_there_is_none():
    to = {"type": "postgres", "host": "db.example.com", "database": "d", "user": "u", "table": "t"}
    columns = {"id": "meta.id", "child": "meta.child", "at": "meta.event_time", "note": "body.note", "all": "body"}
    more = {"rows": to | {"columns": columns, "key": ["id"]}}
    (shown,) = run(b'{"note":[1]}', destinations=(), more=more).requests
    assert shown.body == ('{"id":"msg_1","child":0,"at":"2026-09-21T14:13:20Z","note":[1],"all":{"note":[1]}}')
    assert shown.note == "up to 500 rows in one statement; a row whose id the table has is ignored"
    (refused,) = run(b"{}", destinations=(), more=more).requests
    assert refused.cause == "row"
    assert "column note: " in refused.note


@pytest.mark.parametrize(
    ("body", "node", "ended"),
    [
        pytest.param(b"no json", "normalize", ("dead", "decode"), id="decode"),
        pytest.param(b'{"n":"x"}', "normalize", ("dead", "step"), id="step"),
        pytest.param(b'{"n":0}', "normalize", ("filtered", "filter"), id="filter"),
        pytest.param(b'{"n":1}', "route", ("filtered", "unrouted"), id="unrouted"),
        pytest.param(b'{"n":2}', "route", ("dead", "route"), id="route"),
        pytest.param(b'{"n":3,"m":1}', "transform:crm", ("filtered", "filter"), id="filter of a destination"),
        pytest.param(b'{"n":3,"m":"x"}', "transform:crm", ("dead", "step"), id="step of a destination"),
    ],
)
def test_dry_run_shows_the_node_and_the_cause_of_an_end(body: bytes, node: str, ended: tuple[str, str]):
    shown = run(
        body,
        normalize=[{"op": "cast", "path": "n", "to": "int"}, {"op": "filter", "when": "body.n > 0"}],
        routes={"rules": [{"when": "body.n > 1 && body.m != 0", "to": ["crm"]}]},
        transform={"crm": [{"op": "filter", "when": "body.m > 1"}]},
    )
    assert shown.requests == []
    (result,) = results(shown)[node]
    assert (result.outcome, result.cause) == ended
    assert (result.detail != "") == (result.outcome == "dead")


def test_children_are_shown_up_to_a_limit():
    shown = run(msgspec.json.encode({"l": list(range(30))}), normalize=[{"op": "explode", "path": "l"}])
    assert shown.exploded == 30
    assert [request.id for request in shown.requests] == [f"msg_1.{number}" for number in range(MAX_SHOWN)]


def test_shown_request_is_the_one_that_would_be_sent_without_its_secrets():
    crm = {
        "type": "http",
        "url": "https://crm.example/hook?x=1",
        "headers": {"X-Team": "sales"},
        "auth": {"type": "bearer"},
    }
    shown = run(b"{}", destinations=(), more={"crm": crm})
    (request,) = shown.requests
    assert (request.method, request.url) == ("POST", "https://crm.example/hook?x=1")
    assert request.headers == [
        "User-Agent: Penstock/1",
        "X-Team: sales",
        "Authorization: Bearer (secret)",
        "webhook-id: msg_1",
        "webhook-timestamp: 1790000000",
        "penstock-position: 0-0-0",
        "penstock-hops: 1",
        "webhook-signature: v1,(made with the destination's secret when it is sent)",
        "Content-Type: application/json",
    ]


def test_destination_with_an_encoding_has_a_note_and_its_content_type():
    encoding = {"format": "confluent", "subject": "orders", "version": 3}
    crm = {"type": "http", "url": "https://crm.example/", "encoding": encoding}
    feed = {"type": "topic", "encoding": encoding | {"format": "avro"}}
    lake = {"type": "lake", "encoding": encoding | {"format": "columns"}}
    posted, stored, typed = run(b"{}", destinations=(), more={"crm": crm, "feed": feed, "lake": lake}).requests
    assert posted.note.startswith("delivered as Avro in Confluent's framing by version 3 of orders")
    assert "Content-Type: application/octet-stream" in posted.headers
    assert stored.note.startswith("delivered as Avro by version 3 of orders")
    assert typed.note.startswith("stored with typed columns of version 3 of orders")


def test_destination_with_batches_has_a_note():
    crm = {"type": "http", "url": "https://crm.example/", "batch": {"max_events": 7, "format": "ndjson"}}
    (batched,) = run(b"{}", destinations=(), more={"crm": crm}).requests
    (single,) = run(b"{}").requests
    assert batched.note.startswith("ndjson of up to 7 messages in one request")
    assert single.note == ""


STEPS: list[dict[str, Any]] = [
    {"op": "cast", "path": "n", "to": "int"},
    {"op": "filter", "when": "body.n > 2"},
    {"op": "explode", "path": "l"},
    {"op": "mask", "path": "m"},
    {"op": "map", "path": "k", "expr": "body.n + 1"},
    {"op": "default", "path": "n", "value": 3},
]
events = st.fixed_dictionaries(
    {}, optional={"n": st.sampled_from([1, 3, "4", "x"]), "l": st.lists(st.integers(0, 9), max_size=3)}
)


@settings(max_examples=80, deadline=None)
@given(events, st.lists(st.sampled_from(STEPS), max_size=3, unique_by=lambda step: step["op"]), st.booleans())
def test_dry_run_shows_what_a_lane_would_send(tmp_path_factory: Any, event: Any, steps: list[Any], routed: bool):
    fields: dict[str, Any] = {
        "normalize": steps,
        "transform": {"lake": [step for step in steps if step["op"] != "explode"]},
    }
    if routed:
        fields["routes"] = {"rules": [{"when": "body.n > 3", "to": ["crm"]}], "otherwise": ["lake"]}
    var: Path = tmp_path_factory.mktemp("var")
    lane = opened(var, plan(destinations=("crm", "lake"), **fields))
    lane.take(arrived(1, msgspec.json.encode(event), id="msg_1"))
    sent = [
        (read_meta(r["headers"]).destination, read_meta(r["headers"]).id, r["value"].decode()) for r in egress(lane)
    ]
    shown = run(msgspec.json.encode(event), destinations=("crm", "lake"), **fields)
    assert sorted((one.destination, one.id, one.body) for one in shown.requests) == sorted(sent)


class ShopRows:
    def row(self, table: str, key: str) -> Any:
        assert table == "shops"
        return {"vat": 19} if key == "berlin" else None


@pytest.mark.parametrize(
    ("event", "outcome", "body"),
    [
        (b'{"shop":"berlin"}', "passed", '{"shop":"berlin","row":{"vat":19}}'),
        (b'{"shop":"rome"}', "dead", ""),
    ],
)
def test_look_ups_read_the_given_tables(event: bytes, outcome: str, body: str):
    step = {"table": "shops", "key": "body.shop", "into": "row", "on_missing": "dead"}
    to = {"crm": {"type": "http", "url": "https://crm.example/"}}
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": to, "enrich": [step]})
    sample = SampleEvent(event, "shop", "id", NOW_US, NOW_US)
    for rows, expected in ((ShopRows(), outcome), (EmptyTables(), "dead")):
        run = dry_run(spec, compile_plan(spec), sample, itertools.count(0, 5_000).__next__, rows)
        (enriched,) = [node for node in run.nodes if node.node == "enrich"]
        assert [result.outcome for result in enriched.results] == [expected]
        if expected == "passed":
            assert [request.body for request in run.requests] == [body]


def test_template_shows_its_request_or_the_reason_why_none_would_be_sent():
    template = {"path": "/c/${body.id}", "headers": {"X-From": "${meta.source}"}, "body": "body.id"}
    crm = {"crm": {"type": "http", "url": "https://crm.example.com/in", "template": template}}
    (made,) = run(b'{"id": 7}', destinations=(), more=crm).requests
    assert (made.url, made.body, made.note) == ("https://crm.example.com/c/7", "7", "")
    assert "X-From: shop" in made.headers
    (unmade,) = run(b"{}", destinations=(), more=crm).requests
    assert unmade.note == "not sent; the message would be dead-lettered: template: path: no such field: id"
