"""Stamping during a ramp: the revision of each event and the key under which it is produced."""

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.expr import compile_expr
from dataplane.ingest.events import ReceivedEvent, RecordOrigin
from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.route import SourceRoute, Stamper
from dataplane.ingest.source_routes import SourceRoutes
from dataplane.spec import parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PipeRecord, PlanRecord, Record, TopicRecord

NOW_US = 1_000_000
CELL = CellRecord("c1", 1, 1, {}, {"ingest": TopicRecord("in", 1, 4, "")})


def plan(revision: int, **sources: Any) -> PlanRecord:
    destinations = {"crm": {"type": "http", "url": "http://crm.example/"}}
    return PlanRecord("p", revision, parse_pipe_spec({"sources": sources, "destinations": destinations}))


def routes_of(*plans: PlanRecord, weights: list[tuple[int, int]]) -> SourceRoutes:
    """Return the routes of a table that has the pipe."""
    reader: Any = SimpleNamespace(table=ControlTable(), at_end=True)
    records: list[Record] = [CELL, *plans, PipeRecord("p", 1, "t", "orders", "c1", "active", weights)]
    for record in records:
        reader.table.apply(record)
    return SourceRoutes(reader)


def route(source: str, *plans: PlanRecord, weights: list[tuple[int, int]]) -> SourceRoute:
    return routes_of(*plans, weights=weights).lead("p", source)


def event(key: str, **changes: Any) -> ReceivedEvent:
    return ReceivedEvent(b"{}", {"old": key, "new": f"{key}!"}, [], **changes)


def test_stamping_compiles_no_expression_of_a_plan():
    """Compilation needs up to 40 ms an expression, at each change of the table, on the shared event loop."""
    steps = [{"op": "filter", "when": f"body.a == {n}"} for n in range(50)]
    destinations = {"crm": {"type": "http", "url": "http://crm.example/"}}
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations, "normalize": steps})
    compile_expr.cache_clear()
    assert route("shop", PlanRecord("p", 7, spec), weights=[(7, 100)]).fields[7] is not None
    assert compile_expr.cache_info().misses == 0


def test_key_keeps_its_revision_for_all_its_events():
    way = route("shop", plan(7, shop={"key": "old"}), plan(8, shop={"key": "old"}), weights=[(8, 50), (7, 50)])
    stamper = Stamper(0)
    seen = {key: {stamper.stamp(way, event(key), NOW_US + n)[0].revision for n in range(20)} for key in "abcdefgh"}
    assert all(len(revisions) == 1 for revisions in seen.values())
    assert set.union(*seen.values()) == {7, 8}


def test_each_revision_has_its_own_key_and_the_key_of_the_stable_one_decides():
    way = route("shop", plan(7, shop={"key": "old"}), plan(8, shop={"key": "new"}), weights=[(8, 50), (7, 50)])
    keys = {meta.revision: key for meta, key in (Stamper(0).stamp(way, event(one), NOW_US) for one in "abcdefgh")}
    assert keys[7] is not None
    assert keys[8] is not None
    assert not keys[7].endswith(b"!")
    assert keys[8].endswith(b"!")


def test_source_only_in_the_ramping_revision_uses_that_revision():
    way = route("new", plan(7, shop={}), plan(8, shop={}, new={}), weights=[(8, 1), (7, 99)])
    assert {Stamper(0).stamp(way, event(one), NOW_US)[0].revision for one in "abcdefgh"} == {8}


def test_source_missing_from_the_ramping_revision_uses_the_stable_one():
    way = route("old", plan(7, old={}), plan(8, shop={}), weights=[(8, 50), (7, 50)])
    assert {Stamper(0).stamp(way, event(one), NOW_US)[0].revision for one in "abcdefgh"} == {7}


@pytest.mark.parametrize(
    ("source", "plans"),
    [
        pytest.param("shop", [plan(7, shop={})], id="the plan of one revision is not here yet"),
        pytest.param("none", [plan(7, shop={}), plan(8, shop={})], id="no revision names the source"),
    ],
)
def test_source_without_a_plan_or_a_revision_naming_it_is_refused(source: str, plans: list[PlanRecord]):
    with pytest.raises(EventRejectedError):
        route(source, *plans, weights=[(8, 50), (7, 50)])


def test_record_read_again_from_kafka_gets_the_same_revision():
    way = route("shop", plan(7, shop={}), plan(8, shop={}), weights=[(8, 50), (7, 50)])
    for origin in (RecordOrigin("0197-place", None), RecordOrigin("0197-other", "k")):
        read = event("x", origin=origin)
        assert len({Stamper(0).stamp(way, read, NOW_US + n)[0].revision for n in range(20)}) == 1
