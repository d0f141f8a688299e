"""Sources of type table: where a feed begins and continues, and how a change becomes an event."""

import json
import re
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from dataplane.ingest.feed import group_settings
from dataplane.ingest.feeds import wanted
from dataplane.ingest.table_feed import FeedPosition, TableFeedKey, event_of, started
from dataplane.spec import parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.pinned_tables import ChangeLog, TableChange
from dataplane.tables.query_protocol import changed_at
from dataplane.tables.records import PipeRecord, PlanRecord

WANT = TableFeedKey("p", "users", "t1", "users", "now", "")
VERSION = 1_838_879_539_456_000_384
LOG = ChangeLog("topic-1", 0, 50)


def change(changed: int, row: bytes | None = b'{"n":1}', position: int | None = None) -> TableChange:
    return TableChange(changed if position is None else position, changed, "u-1", VERSION, row)


def test_feed_runs_for_the_newest_revision_with_traffic():
    made = ControlTable()
    for revision, table in ((1, "old"), (2, "users")):
        sources = {"web": {}, "users": {"type": "table", "table": table, "from": "snapshot", "prefix": "u-"}}
        spec = {"sources": sources, "destinations": {"crm": {"url": "https://crm.example/"}}}
        made.apply(PlanRecord("p", revision, parse_pipe_spec(spec)))
    made.apply(PipeRecord("p", 1, "t1", "orders", "c1", "active", [(1, 0), (2, 100)]))
    assert wanted(made, {}) == {TableFeedKey("p", "users", "t1", "users", "snapshot", "u-")}
    made.apply(PipeRecord("p", 2, "t1", "orders", "c1", "closed", [(2, 100)]))
    assert wanted(made, {}) == set()


def test_rows_are_stamped_only_for_revisions_that_read_their_table():
    """An older revision of the ramp may write the table that the newer one reads."""
    specs = {}
    for revision, (table, prefix) in enumerate([("old", ""), ("users", "u-"), ("users", ""), ("users", "")], 1):
        source = {"type": "table", "table": table, "from": "snapshot", "prefix": prefix}
        spec = {"sources": {"users": source}, "destinations": {"crm": {"url": "https://crm.example/"}}}
        specs[revision] = parse_pipe_spec(spec)
    specs[5] = parse_pipe_spec({"sources": {"users": {}}, "destinations": {"crm": {"url": "https://crm.example/"}}})
    sources = {revision: spec.sources["users"] for revision, spec in specs.items()}
    assert {revision for revision, source in sources.items() if WANT.reads(source)} == {3, 4}
    assert {revision for revision, source in sources.items() if WANT._replace(prefix="u-").reads(source)} == {2}


def test_source_begins_only_when_the_host_has_the_whole_topic():
    assert started("now", 51, LOG) is None
    assert started("now", 40, LOG) == FeedPosition("topic-1", 40, 40)
    assert started("snapshot", 40, LOG) == FeedPosition("topic-1", 40, 0)


def test_first_position_of_now_gives_only_later_changes():
    cursor = FeedPosition("topic-1", 40, 40).cursor(LOG, is_first=True)
    assert cursor is not None
    assert cursor.next == 40
    assert cursor.wants(change(40))
    assert not cursor.wants(change(39, position=45)), "repeated, but it has not changed"


def test_snapshot_gives_rows_and_later_removals():
    cursor = FeedPosition("topic-1", 40, 0).cursor(LOG, is_first=True)
    assert cursor is not None
    assert cursor.next == 0
    assert cursor.wants(change(3))
    assert not cursor.wants(change(3, None))
    assert cursor.wants(change(41, None))


@pytest.mark.parametrize("offset", [20, 40, 45])
def test_feed_that_continues_skips_no_row_that_was_moved_meanwhile(offset: int):
    cursor = FeedPosition("topic-1", 40, offset).cursor(LOG, is_first=False)
    assert cursor is not None
    assert cursor.next == offset
    assert cursor.wants(change(3, position=48)), "it may have been moved before the snapshot came to it"


def test_feed_waits_for_a_host_that_lacks_earlier_records():
    assert FeedPosition("topic-1", 40, 51).cursor(LOG, is_first=False) is None
    assert FeedPosition("topic-1", 51, 3).cursor(LOG, is_first=False) is None


def test_recreated_topic_is_read_from_its_beginning_with_removals():
    cursor = FeedPosition("topic-0", 40, 45).cursor(LOG, is_first=False)
    assert cursor is not None
    assert cursor.next == 0
    assert cursor.wants(change(0, None))


def test_rows_of_an_earlier_topic_are_read_again_after_a_kill():
    log = ChangeLog("topic-2", 1_000, 1_050)
    position = FeedPosition("topic-2", 40, 0)
    cursor = position.cursor(log, is_first=True)
    assert cursor is not None
    cursor.next = 700
    assert position.at(cursor, log).offset == 0
    cursor.next = 1_020
    assert position.at(cursor, log) == FeedPosition("topic-2", 40, 20)


def test_position_is_committed_with_the_id_of_its_topic():
    position = FeedPosition("topic-1", 40, 45)
    assert FeedPosition.committed(position.partition()) == position
    assert FeedPosition.committed(TopicPartition("penstock.lookups", 0, -1001)) is None


@pytest.mark.parametrize("metadata", ["", "set by hand", "{}", '["topic-1"]', '["topic-1","x"]'])
def test_offset_that_was_set_with_other_tools_is_one_of_an_unknown_topic(metadata: str):
    position = FeedPosition.committed(TopicPartition("penstock.lookups", 0, 45, metadata))
    assert position == FeedPosition("", 0)
    cursor = position.cursor(LOG, is_first=False)
    assert cursor is not None
    assert cursor.next == 0


def test_table_or_prefix_that_changes_begins_in_another_group():
    groups = [WANT, WANT._replace(table="old"), WANT._replace(prefix="eu-"), WANT._replace(prefix="us/\u00e9 ")]
    names = [group_settings(want, *want.group_parts)["group.id"] for want in groups]
    assert names[:2] == ["penstock.p.users.users", "penstock.p.users.old"]
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"penstock\.p\.users\.users\.[0-9a-f]{16}", name) for name in names[2:])


@pytest.mark.parametrize(("row", "operation"), [(b'{"n":1}', "upsert"), (None, "delete")])
def test_event_has_table_key_and_row_as_streams_have_them(row: bytes | None, operation: str):
    event = event_of(change(3, row), WANT, "tab_1")
    body: dict[str, Any] = json.loads(event.body)
    assert body == {
        "table": "users",
        "key": "u-1",
        "operation": operation,
        "row": None if row is None else {"n": 1},
        "version": str(VERSION),
        "changed_at": changed_at(VERSION),
    }
    assert event.time == body["changed_at"]
    assert event.origin is not None
    assert event.origin.key == "u-1"


def test_id_names_the_version_of_the_row_and_not_the_record():
    ids = {event_of(one, WANT, "tab_1").origin for one in (change(3), change(3, position=48))}
    assert len(ids) == 1
    other = change(3)._replace(version=VERSION + 1)
    others = [event_of(other, WANT, "tab_1"), event_of(change(3), WANT, "tab_2")]
    others.append(event_of(change(3), WANT._replace(pipe="q"), "tab_1"))
    assert len({one.origin for one in others} | ids) == 4
