"""Admission of a pipe by shares of its keys, in a process lane."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import META_HEADER, encode_meta, read_meta
from dataplane.names import ALL_KEYS_PERCENT, ramp_node
from dataplane.process import admission
from dataplane.process.admission import lot_of
from dataplane.tables.records import PipeRecord
from tests.support.memory_lane import MemoryLane, MemoryMessage, message
from tests.support.process_lane import egress, opened, plan

KEY = b"p\0alice"
LOT = lot_of(KEY)


def admit(lane: MemoryLane, share: int) -> None:
    version = lane.table.pipe("p").version + 1  # type: ignore[union-attr]
    lane.table.apply(
        PipeRecord("p", version, "t", "orders", "c1", "active", [(1, 100)], admitted=share, by_shares=True)
    )


def keyed(offset: int, key: bytes | None = KEY) -> MemoryMessage:
    now_us = admission._now_us()
    return message(offset, b"%d" % offset, key=key, destination="", position=0, ingest_time_us=now_us)


def held(lane: MemoryLane) -> list[dict[str, Any]]:
    return lane.producer.of(lane.cell.topics["held"].name)


def back(lane: MemoryLane, number: int, offset: int, **changed: int) -> MemoryMessage:
    """Return a held record, chosen by number, as the retrier releases it."""
    record = held(lane)[number]
    meta = msgspec.structs.replace(read_meta(record["headers"]), **changed)
    return MemoryMessage(0, offset, record["value"], [(META_HEADER, encode_meta(meta))], record["key"])


def sent(lane: MemoryLane) -> list[bytes]:
    return [record["value"] for record in egress(lane)]


@pytest.fixture
def lane(tmp_path: Path) -> MemoryLane:
    lane = opened(tmp_path, plan())
    admit(lane, LOT)  # only lots below alice's
    return lane


def test_last_admission_step_is_recorded_like_the_others_until_admission_ends(lane: MemoryLane):
    admit(lane, ALL_KEYS_PERCENT)
    lane.take(keyed(1))
    assert lane.filed()[ramp_node(ALL_KEYS_PERCENT, 1), "sent", ""] == 1
    record = lane.table.pipe("p")
    assert record is not None
    lane.table.apply(msgspec.structs.replace(record, version=99, by_shares=False))
    lane.take(keyed(2))
    assert not any(node.startswith("ramp:") for node, *_ in lane.filed())


def test_message_beyond_the_share_is_held_unchanged_with_the_share_that_admits_it(lane: MemoryLane):
    lane.take(keyed(1), keyed(2))
    assert [record["value"] for record in held(lane)] == [b"1", b"2"]
    metas = [read_meta(record["headers"]) for record in held(lane)]
    assert {(meta.share, meta.attempt, meta.destination) for meta in metas} == {(LOT + 1, 1, "")}
    lane.store()
    assert lane.unsettled() == 0
    filed = lane.filed()
    assert filed["normalize", Fact.HELD, "1"] == filed["ingest", "sent", "seen"] == 2
    assert not sent(lane)


def test_message_within_the_share_passes_and_is_recorded_under_the_share(lane: MemoryLane):
    admit(lane, LOT + 1)
    lane.take(keyed(1))
    assert sent(lane) == [b"1"]
    lane.store()
    assert lane.filed()[ramp_node(LOT + 1, 1), "sent", ""] == 1
    assert not held(lane)


@pytest.mark.parametrize(("cell", "passes"), [("c1", False), ("c2", True), ("", True)])
def test_cell_named_as_held_admits_nothing_and_any_other_cell_everything(tmp_path: Path, cell: str, passes: bool):
    lane = opened(tmp_path, plan())
    assert lane.identity.cell == "c1"
    record = lane.table.pipe("p")
    assert record is not None
    lane.table.apply(msgspec.structs.replace(record, version=2, held_at=cell))
    lane.take(keyed(1), keyed(2, key=None))
    assert (sent(lane), len(held(lane))) == (([b"1", b"2"], 0) if passes else ([], 2))
    lane.store()
    lane.table.apply(msgspec.structs.replace(record, version=3))
    lane.take(keyed(3))
    assert sent(lane) == ([b"1", b"2", b"3"] if passes else []), "the message waits behind the held ones"


def test_message_without_a_key_is_held_or_passes_by_its_id(lane: MemoryLane):
    admit(lane, 50)
    lane.take(*(keyed(n, None) for n in range(200)))
    assert 40 < len(held(lane)) < 160
    assert len(held(lane)) + len(sent(lane)) == 200


def test_message_never_overtakes_held_messages_of_its_key(lane: MemoryLane):
    lane.take(keyed(1), keyed(2))
    admit(lane, LOT + 1)
    lane.take(keyed(3))  # none is released yet: held behind the others
    assert [record["value"] for record in held(lane)] == [b"1", b"2", b"3"]
    lane.take(back(lane, 0, 4), keyed(5), back(lane, 1, 6))  # almost all released: 5 is kept
    assert sent(lane) == [b"1", b"2"]
    lane.take(keyed(7), back(lane, 2, 8), keyed(9))
    assert sent(lane) == [b"1", b"2", b"3", b"5", b"7", b"9"]
    lane.store()
    assert lane.unsettled() == 0
    assert len(held(lane)) == 3


def test_released_message_is_admitted_although_the_share_has_fallen(lane: MemoryLane):
    lane.take(keyed(1))
    admit(lane, 0)
    lane.take(back(lane, 0, 2), keyed(3))
    assert sent(lane) == [b"1"]
    assert [record["value"] for record in held(lane)] == [b"1", b"3"]


def test_message_kept_for_too_long_is_held(lane: MemoryLane, monkeypatch: pytest.MonkeyPatch):
    lane.take(keyed(1))
    admit(lane, ALL_KEYS_PERCENT)
    lane.take(keyed(2))
    lane.take(back(lane, 0, 3), keyed(4))
    assert [record["value"] for record in held(lane)] == [b"1", b"2"]
    monkeypatch.setattr(admission, "KEPT_S", -1.0)
    lane.poll()
    assert [record["value"] for record in held(lane)] == [b"1", b"2", b"4"]
    lane.store()
    assert lane.unsettled() == 0


def test_message_behind_old_released_ones_is_held_instead_of_kept(lane: MemoryLane):
    lane.take(keyed(1), keyed(2))
    admit(lane, ALL_KEYS_PERCENT)
    lane.take(back(lane, 0, 3, ingest_time_us=1), keyed(4))
    assert [record["value"] for record in held(lane)] == [b"1", b"2", b"4"]


def test_new_owner_of_the_partition_knows_the_closed_lots(lane: MemoryLane, tmp_path: Path):
    lane.take(keyed(1))
    lane.store()
    note = lane.note(0, 2)
    assert note == f"p={1 << LOT:x}"
    other = opened(tmp_path, plan())  # its table says that all keys are admitted
    other.recall(0, note)
    other.take(keyed(2), keyed(3))
    assert [record["value"] for record in held(other)] == [b"2", b"3"]
    other.take(back(lane, 0, 4), back(other, 0, 5), back(other, 1, 6), keyed(7))
    assert sent(other) == [b"1", b"2", b"3", b"7"]
    other.store()
    assert other.note(0, 8) == ""
    other.take(keyed(8))
    assert sent(other)[-1] == b"8"


def test_revoked_partition_drops_its_kept_messages(lane: MemoryLane):
    lane.take(keyed(1))
    admit(lane, ALL_KEYS_PERCENT)
    lane.take(keyed(2), back(lane, 0, 3), keyed(4))
    lane.work.on_revoked([0])
    assert lane.note(0, 2) == f"p={1 << LOT:x}", "its new owner learns which lots are closed"
    lane.take(back(lane, 1, 5))
    assert sent(lane) == [b"1", b"2"]


def test_no_message_is_held_before_earlier_ones_are_stored(tmp_path: Path):
    lane = opened(tmp_path, plan())
    lane.take(keyed(1))
    admit(lane, 0)
    lane.take(keyed(2))
    lane.poll()
    assert (sent(lane), held(lane)) == ([b"1"], [])
    lane.store()
    lane.poll()
    assert [record["value"] for record in held(lane)] == [b"2"]
