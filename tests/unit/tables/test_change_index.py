"""Index of changes: each row once, at its last change; a reader that continues at its position misses nothing."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.tables.lookup_store import LookupsFullError, LookupStore, StorePosition
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from dataplane.tables.pinned_tables import OFFSET, TOPIC_ID, VERSION, ChangeLog

TABLE, OTHER = "tab_01", "tab_02"
Found = list[tuple[int, str, str | None]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LookupStore]:
    opened = LookupStore(tmp_path)
    yield opened
    opened.close()


def row(key: str, version: int, text: str | None = "{}", table: str = TABLE) -> tuple[bytes, bytes]:
    return row_key(table, key), encode_row(version, None if text is None else text.encode())


def changes(store: LookupStore, first: int = 0, table: str = TABLE, **limits: Any) -> tuple[Found, int]:
    pinned = store.pin()
    try:
        given: dict[str, Any] = {"prefix": "", "most_rows": 100, "most_bytes": 10_000, "most_read": 1_000, **limits}
        found = pinned.changes(table, first=first, **given)
        rows = [(one.position, one.key, one.row.decode() if one.row is not None else None) for one in found.changes]
        return rows, found.next_position
    finally:
        pinned.close()


def changed(store: LookupStore) -> dict[str, int]:
    """Return the position of each row's last change."""
    pinned = store.pin()
    try:
        found = pinned.changes(TABLE, prefix="", first=0, most_rows=100, most_bytes=10_000, most_read=100)
        return {one.key: one.changed for one in found.changes}
    finally:
        pinned.close()


def log_of(store: LookupStore) -> ChangeLog | None:
    pinned = store.pin()
    try:
        return pinned.change_log()
    finally:
        pinned.close()


def write_as_an_earlier_release(store: LookupStore, key: str, version: int, next_offset: int) -> None:
    with store._env.begin(write=True) as txn:
        txn.put(row_key(TABLE, key), VERSION.pack(version) + b"{}", db=store._rows)
        txn.put(OFFSET, VERSION.pack(next_offset), db=store._meta)


def test_each_row_is_found_once_at_its_last_change(store: LookupStore):
    store.apply([row("a", 1), row("b", 1), row("c", 1, table=OTHER), row("a", 2, '{"n":2}')], 4)
    assert changes(store) == ([(1, "b", "{}"), (3, "a", '{"n":2}')], 4)
    assert changes(store, 2) == ([(3, "a", '{"n":2}')], 4)
    assert changes(store, 4) == ([], 4)
    assert changes(store, table=OTHER) == ([(2, "c", "{}")], 3)


def test_removed_row_is_a_change(store: LookupStore):
    store.apply([row("a", 1), row("a", 2, None)], 2)
    assert changes(store) == ([(1, "a", None)], 2)


def test_repeated_and_late_records_move_a_row_and_are_no_changes(store: LookupStore):
    store.apply([row("a", 5), row("b", 1), row("a", 5), row("a", 3)], 4)
    assert changes(store) == ([(1, "b", "{}"), (3, "a", "{}")], 4)
    assert changed(store) == {"a": 0, "b": 1}


def test_position_of_a_row_is_that_of_the_record_that_compaction_leaves(tmp_path: Path):
    """The topic of the second host has lost the first record of the row, which a later one repeats."""
    positions = []
    for name, records, offsets in (
        ("whole", [row("a", 5), row("b", 1), row("a", 5)], [0, 1, 2]),
        ("compacted", [row("b", 1), row("a", 5)], [1, 2]),
    ):
        store = LookupStore(tmp_path / name)
        store.apply(records, 3, offsets)
        positions.append(changes(store))
        store.close()
    assert positions[0] == positions[1]


def test_log_that_lost_its_end_hides_no_row_from_a_snapshot(store: LookupStore):
    store.apply([row("a", 1), row("b", 1)], 2)
    store.apply([row("c", 1)], 2)
    assert sorted(key for _, key, _ in changes(store)[0]) == ["a", "b", "c"]
    store.apply([row("b", 2)], 2)
    assert sorted(key for _, key, _ in changes(store)[0]) == ["a", "b", "c"]


def test_offsets_with_gaps_are_positions(store: LookupStore):
    store.apply([row("a", 1), row("b", 1)], 90, [3, 88])
    assert changes(store) == ([(3, "a", "{}"), (88, "b", "{}")], 89)
    assert log_of(store) == ChangeLog("", 0, 90)


def test_reading_is_bounded_and_continues_at_the_next_entry(store: LookupStore):
    store.apply([row(key, 1) for key in ("a1", "b1", "a2", "b2")], 4)
    assert changes(store, most_rows=1) == ([(0, "a1", "{}")], 1)
    assert changes(store, most_bytes=1) == ([(0, "a1", "{}")], 1)
    assert changes(store, prefix="b", most_read=1) == ([], 1)
    assert changes(store, prefix="b") == ([(1, "b1", "{}"), (3, "b2", "{}")], 4)


def test_removed_table_has_no_changes(store: LookupStore):
    gone = table_key(TABLE), encode_table(TableRecord(TABLE, 9, "ten", "users", "removed"))
    store.apply([row("a", 1), row("b", 1, table=OTHER), gone], 3)
    assert changes(store) == ([], 0)
    assert changes(store, table=OTHER) == ([(1, "b", "{}")], 2)


def test_rows_of_an_earlier_release_are_indexed_when_the_topic_was_read_again(store: LookupStore):
    store.begin_topic("id-1")
    assert store.index_changes() == StorePosition("id-1", 0)
    store.apply([row("a", 1), row("b", 1)], 2)
    write_as_an_earlier_release(store, "c", 1, 3)
    assert log_of(store) is None
    store.apply([row("d", 1)], 4)
    assert log_of(store) is None, "an index with a gap is not continued"
    assert store.index_changes() == StorePosition("id-1", 2), "not from the beginning"
    store.apply([row("c", 1)], 3)
    assert log_of(store) is None
    store.apply([row("d", 1), row("a", 2)], 5)
    assert log_of(store) == ChangeLog("id-1", 0, 5)
    assert [change[:2] for change in changes(store)[0]] == [(1, "b"), (2, "c"), (3, "d"), (4, "a")]


def test_row_is_indexed_of_which_compaction_has_left_only_a_late_record(store: LookupStore):
    store.begin_topic("id-1")
    store.index_changes()
    write_as_an_earlier_release(store, "a", 7, 5)
    store.index_changes()
    store.apply([row("a", 3)], 5)
    assert changes(store) == ([(4, "a", "{}")], 5)


def test_store_of_an_earlier_release_is_indexed_from_the_beginning(store: LookupStore):
    with store._env.begin(write=True) as txn:
        txn.put(TOPIC_ID, b"id-1", db=store._meta)
    write_as_an_earlier_release(store, "a", 7, 5)
    assert store.index_changes() == StorePosition("id-1", 0)
    store.apply([row("a", 7)], 5, [4])
    assert changes(store) == ([(4, "a", "{}")], 5)
    assert log_of(store) == ChangeLog("id-1", 0, 5)


def test_positions_grow_when_the_topic_is_recreated(store: LookupStore):
    store.begin_topic("id-1")
    store.index_changes()
    store.apply([row("a", 1), row("b", 1)], 2)
    store.begin_topic("id-2")
    store.index_changes()
    assert log_of(store) == ChangeLog("id-2", 2, 2)
    store.apply([row("a", 1), row("b", 2)], 2)
    assert changes(store) == ([(2, "a", "{}"), (3, "b", "{}")], 4)
    assert changed(store) == {"a": 0, "b": 3}


def test_index_is_complete_also_if_an_earlier_release_reads_the_topic_again(store: LookupStore):
    store.begin_topic("id-1")
    store.index_changes()
    store.apply([row("a", 1), row("b", 1)], 2)
    write_as_an_earlier_release(store, "a", 1, 1)
    assert store.index_changes() == StorePosition("id-1", 1)
    assert log_of(store) == ChangeLog("id-1", 0, 1)
    store.apply([row("b", 1), row("a", 2)], 3)
    assert changes(store) == ([(1, "b", "{}"), (2, "a", "{}")], 3)


def test_figures_stay_known_while_the_topic_is_read_again(store: LookupStore):
    store.recount()
    store.apply([row("a", 1)], 1)
    write_as_an_earlier_release(store, "b", 1, 2)
    store.recount()
    store.index_changes()
    pinned = store.pin()
    stats = pinned.stats(TABLE)
    pinned.close()
    assert stats is not None
    assert stats.rows == 2


WRITES = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 9), st.booleans()), max_size=25)


@settings(max_examples=60, deadline=None)
@given(writes=WRITES, turn=st.integers(1, 4), read=st.integers(1, 3))
def test_reader_that_stops_anywhere_ends_with_the_rows_of_the_table(
    writes: list[tuple[str, int, bool]], turn: int, read: int
):
    """Records arrive in batches; between them a reader takes some changes. It finally has exactly the stored rows."""
    with tempfile.TemporaryDirectory() as folder:
        store = LookupStore(Path(folder))
        copy: dict[str, str | None] = {}
        seen: list[int] = []
        position = offset = 0

        def take(most: int) -> None:
            nonlocal position
            found, position = changes(store, position, most_rows=most)
            seen.extend(at for at, _, _ in found)
            copy.update({key: text for _, key, text in found})

        while offset < len(writes):
            batch = writes[offset : offset + turn]
            offset += len(batch)
            store.apply([row(key, v, f'{{"v":{v}}}' if live else None) for key, v, live in batch], offset)
            take(read)
        for _ in range(len(writes) + 1):
            take(read)
        pinned = store.pin()
        stored = {key: found.row.decode() for key in "abcd" if (found := pinned.stored_row(TABLE, key))}
        pinned.close()
        store.close()
        assert {key: text for key, text in copy.items() if text is not None} == stored
        assert seen == sorted(set(seen)), "in order, none twice"


def test_row_whose_newer_version_an_earlier_release_stored_has_changed_at_the_record_that_is_left(store: LookupStore):
    store.begin_topic("id-1")
    store.index_changes()
    store.apply([row("a", 4)], 3)
    write_as_an_earlier_release(store, "a", 7, 6)
    store.index_changes()
    store.apply([row("a", 3)], 6)
    assert changes(store) == ([(5, "a", "{}")], 6)
    assert changed(store) == {"a": 5}, "not before the end of a stream that was open meanwhile"


def test_full_store_has_neither_rows_nor_entries_of_the_batch(tmp_path: Path):
    store = LookupStore(tmp_path / "small", map_bytes=1_000_000)
    store.apply([row("a", 1)], 1)
    with pytest.raises(LookupsFullError):
        store.apply([row("a", 2), *(row(f"k{n}", 1, f'"{"x" * 9_000}"') for n in range(200))], 202)
    assert changes(store) == ([(0, "a", "{}")], 1)
    assert log_of(store) == ChangeLog("", 0, 1)
    store.apply([row("a", 2)], 2)
    assert changes(store) == ([(1, "a", "{}")], 2)
    store.close()


def late_rows(store: LookupStore) -> list[tuple[bytes, bytes]]:
    return store.late_rows(100)


def test_row_after_a_late_record_is_repeated_until_the_topic_has_it_last(store: LookupStore):
    store.apply([row("a", 5, '{"n":5}'), row("b", 1), row("a", 3)], 3)
    assert late_rows(store) == [row("a", 5, '{"n":5}')]
    store.apply([row("a", 4)], 4)
    assert late_rows(store) == [row("a", 5, '{"n":5}')]
    store.apply([row("a", 5, '{"n":5}')], 5)
    assert late_rows(store) == []


def test_removal_is_repeated_after_a_late_record_and_a_newer_row_ends_it(store: LookupStore):
    store.apply([row("a", 5, None), row("a", 3)], 2)
    assert late_rows(store) == [row("a", 5, None)]
    store.apply([row("a", 6)], 3)
    assert late_rows(store) == []


def test_rows_of_a_removed_table_are_not_repeated(store: LookupStore):
    gone = table_key(TABLE), encode_table(TableRecord(TABLE, 9, "ten", "users", "removed"))
    store.apply([row("a", 5), row("a", 3), gone], 3)
    assert late_rows(store) == []


def test_newer_row_of_an_earlier_topic_is_not_repeated(store: LookupStore):
    store.begin_topic("id-1")
    store.index_changes()
    store.apply([row("a", 5), row("b", 5)], 2)
    store.begin_topic("id-2")
    store.index_changes()
    store.apply([row("a", 3), row("b", 6), row("b", 5)], 3)
    assert late_rows(store) == [row("b", 6)]


def test_topic_that_is_read_again_leads_to_no_repeats(store: LookupStore):
    store.begin_topic("id-1")
    store.index_changes()
    records = [row("a", 3), row("a", 5), row("b", 1)]
    store.apply(records, 3)
    store.apply(records, 3)
    write_as_an_earlier_release(store, "c", 9, 4)
    store.index_changes()
    store.apply([row("c", 9)], 4)
    assert late_rows(store) == []
