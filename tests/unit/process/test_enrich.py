"""Look-ups in a process lane: rows of the tenant's own tables, one state for a batch, and no sockets."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dataplane.process import work
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, dead, egress, opened, plan

TABLE = "tab_1"
SHOP = {"table": "shops", "key": "body.shop", "into": "shop_row"}


def store_of(lane: MemoryLane) -> LookupStore:
    found: LookupStore = lane.work._lookups.store
    return found


def put(lane: MemoryLane, version: int = 1, tenant: str = "t", state: Any = "live", **rows: str) -> None:
    records = [(row_key(TABLE, key), encode_row(version, text.encode())) for key, text in rows.items()]
    table = TableRecord(TABLE, version, tenant, "shops", state)
    records.append((table_key(TABLE), encode_table(table)))
    store_of(lane).apply(records, version * len(records))


def lane_with(var: Path, **changes: Any) -> MemoryLane:
    lane = opened(var, plan(enrich=[SHOP | changes]))
    put(lane, berlin='{"city":"Berlin","vat":19}')
    return lane


def bodies(lane: MemoryLane) -> list[bytes]:
    return [record["value"] for record in egress(lane)]


def test_row_is_added_to_the_body(tmp_path: Path):
    lane = lane_with(tmp_path)
    lane.take(arrived(1, b'{"shop":"berlin"}'))
    assert bodies(lane) == [b'{"shop":"berlin","shop_row":{"city":"Berlin","vat":19}}']


def test_integer_key_is_looked_up_as_text(tmp_path: Path):
    lane = lane_with(tmp_path)
    put(lane, 2, **{"7": '{"n":7}'})
    lane.take(arrived(1, b'{"shop":7}'))
    assert bodies(lane) == [b'{"shop":7,"shop_row":{"n":7}}']


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        pytest.param({"on_missing": "keep"}, [b'{"shop":"rome"}'], id="keep"),
        pytest.param({"on_missing": "default"}, [b'{"shop":"rome","shop_row":null}'], id="default null"),
        pytest.param(
            {"on_missing": "default", "default": {"vat": 0}}, [b'{"shop":"rome","shop_row":{"vat":0}}'], id="default"
        ),
        pytest.param({"on_missing": "dead"}, [], id="dead"),
    ],
)
def test_missing_row_is_handled_as_the_spec_says(tmp_path: Path, changes: dict[str, Any], left: list[bytes]):
    lane = lane_with(tmp_path, **changes)
    lane.take(arrived(1, b'{"shop":"rome"}'))
    assert bodies(lane) == left
    lane.store()
    assert lane.filed().get(("enrich", "dead", "no-row"), 0) == (0 if left else 1)


@pytest.mark.parametrize("body", [b'{"shop":1.5}', b'{"shop":[]}', b'{"shop":true}', b"{}"])
def test_invalid_key_is_dead_at_enrich_and_the_batch_continues(tmp_path: Path, body: bytes):
    lane = lane_with(tmp_path)
    lane.take(arrived(1, body), arrived(2, b'{"shop":null}'))
    assert bodies(lane) == [b'{"shop":null}']
    (record,) = dead(lane)
    told = dict(record["headers"][1:])
    assert (told["penstock-node"], told["penstock-cause"], record["value"]) == (b"enrich", b"lookup", body)
    lane.store()
    filed = lane.filed()
    assert (filed["enrich", "dead", "lookup"], filed["process", "sent", ""], lane.unsettled()) == (1, 1, 0)


def test_message_waits_for_a_table_that_is_not_loaded_yet(tmp_path: Path):
    lane = opened(tmp_path, plan(enrich=[SHOP]))
    lane.take(arrived(1, b'{"shop":"berlin"}'))
    lane.poll()
    assert (bodies(lane), lane.unsettled()) == ([], 1)
    put(lane, berlin='{"vat":19}')
    lane.poll()
    assert bodies(lane) == [b'{"shop":"berlin","shop_row":{"vat":19}}']


def test_table_of_another_tenant_with_the_same_name_is_not_used(tmp_path: Path):
    lane = opened(tmp_path, plan(enrich=[SHOP]))
    put(lane, tenant="other", berlin='{"secret":1}')
    lane.take(arrived(1, b'{"shop":"berlin"}'))
    assert (bodies(lane), lane.unsettled()) == ([], 1)


def test_message_that_needs_a_removed_table_is_dead(tmp_path: Path):
    lane = lane_with(tmp_path)
    put(lane, 2, state="removed")
    lane.take(arrived(1, b'{"shop":"berlin"}'))
    assert (bodies(lane), dict(dead(lane)[0]["headers"][1:])["penstock-cause"]) == ([], b"no-table")


def test_batch_reads_the_rows_of_its_start_and_the_next_one_new_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(work, "PASS_S", 60.0)  # the whole batch in one pass
    lane = lane_with(tmp_path)
    written = _write_under_way(lane, monkeypatch)
    lane.take(arrived(1, b'{"shop":"berlin"}'), arrived(2, b'{"shop":"berlin"}', partition=1))
    assert written == [2]
    lane.take(arrived(3, b'{"shop":"berlin"}'))
    assert [b'"vat":20' in body for body in bodies(lane)] == [False, False, True]


def _write_under_way(lane: MemoryLane, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Write a new row while a batch is in progress: as soon as its first record is produced."""
    group = lane.producer.begin_group
    written: list[int] = []

    def write_first(*arguments: Any) -> Any:
        if not written:
            put(lane, 2, berlin='{"vat":20}')
            written.append(2)
        return group(*arguments)

    monkeypatch.setattr(lane.producer, "begin_group", write_first)
    return written


def test_message_does_not_change_the_row_of_the_next_one(tmp_path: Path):
    edit = {"op": "set", "path": "shop_row.vat", "value": 0}
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), enrich=[SHOP], transform={"crm": [edit]}))
    put(lane, berlin='{"vat":19}')
    lane.take(arrived(1, b'{"shop":"berlin"}'), arrived(2, b'{"shop":"berlin"}'))
    assert [b'"vat":0' in body for body in bodies(lane)] == [True, True, False, False]


def test_enrich_is_measured_between_normalize_and_transform(tmp_path: Path):
    lane = lane_with(tmp_path)
    lane.take(arrived(1, b'{"shop":"berlin"}'))
    lane.store()
    nodes = [(row.node, row.way) for row in lane.lags.take()]
    assert {("enrich", "in"), ("enrich", "out"), ("enrich", "own")} <= set(nodes)


_watching: list[list[str]] = []


def _audit(event: str, _arguments: Any) -> None:
    if _watching and event.startswith("socket."):
        _watching[-1].append(event)


sys.addaudithook(_audit)  # permanent: Python cannot remove it


@contextmanager
def sockets_noted() -> Iterator[list[str]]:
    _watching.append([])
    try:
        yield _watching[-1]
    finally:
        _watching.pop()


def test_no_stage_opens_a_socket(tmp_path: Path):
    steps = [{"op": "set", "path": "a", "value": 1}]
    routes = {"rules": [{"when": "body.shop_row.vat == 19", "to": ["crm"]}]}
    lane = opened(tmp_path, plan(normalize=steps, enrich=[SHOP], routes=routes, transform={"crm": steps}))
    put(lane, berlin='{"vat":19}')
    with sockets_noted() as noted:
        lane.take(arrived(1, b'{"shop":"berlin"}'), arrived(2, b'{"shop":"rome"}'))
    assert noted == []
    assert len(bodies(lane)) == 1


def test_socket_check_detects_a_socket():
    import socket

    with sockets_noted() as noted:
        socket.socket().close()
    assert noted
