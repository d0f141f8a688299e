"""Windows in a process lane: events are tapped for them, and their results enter at the route."""

from pathlib import Path
from typing import Any

from dataplane.plan.taps import decode_tap, digest_partition
from tests.support.memory_lane import PARTITIONS, MemoryLane
from tests.support.process_lane import arrived, egress, opened, plan

BY_SHOP = {
    "span": {"kind": "tumbling", "size_s": 60},
    "by": ["shop"],
    "late_s": 10,
    "values": {"n": {"op": "count"}, "total": {"op": "sum", "of": "amount"}},
}
WINDOWS = {"by-shop": BY_SHOP}


def taps(lane: MemoryLane) -> list[dict[str, Any]]:
    return lane.producer.of(lane.cell.topics["taps"].name)


def test_events_are_tapped_as_they_are_after_normalize_and_processed_further(tmp_path: Path):
    lane = opened(tmp_path, plan(windows=WINDOWS, normalize=[{"op": "cast", "path": "amount", "to": "int"}]))
    lane.take(arrived(1, b'{"shop":"a","amount":"7"}'), arrived(2, b'{"shop":"b","amount":"8"}'))
    found = [decode_tap(record["value"]) for record in taps(lane)]
    assert [(tap.by, tap.values) for tap in found] == [(b'["a"]', [1, 7]), (b'["b"]', [1, 8])]
    partitions = [digest_partition(record["key"], PARTITIONS) for record in taps(lane)]
    assert [record["partition"] for record in taps(lane)] == partitions
    assert len(egress(lane)) == 2
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed()["process", "sent", ""] == 2


def test_taps_of_the_same_key_have_the_same_record_key(tmp_path: Path):
    lane = opened(tmp_path, plan(windows=WINDOWS))
    lane.take(*(arrived(n, b'{"shop":"%b"}' % shop) for n, shop in enumerate((b"a", b"a", b"b"))))
    one, other, third = (record["key"] for record in taps(lane))
    assert one == other != third


def test_taps_of_a_key_are_in_one_partition_and_those_of_many_keys_in_all(tmp_path: Path):
    lane = opened(tmp_path, plan(windows=WINDOWS))
    lane.take(*(arrived(n, b'{"shop":%d}' % (n % 40)) for n in range(80)))
    by_key: dict[bytes, set[int]] = {}
    for record in taps(lane):
        by_key.setdefault(record["key"], set()).add(record["partition"])
    assert [len(partitions) for partitions in by_key.values()] == [1] * 40
    assert set().union(*by_key.values()) == set(range(PARTITIONS))


def test_late_event_is_counted_and_processed_further(tmp_path: Path):
    lane = opened(tmp_path, plan(windows=WINDOWS))
    lane.take(arrived(1, b"{}", event_time_us=1_000_000, ingest_time_us=12_000_000))
    assert taps(lane) == []
    assert len(egress(lane)) == 1
    lane.store()
    assert lane.filed()["window:by-shop", "sent", "late"] == 1


def test_window_result_is_neither_tapped_nor_normalized_and_enters_at_the_route(tmp_path: Path):
    lane = opened(tmp_path, plan(windows=WINDOWS, normalize=[{"op": "cast", "path": "amount", "to": "int"}]))
    lane.take(arrived(1, b'{"values":{"n":3}}', source="window:by-shop"))
    assert taps(lane) == []
    assert [record["value"] for record in egress(lane)] == [b'{"values":{"n":3}}']
    lane.store()
    assert lane.filed()["process", "sent", ""] == 1


def test_routes_distinguish_results_from_events_by_their_source(tmp_path: Path):
    routes = {"rules": [{"when": "meta.source == 'window:by-shop'", "to": ["lake"]}], "otherwise": ["crm"]}
    lane = opened(tmp_path, plan(windows=WINDOWS, routes=routes, destinations=("crm", "lake")))
    lane.take(arrived(1, b'{"a":1}'), arrived(2, b'{"values":{}}', source="window:by-shop"))
    assert sorted(record["value"] for record in egress(lane)) == [b'{"a":1}', b'{"values":{}}']
    lane.store()
    filed = lane.filed()
    assert (filed["transform:lake", "sent", ""], filed["transform:crm", "sent", ""]) == (1, 1)


def test_event_that_is_not_json_is_tapped_by_no_window_and_processed_further(tmp_path: Path):
    lane = opened(tmp_path, plan(windows=WINDOWS))
    lane.take(arrived(1, b"plain words"))
    assert taps(lane) == []
    assert len(egress(lane)) == 1
