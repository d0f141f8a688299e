"""The control topic as a table: the highest version wins in any order, and a snapshot restores the table."""

import errno
import json
import random
import time
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import OFFSET_BEGINNING
from hypothesis import given
from hypothesis import strategies as st

from dataplane.schemas.types import SchemaType
from dataplane.spec import parse_pipe_spec
from dataplane.tables.control import MAX_SNAPSHOT_AGE_S, SNAPSHOT_EVERY_S, ControlReader, ControlTable, TableSnapshot
from dataplane.tables.optional_files import CALM_S, OptionalFiles
from dataplane.tables.records import (
    KINDS,
    ApiKeyRecord,
    CellRecord,
    DestinationRecord,
    EventTypesRecord,
    PipeRecord,
    PlanRecord,
    Record,
    RegisteredSchema,
    StopRecord,
    SubjectRecord,
    TopicRecord,
    WebhookRecord,
    decode_record,
    encode_record,
    record_key,
)

SPEC = parse_pipe_spec(
    {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "http://crm.example/"}}}
)
RECORDS: list[Record] = [
    CellRecord("c1", 3, 1, {"process": 2}, {"ingest": TopicRecord("penstock.c1.ingest.g1", 1, 4, "id")}),
    PipeRecord("p", 2, "t", "orders", "c1", "active", [(8, 5), (7, 95)], {9: 8}),
    PlanRecord("p", 7, SPEC),
    ApiKeyRecord("ab" * 32, 1, "p", "shop"),
    DestinationRecord("p", "crm", 4, "active", SPEC.destinations["crm"], ["token"], "credential", 5),
    StopRecord("c1", 1_790_000_000_000, "incarnation"),
    SubjectRecord("t", "orders-value", 4, [RegisteredSchema(7, 2, SchemaType.AVRO, "cd" * 32, '"string"')]),
    EventTypesRecord("p", "shop", 3, "field:type", {"order": "orders-value"}),
    WebhookRecord("p", "shop", 2, "github", ["sealed"], ["x-extra"]),
]


def filled(*records: Record) -> ControlTable:
    table = ControlTable()
    for record in records:
        table.apply(record)
    return table


@pytest.mark.parametrize("record", RECORDS, ids=record_key)
def test_record_survives_a_json_round_trip(record: Record):
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("record", RECORDS, ids=record_key)
def test_field_of_the_next_release_is_ignored(record: Record):
    value = json.loads(encode_record(record)) | {"of_the_next_release": 1}
    assert decode_record(json.dumps(value).encode()) == record


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=12), st.randoms())
def test_highest_version_wins_in_any_order(versions: list[tuple[int, bool]], chance: random.Random):
    by_version = dict(versions)
    records = [ApiKeyRecord("d", version, "p", "shop", revoked) for version, revoked in by_version.items()] * 2
    chance.shuffle(records)
    known = filled(*records).key("d")
    assert known is not None
    assert (known.version, known.revoked) == (max(by_version), by_version[max(by_version)])


def test_equal_or_older_version_changes_nothing():
    table = filled(ApiKeyRecord("d", 2, "p", "shop"))
    assert not table.apply(ApiKeyRecord("d", 2, "q", "shop"))
    assert not table.apply(ApiKeyRecord("d", 1, "q", "shop"))
    assert table.changes == 1
    assert table.apply(ApiKeyRecord("d", 3, "p", "shop", revoked=True))


def test_listeners_receive_only_the_existing_record_and_its_replacements():
    table, heard = filled(ApiKeyRecord("d", 2, "p", "shop")), []
    table.on_change(lambda record: heard.append(record.version))
    table.apply(ApiKeyRecord("d", 1, "p", "shop"))
    table.apply(ApiKeyRecord("d", 3, "p", "shop"))
    assert heard == [2, 3]


def test_record_of_each_kind_is_found_by_its_own_key():
    table = filled(*RECORDS)
    found = [
        table.cell("c1"),
        table.pipe("p"),
        table.plan("p", 7),
        table.key("ab" * 32),
        table.destination("p", "crm"),
        table.stop("c1"),
        table.subject("t", "orders-value"),
        table.event_types("p", "shop"),
        table.webhook("p", "shop"),
    ]
    assert found == RECORDS
    assert (table.subject("t2", "orders-value"), table.event_types("p", "other")) == (None,) * 2
    assert (table.cell("c2"), table.plan("p", 8), table.key("x"), table.destination("p", "lake")) == (None,) * 4


def test_snapshot_restores_the_table(tmp_path: Path):
    table = filled(*RECORDS)
    table.offset = 42
    table.save(tmp_path / "data" / "control.json")
    again = ControlTable()
    assert 0 <= again.load(tmp_path / "data" / "control.json") < 60
    assert (again.offset, list(again)) == (42, list(table))
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["control.json"], "no temporary file is left"


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"offset":1}', b"\xff"])
def test_missing_or_broken_snapshot_is_ignored(tmp_path: Path, content: bytes | None):
    path = tmp_path / "control.json"
    if content is not None:
        path.write_bytes(content)
    table = ControlTable()
    assert table.load(path) == -1.0
    assert len(table) == 0


def snapshot_of_age(path: Path, age_s: float) -> None:
    now = time.time()
    path.write_bytes(msgspec.json.encode(TableSnapshot(42, now - age_s, list(RECORDS), KINDS)))


@pytest.mark.parametrize(
    ("age_s", "start"),
    [
        pytest.param(60, 42, id="a minute old: read on"),
        pytest.param(MAX_SNAPSHOT_AGE_S - 60, 42, id="just young enough"),
        pytest.param(MAX_SNAPSHOT_AGE_S + 60, OFFSET_BEGINNING, id="older than 12 h: read it all"),
    ],
)
def test_reader_starts_from_its_snapshot_unless_that_is_too_old(tmp_path: Path, age_s: float, start: int):
    path = tmp_path / "control.json"
    snapshot_of_age(path, age_s)
    reader = ControlReader("127.0.0.1:1", path)  # no broker at this address
    assert [partition.offset for partition in reader._consumer.assignment()] == [start]
    assert len(reader.table) == len(RECORDS), "usable immediately, with or without a broker"
    assert reader.refresh() == 0
    reader.close()


def test_snapshot_whose_writer_ignored_a_kind_that_we_know_triggers_a_full_read(tmp_path: Path):
    path = tmp_path / "control.json"
    path.write_bytes(msgspec.json.encode(TableSnapshot(42, time.time(), list(RECORDS), KINDS[:-1])))
    reader = ControlReader("127.0.0.1:1", path)
    assert [partition.offset for partition in reader._consumer.assignment()] == [OFFSET_BEGINNING]
    assert len(reader.table) == len(RECORDS), "usable immediately nevertheless"
    reader.close()


def test_record_of_a_kind_of_the_next_release_is_ignored():
    reader = ControlReader("127.0.0.1:1")
    assert not reader._take(5, b'{"kind":"of-the-next-release","version":1}')
    assert not reader._take(6, b"\xff\xfe")
    assert not reader._take(7, None)
    assert reader._take(8, encode_record(RECORDS[0]))
    assert reader.table.offset == 9
    reader.close()


def test_failed_snapshot_stops_no_reader_and_is_written_once_the_disk_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    (tmp_path / "blocked").write_bytes(b"")
    files, path = OptionalFiles(), tmp_path / "blocked" / "data" / "control.json"
    reader = ControlReader("127.0.0.1:1", path, files)
    reader._take(0, encode_record(RECORDS[0]))
    now_s[0] += SNAPSHOT_EVERY_S
    for _ in range(3):
        reader.refresh()
    assert files.trouble == "the snapshot of the control table: Not a directory"
    (tmp_path / "blocked").unlink()
    reader.refresh()
    assert not path.exists(), "not before the next one is due"
    now_s[0] += SNAPSHOT_EVERY_S
    reader.refresh()
    assert path.exists()
    now_s[0] += CALM_S
    assert files.trouble == ""
    reader.close()


def test_snapshot_cut_off_by_a_full_disk_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def half(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="No space left"):
        filled(*RECORDS).save(tmp_path / "control.json")
    assert list(tmp_path.iterdir()) == []
