"""Records that do not fit the event types of their Kafka source: dead letters, and checked again when run again."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.deadletter import can_run_again, dead_letter_reason
from dataplane.ledger.meta import read_meta
from dataplane.tables.records import EventTypesRecord, Record
from tests.support.event_types import ORDER_1, ORDERS, confluent, event_types
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

NOTED = "/id: needs int, got a text"
TYPES = event_types("header:x-type", {"order": "orders"})
AVRO = confluent(7, ORDER_1, {"id": 5})


def lane_of(var: Path, *records: Record, **fields: Any) -> MemoryLane:
    lane = opened(var, plan(**fields))
    for record in records:
        lane.table.apply(record)
    return lane


def reasons(lane: MemoryLane) -> list[tuple[str, str]]:
    found = [dead_letter_reason(record["headers"]) for record in dead(lane)]
    assert all(one.node == "normalize" and can_run_again(one) for one in found)
    return [(one.cause, one.detail) for one in found]


def test_misfit_is_dead_lettered_with_its_reason_and_the_batch_continues(tmp_path: Path):
    lane = lane_of(tmp_path, ORDERS, TYPES)
    lane.take(
        arrived(5, b'{"id":1}', schema="orders@2"),
        arrived(6, b'{"id":"x"}', misfit=NOTED),
        arrived(7, AVRO, misfit="y"),
    )
    assert [record["value"] for record in egress(lane)] == [b'{"id":1}']
    assert read_meta(egress(lane)[0]["headers"]).schema == "orders@2"
    assert reasons(lane) == [("schema", NOTED), ("schema", "y")]
    assert [record["value"] for record in dead(lane)] == [b'{"id":"x"}', AVRO]
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert (filed["normalize", "dead", "schema"], filed["process", "sent", ""]) == (2, 1)


def test_all_of_a_batch_can_be_misfits(tmp_path: Path):
    lane = lane_of(tmp_path, destinations=("crm", "lake"))
    lane.take(arrived(5, b"\xff", misfit=NOTED))
    lane.store()
    assert (egress(lane), reasons(lane), lane.unsettled()) == ([], [("schema", NOTED)], 0)
    assert ("process", "sent", "") not in lane.filed()


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        pytest.param(b'{"id": 1}', b'{"id": 1}', id="json"),
        pytest.param(AVRO, b'{"id":5}', id="avro"),
    ],
)
def test_misfit_that_is_run_again_is_checked_with_the_newest_version(tmp_path: Path, body: bytes, sent: bytes):
    lane = lane_of(tmp_path, ORDERS, TYPES)
    lane.take(arrived(5, body, misfit=NOTED, event_type="order", life=1, attempt=1))
    ((record),) = egress(lane)
    meta = read_meta(record["headers"])
    assert record["value"] == sent
    assert (meta.schema, meta.misfit, meta.event_type) == ("orders@1" if body is AVRO else "orders@2", "", "")


def test_admitted_avro_is_dead_lettered_as_json_if_a_step_fails(tmp_path: Path):
    lane = lane_of(tmp_path, ORDERS, TYPES, normalize=[{"op": "cast", "path": "no", "to": "int"}])
    lane.take(arrived(5, AVRO, misfit=NOTED, event_type="order", life=1))
    (record,) = dead(lane)
    assert (record["value"], dead_letter_reason(record["headers"]).cause) == (b'{"id":5}', "step")
    assert read_meta(record["headers"]).misfit == ""


@pytest.mark.parametrize(
    ("body", "event_type", "types", "detail"),
    [
        pytest.param(b'{"id":"x"}', "order", TYPES, "/id: needs int, got a text", id="still a misfit"),
        pytest.param(b'{"id":1,"id":2}', "order", TYPES, "the event: needs JSON, or Avro", id="a key twice"),
        pytest.param(b'{"id":1}', "", TYPES, "the event: needs the header x-type", id="without a type"),
        pytest.param(AVRO[:-1], "", TYPES, "/id: the bytes end", id="Avro that is cut off"),
        pytest.param(AVRO, "", None, "the event is Avro, and its source has no event types", id="event types removed"),
    ],
)
def test_misfit_that_does_not_fit_again_is_a_dead_letter_again(
    tmp_path: Path, body: bytes, event_type: str, types: EventTypesRecord | None, detail: str
):
    lane = lane_of(tmp_path, ORDERS, *([types] if types else []))
    lane.take(arrived(5, body, misfit="earlier", event_type=event_type, life=2))
    assert egress(lane) == []
    ((cause, found),) = reasons(lane)
    assert (cause, found[: len(detail)]) == ("schema", detail)
    (record,) = dead(lane)
    assert (record["value"], read_meta(record["headers"]).misfit) == (body, "earlier"), "it can be run again"


def test_json_is_accepted_again_without_event_types(tmp_path: Path):
    lane = lane_of(tmp_path)
    lane.take(arrived(5, b'{"id":"x"}', misfit=NOTED, life=1))
    assert [record["value"] for record in egress(lane)] == [b'{"id":"x"}']
