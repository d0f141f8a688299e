"""Look-up tables on disk: versions never go back, readers see one state, offsets are stored with the rows."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.tables import lookup_store
from dataplane.tables.lookup_stats import TableStats
from dataplane.tables.lookup_store import LookupsFullError, LookupStore, StorePosition
from dataplane.tables.lookups import (
    MAX_KEY_BYTES,
    TableRecord,
    encode_row,
    encode_table,
    is_row,
    row_key,
    table_key,
)
from dataplane.tables.pinned_tables import VERSION, count_rows
from localbox.settings import ROOT
from tests.support.full_disk import full_disk

OLD, NEW = "tab_01", "tab_02"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LookupStore]:
    opened = LookupStore(tmp_path)
    yield opened
    opened.close()


def row(version: int, text: str | None, key: str = "k", table: str = OLD) -> tuple[bytes, bytes]:
    return row_key(table, key), encode_row(version, None if text is None else text.encode())


def table(version: int, table_id: str = OLD, **changes: str) -> tuple[bytes, bytes]:
    record = TableRecord(table_id, version, "ten", "shops", changes.get("state", "live"))  # type: ignore[arg-type]
    return table_key(table_id), encode_table(record)


def seen(store: LookupStore, key: str = "k", table_id: str = OLD) -> object:
    pinned = store.pin()
    try:
        return pinned.row(table_id, key)
    finally:
        pinned.close()


def named(store: LookupStore) -> tuple[str, str] | None:
    pinned = store.pin()
    try:
        found = pinned.table("ten", "shops")
        return (found.table, found.state) if found else None
    finally:
        pinned.close()


def test_row_is_found_by_its_key_and_the_newest_version_wins(store: LookupStore):
    assert store.apply([row(1, '{"a":1}'), row(3, '{"a":3}'), row(2, '{"a":2}')], 3) == 2
    assert seen(store) == {"a": 3}
    assert seen(store, "another") is None


def test_removed_row_is_gone_and_an_older_record_does_not_restore_it(store: LookupStore):
    store.apply([row(1, '{"a":1}'), row(4, None), row(2, '{"a":2}')], 3)
    assert seen(store) is None
    store.apply([row(5, '{"a":5}')], 4)
    assert seen(store) == {"a": 5}


def test_pinned_reader_sees_the_state_at_its_start(store: LookupStore):
    store.apply([row(1, '{"a":1}')], 1)
    pinned = store.pin()
    store.apply([row(2, '{"a":2}'), row(2, '{"b":1}', "later")], 3)
    assert (pinned.row(OLD, "k"), pinned.row(OLD, "later")) == ({"a": 1}, None)
    pinned.close()
    assert (seen(store), seen(store, "later")) == ({"a": 2}, {"b": 1})


def test_returned_row_is_a_copy_that_its_caller_may_change(store: LookupStore):
    store.apply([row(1, '{"a":[1]}')], 1)
    pinned = store.pin()
    pinned.row(OLD, "k")["a"].append(2)
    assert pinned.row(OLD, "k") == {"a": [1]}
    pinned.close()


def test_rows_and_offset_survive_a_restart(tmp_path: Path):
    first = LookupStore(tmp_path)
    first.begin_topic("id-1")
    first.apply([row(1, '{"a":1}'), table(1)], 42)
    first.close()
    again = LookupStore(tmp_path)
    assert again.position() == StorePosition("id-1", 42)
    assert (seen(again), named(again)) == ({"a": 1}, (OLD, "live"))
    again.close()


def test_recreated_topic_is_read_from_its_beginning_and_known_rows_stay(store: LookupStore):
    assert store.position() == StorePosition("", 0)
    store.begin_topic("id-1")
    store.apply([row(7, '{"a":7}')], 99)
    store.begin_topic("id-2")
    assert store.position() == StorePosition("id-2", 0)
    store.apply([row(6, '{"a":6}')], 1)
    assert seen(store) == {"a": 7}


def test_removed_table_loses_its_rows_and_its_name_may_be_reused(store: LookupStore):
    store.apply([row(1, "{}"), row(1, '{"n":1}', table=NEW), table(1)], 3)
    store.apply([table(2, state="removed")], 4)
    assert (seen(store), named(store)) == (None, (OLD, "removed"))
    store.apply([table(1, NEW)], 5)
    assert (seen(store, table_id=NEW), named(store)) == ({"n": 1}, (NEW, "live"))


def test_reading_all_records_again_gives_the_same_state(store: LookupStore):
    records = [row(1, "{}"), row(2, '{"a":2}', "other"), table(2), table(3, state="removed"), table(1, NEW)]
    store.apply(records, 5)
    store.apply(records, 5)
    assert (seen(store), seen(store, "other"), named(store)) == (None, None, (NEW, "live"))


def test_records_of_a_later_release_are_ignored(store: LookupStore):
    assert store.apply([(row_key(OLD, "k"), b'{"version":"new"}'), (table_key(OLD), b"[]")], 2) == 0
    assert store.position().offset == 2


@pytest.mark.parametrize("key", ["x" * 2_000, "\ud800"])
def test_impossible_key_finds_no_row(store: LookupStore, key: str):
    assert seen(store, key) is None


def test_longest_key_fits(store: LookupStore):
    key = "\u00e9" * (MAX_KEY_BYTES // 2)
    store.apply([row(1, '{"a":1}', key, "tab_" + "0" * 20)], 1)
    assert seen(store, key, "tab_" + "0" * 20) == {"a": 1}


def test_keys_may_contain_the_separator(store: LookupStore):
    store.apply([row(1, '{"a":1}', "a/b/c")], 1)
    assert is_row(row_key(OLD, "a/b/c"))
    assert seen(store, "a/b/c") == {"a": 1}


def test_full_store_rejects_the_whole_batch_and_stays_readable(tmp_path: Path):
    small = LookupStore(tmp_path, map_bytes=256 * 1024)
    small.apply([row(1, '{"a":1}')], 1)
    with pytest.raises(LookupsFullError, match="262144 bytes"):
        small.apply([row(1, '{"t":"' + "x" * 8_000 + '"}', str(n)) for n in range(100)], 101)
    assert (seen(small), seen(small, "0"), small.position().offset) == ({"a": 1}, None, 1)
    small.close()


CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.one_of(st.none(), st.integers(0, 3))), max_size=30
)


@settings(max_examples=30, deadline=None)
@given(batches=st.lists(CHANGES, max_size=4))
def test_highest_version_of_each_key_wins_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int, int | None]]]
):
    store = LookupStore(tmp_path_factory.mktemp("lookups"))
    model: dict[str, tuple[int, int | None]] = {}
    offset = 0
    for batch in batches:
        pinned, before = store.pin(), dict(model)
        for key, version, number in batch:
            if version > model.get(key, (0, None))[0]:
                model[key] = (version, number)
        offset += len(batch)
        records = [row(version, None if n is None else f'{{"n":{n}}}', key) for key, version, n in batch]
        store.apply(records, offset)
        assert {key: pinned.row(OLD, key) for key in "abc"} == {key: _expected(before, key) for key in "abc"}
        pinned.close()
    assert {key: seen(store, key) for key in "abc"} == {key: _expected(model, key) for key in "abc"}
    assert store.position().offset == offset
    store.close()


def _expected(model: dict[str, tuple[int, int | None]], key: str) -> dict[str, int] | None:
    number = model.get(key, (0, None))[1]
    return None if number is None else {"n": number}


def test_store_on_a_full_disk_reports_it_and_opens_once_there_is_room(tmp_path: Path):
    """In particular it maps no pages for which there is no room: touching one would end the process."""
    with full_disk(tmp_path) as disk:
        with pytest.raises(OSError, match=r"No space left|Not a directory"):
            LookupStore(disk.folder)
        disk.make_room()
        store = LookupStore(disk.folder)
        assert store.apply([row(1, '{"a":1}')], 1) == 1
        store.close()


def test_batch_refused_by_a_full_disk_is_stored_once_there_is_room(tmp_path: Path):
    store = LookupStore(tmp_path)
    store.apply([row(1, '{"a":1}')], 1)
    large = json.dumps({"a": "x" * 500_000})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, before[1]))  # briefly, for every file of this process
    try:
        with pytest.raises(OSError, match=r".+"):
            store.apply([row(2, large)], 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (seen(store), store.position().offset) == ({"a": 1}, 1), "all or nothing"
    assert store.apply([row(2, large)], 2) == 1
    store.close()


def figures(store: LookupStore, table_id: str = OLD) -> TableStats | None:
    pinned = store.pin()
    try:
        return pinned.stats(table_id)
    finally:
        pinned.close()


def test_rows_are_counted_as_they_are_written_replaced_and_removed(store: LookupStore):
    store.recount()
    store.apply([row(1, "{}"), row(2, "{}", "b"), row(3, "{}", "b"), row(1, "{}", table=NEW)], 4)
    assert (figures(store), figures(store, NEW)) == (TableStats(2, 3), TableStats(1, 1))
    store.apply([row(4, None), row(2, "{}", "b"), row(5, None, "never stored")], 7)
    assert figures(store) == TableStats(1, 5)
    store.apply([row(6, "{}"), table(9, state="removed")], 9)
    assert figures(store) == TableStats(0, 0)
    assert figures(store, NEW) == TableStats(1, 1)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.booleans()), max_size=12),
    st.lists(st.integers(1, 12), max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_counted_figures_equal_those_of_a_scan(writes: list[tuple[str, int, bool]], cuts: list[int]):
    with tempfile.TemporaryDirectory() as folder:
        store = LookupStore(Path(folder))
        store.recount()
        edges = [0, *sorted(cut for cut in cuts if cut < len(writes)), len(writes)]
        for first, last in pairwise(edges):
            store.apply([row(v, "{}" if live else None, key) for key, v, live in writes[first:last]], last)
        counted = figures(store)
        with store._env.begin(write=True) as txn:
            txn.delete(b"stats-offset", db=store._meta)
        store.recount()
        assert counted == figures(store)
        store.close()


def test_rows_of_an_earlier_release_are_counted_before_figures_are_shown(store: LookupStore):
    store.recount()
    store.apply([row(1, "{}")], 1)
    with store._env.begin(write=True) as txn:  # as a replicator of a release that knows no figures
        txn.put(row_key(OLD, "b"), VERSION.pack(7) + b"{}", db=store._rows)
        txn.put(b"offset", VERSION.pack(2), db=store._meta)
    assert figures(store) is None
    store.apply([row(8, "{}", "c")], 3)
    assert figures(store) is None, "a change of unknown figures does not make them known"
    store.recount()
    assert figures(store) == TableStats(3, 8)
    store.apply([row(9, None, "c")], 4)
    assert figures(store) == TableStats(2, 9)


def test_process_opens_the_store_while_rows_are_counted(
    store: LookupStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opens = "import sys; from pathlib import Path; from dataplane.tables.lookup_store import LookupStore; "
    command = [sys.executable, "-c", f"{opens} LookupStore(Path(sys.argv[1])).close()", str(tmp_path)]

    def count_while_another_process_opens(txn: Any, db: Any) -> dict[bytes, TableStats]:
        subprocess.run(command, check=True, timeout=30, env=os.environ | {"PYTHONPATH": str(ROOT)})
        return count_rows(txn, db)

    monkeypatch.setattr(lookup_store, "count_rows", count_while_another_process_opens)
    store.apply([row(1, "{}")], 1)
    store.recount()
    assert figures(store) == TableStats(1, 1)


def test_figures_stay_known_when_a_topic_is_read_from_its_beginning(store: LookupStore):
    store.recount()
    store.apply([row(5, "{}")], 5)
    store.begin_topic("again")
    store.apply([row(5, "{}")], 1)
    assert figures(store) == TableStats(1, 5)


def page(store: LookupStore, **given: Any) -> tuple[list[str], str]:
    limits: dict[str, Any] = {"prefix": "", "after": "", "most_rows": 100, "most_bytes": 10_000, "most_read": 1_000}
    pinned = store.pin()
    try:
        found = pinned.stored_rows(OLD, **limits | given)
    finally:
        pinned.close()
    return [one.key for one in found.rows], found.after


def test_rows_by_prefix_are_those_of_the_table_in_the_order_of_their_keys(store: LookupStore):
    keys = ["a", "a/1", "a0", "z", "é", "\U0001f600"]
    store.apply([row(1, "{}", key) for key in reversed(keys)] + [row(1, "{}", "a2", NEW)], 9)
    assert page(store) == (keys, "")
    assert page(store, prefix="a") == (["a", "a/1", "a0"], "")
    assert page(store, prefix="a", after="a/1") == (["a0"], "")
    assert page(store, prefix="b", after="a") == ([], "")
    assert page(store, prefix="a", after="b") == ([], "")


def test_pages_are_bounded_by_rows_bytes_and_entries_and_continue_after_their_last_key(store: LookupStore):
    store.apply([row(1, '{"n":1}', f"k{n}") for n in range(6)], 6)
    store.apply([row(2, None, "k1"), row(2, None, "k2")], 8)
    assert page(store, most_rows=2) == (["k0", "k3"], "k3")
    assert page(store, most_rows=2, after="k3") == (["k4", "k5"], "")
    assert page(store, most_bytes=1) == (["k0"], "k0")
    assert page(store, most_read=2) == (["k0"], "k1")
    assert page(store, most_read=1, after="k0") == ([], "k1"), "only removed rows were read, and rows follow"


def test_confirmation_is_the_time_that_it_was_given(store: LookupStore, tmp_path: Path):
    assert store.confirmed_us() is None
    store.confirm(1_700_000_000_123_456)
    assert store.confirmed_us() == 1_700_000_000_123_456
    other = LookupStore(tmp_path / "other")
    assert other.confirmed_us() is None
    other.close()
