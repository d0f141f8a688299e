"""One job of a shadow run: what it reads of both topics, and how each unit is counted."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaException
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.ledger.units import position_of
from dataplane.shadow import task as task_module
from dataplane.shadow.job import PartComparison, PartRead, ShadowJob, parts_of
from dataplane.shadow.plans import masks_in_bodies
from dataplane.shadow.reading import read_part
from dataplane.spec import PipeSpec
from dataplane.tables.shadows import MOST_SAMPLES, NO_SOURCE, FieldDifference, ShadowSample
from tests.support.replaying import HOUR_US, INGEST, NOW_US
from tests.support.shadowing import CRM, ShadowWorld, job_of, run_job, shadow, spec_of

MAP = {"op": "map", "path": "total", "expr": "body.total * 2"}
FILTER = {"op": "filter", "when": "body.total > 1"}
LOG = {"log": {"type": "http", "url": "https://log.example"}}


def summed(results: list[PartRead | PartComparison]) -> PartComparison:
    """Return the sum of the comparisons; all parts must have been read."""
    total = PartComparison()
    for one in results:
        assert not one.error
        if isinstance(one, PartComparison):
            for name, kinds in one.units.items():
                for kind, count in kinds.items():
                    units = total.units.setdefault(name, {})
                    units[kind] = units.get(kind, 0) + count
            for name, fields in one.fields.items():
                for path, count in fields.items():
                    known = total.fields.setdefault(name, {})
                    known[path] = known.get(path, 0) + count
            for cause, count in one.rejected.items():
                total.rejected[cause] = total.rejected.get(cause, 0) + count
            total.events += one.events
            total.cost_events += one.cost_events
            total.live_cpu_us += one.live_cpu_us
            total.shadow_cpu_us += one.shadow_cpu_us
            total.samples += one.samples
    total.samples.sort(key=lambda one: one.position)
    return total


def ran(world: ShadowWorld, draft: PipeSpec, **fields: Any) -> PartComparison:
    return summed(run_job(world, job_of(world, shadow(draft), **fields)))


def test_plan_compared_with_itself_is_equal():
    world = ShadowWorld(spec_of(normalize=[FILTER]))
    for number in range(8):
        event = world.ingest(number, b'{"total": %d}' % number, partition=number % 4, key=b"k")
        world.process(event)
    found = ran(world, world.live)
    assert (found.events, found.units) == (8, {"crm": {"equal": 6}})
    assert (found.fields, found.rejected, found.samples) == ({}, {}, [])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["total", "to", "x"]), st.integers(-3, 3) | st.text("ab", max_size=2)),
        max_size=5,
    ),
    st.lists(st.sampled_from([MAP, FILTER, {"op": "set", "path": "a", "value": 1.5}]), max_size=3),
    st.booleans(),
)
def test_any_plan_compared_with_itself_is_equal(bodies: list[dict[str, Any]], steps: list[Any], has_routes: bool):
    routes = {"routes": {"rules": [{"when": "body.to == 'a'", "to": ["log"]}]}} if has_routes else {}
    world = ShadowWorld(spec_of(destinations={**CRM, **LOG}, normalize=steps, **routes))
    for number, body in enumerate(bodies):
        world.process(world.ingest(number, msgspec.json.encode(body), partition=number % 4))
    found = ran(world, world.live)
    assert found.events == len(bodies)
    assert {kind for kinds in found.units.values() for kind in kinds} <= {"equal"}
    assert found.samples == []


def test_each_unit_is_counted_by_its_kind():
    world = ShadowWorld(spec_of(normalize=[FILTER]))
    draft = spec_of(
        normalize=[
            {"op": "filter", "when": "body.total != 5"},
            {"op": "cast", "path": "id", "to": "int"},
            {"op": "map", "path": "total", "expr": "body.total > 6 ? 0 : body.total"},
        ]
    )
    same, changed, dropped, failed, extra, held = (
        world.ingest(number, body)
        for number, body in enumerate(
            [
                b'{"total": 2, "id": 1}',
                b'{"total": 7, "id": 1}',
                b'{"total": 5, "id": 1}',
                b'{"total": 3, "id": "x"}',
                b'{"total": 1, "id": 1}',
                b'{"total": 4, "id": 1}',
            ]
        )
    )
    for event in (same, changed, dropped, failed, extra):
        world.process(event)
    found = ran(world, draft)
    assert found.events == 6
    assert found.units == {"crm": {"equal": 1, "different": 1, "only_live": 2, "only_shadow": 1, "not_sent": 1}}
    assert found.fields == {"crm": {"total": 1}}
    assert found.rejected == {"step": 1}

    def at(event: Any) -> int:
        return position_of(1, 0, event.offset())

    assert found.samples == [
        ShadowSample("different", "crm", at(changed), 0, [FieldDifference("total", "7", "0")]),
        ShadowSample("only_live", "crm", at(dropped), 0, [], "filter"),
        ShadowSample("only_live", "crm", at(failed), 0, [], "step"),
        ShadowSample("only_shadow", "crm", at(extra), 0),
        ShadowSample("not_sent", "crm", at(held), 0),
    ]


def test_children_of_an_explode_are_separate_units():
    steps = [{"op": "explode", "path": "lines"}]
    world = ShadowWorld(spec_of(normalize=steps))
    world.process(world.ingest(0, b'{"lines": [{"n": 1}, {"n": 2}, {"n": 3}]}'))
    draft = spec_of(normalize=[*steps, {"op": "filter", "when": "body.lines.n != 2"}])
    found = ran(world, draft)
    assert found.units == {"crm": {"equal": 2, "only_live": 1}}
    assert [(one.child, one.reason) for one in found.samples] == [(1, "filter")]
    assert ran(world, spec_of()).units == {"crm": {"different": 1, "only_live": 2}}
    world.live = spec_of()
    assert [one.reason for one in ran(world, spec_of()).samples if one.kind == "only_live"] == ["empty", "empty"]


def test_destinations_of_one_side_only_are_counted():
    world = ShadowWorld(spec_of(destinations={**CRM, "old": {"type": "http", "url": "https://old.example"}}))
    world.process(world.ingest(0))
    found = ran(world, spec_of(destinations={**CRM, **LOG}))
    assert found.units == {"crm": {"equal": 1}, "old": {"only_live": 1}, "log": {"only_shadow": 1}}
    assert [one.reason for one in found.samples if one.kind == "only_live"] == ["unknown-destination"]


def test_lakes_are_not_compared():
    lake = {"lake": {"type": "lake"}}
    world = ShadowWorld(spec_of(destinations={**CRM, **lake}))
    world.process(world.ingest(0))
    assert ran(world, spec_of(destinations={**CRM, **lake})).units == {"crm": {"equal": 1}}
    assert ran(world, spec_of()).units == {"crm": {"equal": 1}}


def test_event_of_a_source_that_the_draft_does_not_have_is_only_live():
    world = ShadowWorld(spec_of(sources={"shop": {}, "till": {}}))
    world.process(world.ingest(0, source="till"))
    found = ran(world, spec_of())
    assert found.units == {"crm": {"only_live": 1}}
    assert [one.reason for one in found.samples] == [NO_SOURCE]


def test_other_records_are_skipped_and_a_repeated_one_counts_once():
    world = ShadowWorld()
    event = world.ingest(0)
    world.process(event)
    world.process(event)
    held = world.ingest(1)
    world.process(held, replay="rep_1")
    world.send(held, "crm", b"{}", pipe="q")
    world.send(held, "crm", b"{}", position=position_of(2, 0, 1))
    world.process(world.ingest(5, pipe="q"))
    world.ingest(2, ingest_time_us=NOW_US + 2 * HOUR_US)
    world.ingest(3, position=position_of(1, 0, 0))
    world.ingest(4, misfit="type")
    world.kafka.append(INGEST, b"{}", [], None, 0)
    found = ran(world, spec_of())
    assert (found.events, found.units) == (2, {"crm": {"equal": 1, "not_sent": 1}})


def test_deliveries_of_other_events_are_not_passed_on():
    world = ShadowWorld()
    for number in range(9):
        world.process(world.ingest(number))
    world.send(world.ingest(9), "crm", b"{}", position=position_of(2, 0, 4))
    job = job_of(world, shadow())
    job = msgspec.structs.replace(job, ranges=[job.ranges[0]._replace(first=3, end=5)])
    passed = [one for part in parts_of(job, 1) for _, one in read_part(job, part, world.reader())]
    assert Counter(type(one).__name__ for one in passed) == {"IngestedUnit": 2, "SentUnit": 2, "PartRead": 1}


@pytest.mark.parametrize(
    ("live", "shadow_body", "kind"),
    [(b"a,b", b"a,b", "equal"), (b"a,b", b"a,c", "different"), (b"{}", b"a", "different")],
)
def test_bodies_that_are_not_json_are_compared_by_their_bytes(live: bytes, shadow_body: bytes, kind: str):
    world = ShadowWorld()
    world.send(world.ingest(0, shadow_body), "crm", live)
    found = ran(world, spec_of())
    assert found.units == {"crm": {kind: 1}}
    assert found.fields == ({"crm": {"": 1}} if kind == "different" else {})


def test_samples_are_the_newest_of_each_kind():
    world = ShadowWorld()
    for number in range(3 * MOST_SAMPLES):
        world.process(world.ingest(number, b'{"total": 1}'))
    found = [
        one
        for part in run_job(world, job_of(world, shadow(spec_of(normalize=[MAP]))), tasks=1)
        if isinstance(part, PartComparison)
        for one in part.samples
    ]
    assert [one.position - position_of(1, 0, 0) for one in found] == list(range(2 * MOST_SAMPLES, 3 * MOST_SAMPLES))


def test_both_plans_are_timed_for_some_events(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_module, "COST_EVERY", 4)
    world = ShadowWorld()
    for number in range(200):
        world.process(world.ingest(number, b'{"total": 1}', partition=number % 4))
    found = ran(world, spec_of(normalize=[MAP] * 20))
    assert 20 < found.cost_events < 90
    assert found.shadow_cpu_us > 2 * found.live_cpu_us


def test_event_that_the_draft_does_not_accept_is_not_timed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_module, "COST_EVERY", 1)
    world = ShadowWorld(spec_of(sources={"shop": {}, "till": {}}))
    for source in ("till", "shop"):
        world.process(world.ingest(0, source=source))
    assert ran(world, spec_of()).cost_events == 1


def test_live_plan_runs_only_for_units_that_were_not_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_module, "COST_EVERY", 1 << 40)
    plans: list[Any] = []
    passage = task_module.ShadowTask._passage

    def noted(self: Any, plan: Any, *event: Any) -> Any:
        plans.append(plan is self._live)
        return passage(self, plan, *event)

    monkeypatch.setattr(task_module.ShadowTask, "_passage", noted)
    world = ShadowWorld()
    world.process(world.ingest(0))
    world.ingest(1)
    assert ran(world, spec_of()).units == {"crm": {"equal": 1, "not_sent": 1}}
    assert sorted(plans) == [False, False, True]


def test_masked_values_are_in_no_sample():
    secret = "ann@example.com"
    world = ShadowWorld()
    world.process(world.ingest(0, b'{"email": "%s", "n": 1}' % secret.encode()))
    draft = spec_of(normalize=[{"op": "mask", "path": "email"}, {"op": "set", "path": "n", "value": 2}])
    open_ = ran(world, draft)
    assert secret in str(open_.samples), "the test would see it"
    hidden = ran(world, draft, masks=masks_in_bodies([draft, world.live]))
    (sample,) = hidden.samples
    assert sample.fields == [FieldDifference("email", '"***"', '"***"'), FieldDifference("n", "1", "2")]


def test_part_that_ends_early_has_an_error():
    world = ShadowWorld()
    world.process(world.ingest(0))
    job: ShadowJob = job_of(world, shadow())
    too_far = msgspec.structs.replace(job, ranges=[job.ranges[0]._replace(end=5)])
    assert any(one.error for one in run_job(world, too_far))


def test_error_of_kafka_is_the_result_of_its_part(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise KafkaException("away")

    world = ShadowWorld()
    world.process(world.ingest(0))
    monkeypatch.setattr(type(world.reader()), "get_watermark_offsets", refuse)
    assert any(one.error == "away" and not one.crashed for one in run_job(world, job_of(world, shadow())))


def test_deliveries_that_retention_deletes_while_they_are_read_fail_the_job():
    world = ShadowWorld()
    for number in range(3):
        world.process(world.ingest(number))
    job = job_of(world, shadow())
    world.lows["penstock.c1.egress.g1", 0] = 2
    assert any("retention" in one.error for one in run_job(world, job))


def test_comparison_that_takes_too_long_ends_after_an_event(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_module, "COMPARE_S", 0.0)
    world = ShadowWorld()
    for number in range(3):
        world.process(world.ingest(number))
    (result,) = (one for one in run_job(world, job_of(world, shadow()), 1) if isinstance(one, PartComparison))
    assert (result.is_large, result.events) == (True, 1)


def test_names_of_fields_that_events_choose_do_not_fill_the_driver():
    world = ShadowWorld()
    for number in range(100):
        world.process(world.ingest(number, b'{"f%d": 1}' % number))
    draft = spec_of(normalize=[{"op": "map", "path": "$", "expr": "{}"}])
    results = run_job(world, job_of(world, shadow(draft)), 1)
    (fields,) = (one.fields["crm"] for one in results if isinstance(one, PartComparison))
    assert (len(fields), fields[""], sum(fields.values())) == (51, 50, 100)
