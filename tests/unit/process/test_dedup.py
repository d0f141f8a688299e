"""A process lane sends messages of pipes with dedup to its query, and processes them once they are judged."""

from pathlib import Path
from typing import Any

from dataplane.jobs.dedup import class_of
from dataplane.ledger.meta import META_HEADER, encode_meta, read_meta
from dataplane.ledger.units import partition_base
from dataplane.process.dedup import VERDICT_HEADER, read_question
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.process_lane import arrived, egress, opened, plan

BY_ID = {"paths": ["id"], "window_s": 60}


def asked(lane: MemoryLane) -> list[dict[str, Any]]:
    return lane.producer.of(lane.cell.topics["dedup"].name)


def judged(lane: MemoryLane, record: dict[str, Any], offset: int, first: bytes = b"") -> MemoryMessage:
    """Return the record that the dedup query writes back."""
    headers = [*record["headers"][:-1], (VERDICT_HEADER, first)]
    key = read_question(record["headers"]).key
    return MemoryMessage(0, offset, b"" if first else record["value"], headers, key, lane.cell.topics["ingest"].name)


def test_message_with_an_identity_is_sent_to_dedup_and_no_further(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup=BY_ID))
    lane.take(arrived(1, b'{"id":1}'), arrived(2, b'{"id":1}'), arrived(3, b'{"id":2}'))
    assert egress(lane) == []
    one, other, third = asked(lane)
    assert one["key"] == other["key"] != third["key"]
    assert {record["partition"] for record in asked(lane)} == {0}
    assert read_meta(one["headers"]).position == partition_base(1, 0) + 1
    assert read_question(one["headers"]).window_us == 60_000_000
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed() == {("ingest", "sent", "seen"): 3, ("dedup", "sent", "asked"): 3}


def test_senders_id_of_the_delivery_identifies_a_message_whatever_its_body_is(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup={"by": "idempotency-key"}))
    lane.take(
        arrived(1, b'{"id":1}', idempotency_key="d-1"),
        arrived(2, b"no JSON", idempotency_key="d-1"),
        arrived(3, b'{"id":1}', idempotency_key="d-2"),
        arrived(4, b'{"id":1}'),
    )
    one, repeat, other = asked(lane)
    assert one["key"] == repeat["key"] != other["key"]
    assert [record["value"] for record in egress(lane)] == [b'{"id":1}'], "it has no id of a delivery"


def test_judged_message_is_processed_under_its_original_position(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup=BY_ID))
    lane.take(arrived(1, b'{"id":1}'))
    lane.take(judged(lane, asked(lane)[0], offset=9))
    (record,) = egress(lane)
    assert record["value"] == b'{"id":1}'
    assert read_meta(record["headers"]).position == partition_base(1, 0) + 1
    assert VERDICT_HEADER not in dict(record["headers"])
    assert len(asked(lane)) == 1, "it is not sent to dedup again"
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed()["process", "sent", ""] == 1


def test_repeat_ends_at_dedup_and_names_the_first(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup=BY_ID))
    lane.take(arrived(1, b'{"id":1}'))
    lane.take(judged(lane, asked(lane)[0], offset=9, first=b"1-0-0"))
    assert egress(lane) == []
    lane.store()
    assert lane.unsettled() == 0
    assert lane.filed()["dedup", "duplicate", "1-0-0"] == 1


def test_message_without_an_identity_is_processed_at_once(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup=BY_ID))
    lane.take(arrived(1, b"{}"), arrived(2, b"no JSON"))
    assert asked(lane) == []
    assert [record["value"] for record in egress(lane)] == [b"{}", b"no JSON"]
    lane.store()
    assert lane.filed()["process", "sent", ""] == 2


def test_repeat_ends_also_after_a_rollback_to_a_revision_without_dedup(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup=BY_ID))
    lane.take(arrived(1, b'{"id":1}'))
    rolled_back = opened(tmp_path, plan())
    rolled_back.take(judged(lane, asked(lane)[0], offset=9, first=b"1-0-0"))
    assert egress(rolled_back) == []


def test_pipe_without_dedup_sends_nothing_to_it(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(arrived(1, b'{"id":1}'))
    assert asked(lane) == []
    assert len(egress(lane)) == 1


def test_window_length_decides_the_retention_class_of_an_identity():
    hour = 3_600_000_000
    assert [class_of(w) for w in (1, hour, hour + 1, 24 * hour, 7 * 24 * hour)] == [
        "hour",
        "hour",
        "day",
        "day",
        "week",
    ]


def test_dedup_record_has_the_meta_of_its_message(tmp_path: Path):
    lane = opened(tmp_path, plan(dedup=BY_ID))
    lane.take(arrived(4, b'{"id":1}'))
    (record,) = asked(lane)
    assert record["headers"][0] == (META_HEADER, encode_meta(read_meta(record["headers"])))
