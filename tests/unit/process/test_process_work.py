"""Batches in process: by pipe and revision, one record per destination, settled when all are stored."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import partition_base
from dataplane.plan import compile_plan
from dataplane.process.work import FEW
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.runtime.producers.tracked_producer import ANY_PARTITION
from dataplane.spec import parse_pipe_spec
from dataplane.spec.checks import MAX_CONSTANT_BYTES
from dataplane.tables.records import PipeRecord, PlanRecord
from tests.support.memory_lane import MemoryMessage, message
from tests.support.process_lane import arrived, dead, egress, opened, plan

CAST = {"op": "cast", "path": "n", "to": "int"}


def test_body_and_headers_pass_unchanged_without_steps(tmp_path: Path):
    lane = opened(tmp_path, plan())
    body = b' {"b" : 1.50,\n "a":"\\u00e9"} '
    lane.take(arrived(5, body, partition=2))
    (record,) = egress(lane)
    assert record["value"] == body
    assert record["headers"][1:] == [("content-type", b"application/json")]
    meta = read_meta(record["headers"])
    assert (meta.position, meta.destination, meta.id) == (partition_base(1, 2) + 5, "crm", "id-2-5")


def test_message_is_settled_when_every_record_of_its_run_is_stored(tmp_path: Path):
    lane = opened(tmp_path, plan(destinations=("crm", "lake")))
    lane.take(arrived(5), arrived(6))
    assert len(egress(lane)) == 4
    one, other = lane.producer.waiting  # one for each destination
    lane.work.on_delivery(one)
    assert lane.unsettled() == 2
    assert lane.filed() == {}
    lane.work.on_delivery(other)
    assert lane.unsettled() == 0
    assert lane.filed() == {
        ("ingest", "sent", "seen"): 2,
        ("process", "sent", ""): 2,
        ("transform:crm", "sent", ""): 2,
        ("transform:lake", "sent", ""): 2,
    }


def test_few_messages_are_sent_without_waiting_for_others_of_their_batch_and_many_are_not(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(*(arrived(offset) for offset in range(FEW)))
    assert lane.producer.sent_now == [FEW], "after all of its records"
    lane.take(arrived(FEW))
    assert lane.producer.sent_now == [FEW], "earlier records are in flight: these share a batch with later ones"
    lane.store()
    lane.take(*(arrived(offset) for offset in range(FEW + 1, 2 * FEW + 2)))
    assert lane.producer.sent_now == [FEW], "a batch of its own"
    lane.store()
    lane.take(arrived(2 * FEW + 2))
    assert lane.producer.sent_now == [FEW, 2 * FEW + 3]
    lane.store()
    lane.take()
    assert len(lane.producer.sent_now) == 2, "nothing was produced"


def test_messages_of_a_spread_key_keep_their_key_and_go_on_in_their_own_partitions(tmp_path: Path):
    sources = {"shop": {"key": "id", "spread_key": True}, "web": {"key": "id"}}
    lane = opened(tmp_path, plan(sources=sources))
    lane.take(*(arrived(5, key=b"p\0acme", partition=partition) for partition in range(4)))
    lane.take(arrived(6, key=b"p\0acme", source="web"))
    records = [(record["key"], record["partition"]) for record in egress(lane)]
    assert records == [*((b"crm\0p\0acme", partition) for partition in range(4)), (b"crm\0p\0acme", ANY_PARTITION)]


def test_message_with_a_failed_step_is_dead_with_its_original_and_the_batch_continues(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    bodies = [b'{"n":"1"}', b'{"n":"one"}', b"\xff", b'{"n":"4"}']
    lane.take(*(arrived(n, body) for n, body in enumerate(bodies)))
    assert [record["value"] for record in egress(lane)] == [b'{"n":1}', b'{"n":4}']
    dead_letters = [(record["value"], dict(record["headers"][1:])["penstock-cause"]) for record in dead(lane)]
    assert dead_letters == [(b'{"n":"one"}', b"step"), (b"\xff", b"decode")]
    assert all(dict(record["headers"][1:])["penstock-node"] == b"normalize" for record in dead(lane))
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert (filed["normalize", "dead", "step"], filed["normalize", "dead", "decode"], filed["process", "sent", ""]) == (
        1,
        1,
        2,
    )
    assert filed["ingest", "sent", "seen"] == 4


def test_failed_transform_is_dead_for_its_destination_only(tmp_path: Path):
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), transform={"crm": [CAST]}))
    lane.take(arrived(1, b'{"n":"one"}'))
    assert [read_meta(record["headers"]).destination for record in egress(lane)] == ["lake"]
    lane.store()
    filed = lane.filed()
    assert (
        filed["transform:crm", "dead", "step"]
        == filed["transform:lake", "sent", ""]
        == filed["process", "sent", ""]
        == 1
    )
    assert not filed.get(("transform:crm", "sent", ""))


@pytest.mark.parametrize(
    ("more", "once"),
    [
        ({}, True),
        ({"destinations": ("crm", "lake")}, True),
        ({"transform": {"crm": [CAST]}}, False),
        ({"routes": {"rules": [{"when": "body.n > 0", "to": ["crm"]}]}}, False),
        ({"enrich": [{"table": "people", "key": "body.n", "into": "who"}]}, False),
    ],
)
def test_body_is_encoded_by_the_last_step_unless_a_later_stage_reads_it(more: dict[str, Any], once: bool):
    assert compile_plan(plan(normalize=[CAST], **more).spec).edits_once is once


def test_destination_gets_the_same_body_whether_or_not_another_one_has_steps(tmp_path: Path):
    body = b'{"n":"1", "x":[1.50, "\\u00e9"]}'
    sent = []
    for transform in ({}, {"lake": [CAST]}):
        lane = opened(tmp_path, plan(destinations=("crm", "lake"), normalize=[CAST], transform=transform))
        lane.take(arrived(1, body), arrived(2, b'{"n":"one"}'))
        assert [record["value"] for record in dead(lane)] == [b'{"n":"one"}']
        sent.append([record["value"] for record in egress(lane)])
    assert sent[0] == sent[1] == [b'{"n":1,"x":[1.5,"\xc3\xa9"]}'] * 2


def test_message_that_grew_beyond_the_record_limit_is_dead_with_its_original(tmp_path: Path):
    many = CLIENT_MAX_BYTES // MAX_CONSTANT_BYTES + 1
    steps = [{"op": "set", "path": f"note{n}", "value": "x" * (MAX_CONSTANT_BYTES - 2)} for n in range(many)]
    lane = opened(tmp_path, plan(destinations=("crm", "lake"), transform={"crm": steps}))
    lane.take(arrived(1, b"{}"))
    assert [record["value"] for record in dead(lane)] == [b"{}"]
    lane.store()
    assert lane.filed()["transform:crm", "dead", "too-large"] == 1
    assert lane.unsettled() == 0


def test_message_waits_for_its_plan_and_does_not_delay_another_revision(tmp_path: Path):
    lane = opened(tmp_path, plan(1))
    lane.take(arrived(1, revision=2), arrived(2, revision=1))
    lane.poll()
    assert len(egress(lane)) == 1
    lane.store()
    assert lane.windows[0].prefix == 1, "the waiting message is not settled"
    lane.table.apply(plan(2))
    lane.poll()
    lane.store()
    assert lane.unsettled() == 0
    assert len(egress(lane)) == 2


def test_messages_waiting_for_a_plan_are_dropped_with_their_partition(tmp_path: Path):
    lane = opened(tmp_path)
    lane.take(arrived(1, partition=0), arrived(1, partition=1))
    lane.lose(0)
    lane.table.apply(plan(1))
    lane.poll()
    assert [read_meta(record["headers"]).id for record in egress(lane)] == ["id-1-1"]


def test_rollback_runs_a_stamped_revision_as_another(tmp_path: Path):
    wrong = plan(8, normalize=[{"op": "remove", "path": "n"}])
    lane = opened(tmp_path, plan(7), wrong, run_as={8: 7})
    lane.take(arrived(1, b'{"n":1}', revision=8))
    assert egress(lane)[0]["value"] == b'{"n":1}'
    assert read_meta(egress(lane)[0]["headers"]).revision == 8, "the stamp is kept"


def test_same_message_is_produced_to_the_same_partition_again(tmp_path: Path):
    lane = opened(tmp_path, plan(destinations=("crm", "lake")))
    for _ in range(2):
        lane.work.process([arrived(5, partition=3), message(6, partition=3, key=b"p\0k", destination="")])
    places = [(record.get("partition"), record.get("key")) for record in egress(lane)]
    assert places[:4] == places[4:]
    assert sorted(map(str, places[:4])) == sorted(
        map(str, [(3, None), (3, None), (-1, b"crm\0p\0k"), (-1, b"lake\0p\0k")])
    )


@pytest.mark.parametrize("headers", [[], [("content-type", b"x")], [("penstock-meta", b"junk")]])
def test_record_with_an_invalid_envelope_is_dead_lettered_unchanged(tmp_path: Path, headers: list[tuple[str, bytes]]):
    lane = opened(tmp_path, plan())
    lane.take(MemoryMessage(0, 5, b"payload", headers), arrived(6))
    (record,) = dead(lane)
    assert (record["value"], record["headers"]) == (b"payload", [*headers, ("penstock-cause", b"envelope")])
    assert len(egress(lane)) == 1


def test_facts_and_lags_are_kept_apart_by_bucket(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(arrived(1, bucket=10), arrived(2, bucket=11))
    lane.store()
    assert {found.bucket for found in lane.facts.take()} == {10, 11}
    lags = {(lag.node, lag.bucket, lag.way) for lag in lane.lags.take()}
    nodes, ways = ("normalize", "transform:crm"), ("in", "out", "own")
    assert lags == {(node, bucket, way) for node in nodes for way in ways for bucket in (10, 11)}


def ramping(share: int, version: int = 2) -> PipeRecord:
    return PipeRecord("p", version, "t", "orders", "c1", "active", [(8, share), (7, 100 - share)])


def test_messages_of_a_ramping_pipe_are_recorded_by_revision_and_ramp_step(tmp_path: Path):
    lane = opened(tmp_path, plan(7), plan(8, normalize=[CAST]))
    lane.table.apply(ramping(5))
    lane.take(arrived(1, b'{"n":"x"}', revision=8), arrived(2, revision=7), arrived(3, revision=7))
    lane.table.apply(ramping(25, version=3))
    lane.take(arrived(4, b'{"n":"1"}', revision=8))
    lane.store()
    filed = lane.filed()
    assert {key[0]: count for key, count in filed.items() if key[0].startswith("ramp:")} == {
        "ramp:5:8": 1,
        "ramp:5:7": 2,
        "ramp:25:8": 1,
    }
    lags = {lag.node for lag in lane.lags.take() if lag.node.startswith("ramp:")}
    assert lags == {"ramp:5:7", "ramp:25:8"}, "a message that died in a step has no lag"


def test_message_that_waits_for_its_plan_is_recorded_for_its_revision_meanwhile(tmp_path: Path):
    lane = opened(tmp_path, plan(7))
    lane.table.apply(ramping(5))
    lane.take(arrived(1, revision=8))
    assert lane.filed() == {("ramp:5:8", "sent", ""): 1}


def test_message_that_crashed_lanes_is_recorded_for_the_revision_that_may_have_caused_it(tmp_path: Path):
    lane = opened(tmp_path, plan(7), plan(8))
    lane.table.apply(ramping(5))
    lane.condemn(arrived(5, revision=8))
    lane.store()
    assert lane.filed()["ramp:5:8", "sent", ""] == 1


def test_message_stamped_before_the_lane_knew_of_the_ramp_is_recorded_too(tmp_path: Path):
    lane = opened(tmp_path, plan(1), plan(2))
    lane.take(arrived(1, revision=2))
    lane.store()
    assert lane.filed()["ramp:0:2", "sent", ""] == 1
    lane.table.apply(PipeRecord("p", 2, "t", "orders", "c1", "active", [(1, 100)], {2: 1}))
    lane.take(arrived(2, revision=2))
    assert not [key for key in lane.filed() if key[0].startswith("ramp:")], "it runs as the stable one"


def test_pipe_without_a_ramp_has_no_ramp_facts(tmp_path: Path):
    lane = opened(tmp_path, plan(1))
    lane.take(arrived(1))
    lane.store()
    assert not [key for key in lane.filed() if key[0].startswith("ramp:")]


def test_message_that_crashed_lanes_is_dead_without_running_a_step(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[CAST]))
    lane.condemn(arrived(5, b'{"n":"1"}'))
    (record,) = dead(lane)
    assert record["value"] == b'{"n":"1"}'
    assert ("penstock-cause", b"crashes-lane") in record["headers"]
    assert lane.unsettled() == 1
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {("ingest", "sent", "seen"): 1, ("normalize", "dead", "crashes-lane"): 1}
    assert not egress(lane)


KEEPING_NONE = {"crm": {"type": "http", "url": "http://crm.example/"}}
ORDERED = {"crm": {"type": "http", "url": "http://crm.example/", "ordered": True}}


@pytest.mark.parametrize(
    "keeping", [ORDERED, {"crm": {"type": "topic", "partitions": 2}}], ids=["in order to http", "to a topic"]
)
def test_messages_keep_their_arrival_order_across_minutes_if_a_destination_is_ordered(
    tmp_path: Path, keeping: dict[str, Any]
):
    lane = opened(tmp_path, kept(keeping, 1), kept(keeping, 2))
    minutes, revisions = (7, 8, 7, 8, 8, 7), (1, 1, 1, 2, 1, 1)
    came = [
        arrived(n, b"%d" % n, bucket=minute, revision=revision)
        for n, (minute, revision) in enumerate(zip(minutes, revisions, strict=True))
    ]
    lane.take(*came)
    assert [int(record["value"]) for record in egress(lane)] == [0, 1, 2, 3, 4, 5]
    lane.store()
    assert lane.unsettled() == 0


def test_messages_of_a_minute_run_together_if_no_destination_is_ordered(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(*(arrived(n, b"%d" % n, bucket=minute) for n, minute in enumerate((7, 8, 7, 8))))
    assert [int(record["value"]) for record in egress(lane)] == [0, 2, 1, 3]


def test_no_message_overtakes_one_that_waits_for_its_plan(tmp_path: Path):
    lane = opened(tmp_path, kept(ORDERED, 1))
    lane.take(arrived(0, b"0", revision=2), arrived(1, b"1", revision=1), arrived(2, b"2", partition=1))
    assert [int(record["value"]) for record in egress(lane)] == [2], "another partition does not wait"
    lane.table.apply(kept(ORDERED, 2))
    lane.take(arrived(3, b"3", revision=1))
    lane.poll()
    assert [int(record["value"]) for record in egress(lane)] == [2, 0, 1, 3]


arrivals = st.lists(
    st.tuples(st.integers(0, 1), st.integers(7, 9), st.integers(1, 2)), min_size=1, max_size=12
)  # partition, minute, revision


@given(batches=st.lists(arrivals, min_size=1, max_size=4), known_from=st.integers(0, 4), both=st.booleans())
def test_each_partition_keeps_its_order_for_any_arrivals(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[int, int, int]]],
    known_from: int,
    both: bool,
):
    """The plan of a revision may be late, and the other revision may be the ordered one."""
    lane = opened(tmp_path_factory.mktemp("lane"), kept(ORDERED, 1))
    numbers = itertools.count()
    came: dict[int, list[int]] = {0: [], 1: []}
    for number, batch in enumerate([*batches, []]):
        if number == min(known_from, len(batches)):
            lane.table.apply(kept(ORDERED if both else KEEPING_NONE, 2))
        offsets = [(next(numbers), *one) for one in batch]
        for offset, partition, _, _ in offsets:
            came[partition].append(offset)
        lane.take(
            *(
                arrived(n, b"%d" % n, partition=partition, bucket=minute, revision=revision)
                for n, partition, minute, revision in offsets
            )
        )
        lane.poll()
    left: dict[int, list[int]] = {0: [], 1: []}
    for record in egress(lane):
        left[read_meta(record["headers"]).position >> 40 & 1].append(int(record["value"]))
    for partition, numbers_there in came.items():
        assert sorted(left[partition]) == numbers_there, "no message is left behind"
        if both:
            assert left[partition] == numbers_there


def kept(destinations: dict[str, Any], revision: int) -> PlanRecord:
    spec = {"sources": {"shop": {}}, "destinations": destinations}
    return PlanRecord("p", revision, parse_pipe_spec(spec))


def test_read_records_are_filed_by_the_producer_that_stored_them(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(arrived(1, producer=7), arrived(2, producer=8), arrived(3, producer=7), arrived(4))
    lane.store()
    filed = lane.filed()
    assert (filed["log", "sent", "seen/00000007"], filed["log", "sent", "seen/00000008"]) == (2, 1)
    assert filed["ingest", "sent", "seen"] == 4
    assert sum(key[0] == "log" for key in filed) == 2, "a record without a producer has no log fact"
