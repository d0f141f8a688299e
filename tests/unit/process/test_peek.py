"""Peek steps show copies in the live tail, with the node and the step's name; no message waits for them."""

from pathlib import Path
from typing import Any

from dataplane.ledger.meta import read_meta
from dataplane.process.work import ProcessWork
from dataplane.runtime.lookups import Lookups
from tests.support.memory_lane import MemoryLane
from tests.support.process_lane import arrived, egress, opened, plan

PEEK = {"op": "peek", "name": "here", "share": 1}
CAST = {"op": "cast", "path": "n", "to": "int"}


def shown(lane: MemoryLane) -> list[tuple[str, bytes, bytes]]:
    """Return (node, name, body) of each copy."""
    records: list[dict[str, Any]] = lane.producer.of(lane.cell.topics["tail"].name)
    found = [(dict(record["headers"][1:]), record) for record in records]
    return [(named["penstock-node"].decode(), named["penstock-peek"], record["value"]) for named, record in found]


def test_message_is_shown_as_it_is_at_the_peek_step_and_processed_further(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[PEEK, CAST], transform={"crm": [PEEK]}))
    lane.take(arrived(1, b'{"n":"7"}'))
    assert shown(lane) == [("normalize", b"here", b'{"n":"7"}'), ("transform:crm", b"here", b'{"n":7}')]
    (record,) = lane.producer.of(lane.cell.topics["tail"].name)[:1]
    assert (record["key"], read_meta(record["headers"]).pipe) == (b"p", "p")
    assert [sent["value"] for sent in egress(lane)] == [b'{"n":7}']


def test_message_that_dies_after_the_peek_is_shown_too(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[PEEK, CAST]))
    lane.take(arrived(1, b'{"n":"seven"}'))
    assert shown(lane) == [("normalize", b"here", b'{"n":"seven"}')]


def test_each_child_of_an_explode_is_shown_once(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[{"op": "explode", "path": "$"}, PEEK]))
    lane.take(arrived(1, b"[1,2]"))
    assert [body for _, _, body in shown(lane)] == [b"1", b"2"]


def test_copy_does_not_delay_its_message(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[PEEK]))
    lane.take(arrived(1))
    waiting = len(lane.producer.waiting)
    assert (len(shown(lane)), waiting) == (1, 1)  # only the egress record
    lane.store()
    assert lane.unsettled() == 0


def test_cell_of_an_earlier_release_without_a_tail_topic_shows_nothing_and_works(tmp_path: Path):
    lane = opened(tmp_path, plan(normalize=[PEEK]))
    del lane.cell.topics["tail"]
    lane.work = ProcessWork(lane, Lookups(tmp_path / "again"))
    lane.take(arrived(1))
    assert [sent["value"] for sent in egress(lane)] == [b"{}"]
    assert len(lane.producer.sent) == 1
