"""Targets of table queries: keys are strict UTF-8 within a row key's limits, parameters are known and bounded."""

import contextlib
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.table_queries.requests import (
    TITLES,
    ChangeQuery,
    PrefixQuery,
    QueryRefusedError,
    RowQuery,
    StreamPosition,
    TableQuery,
    parse_query,
)
from dataplane.tables.lookups import MAX_KEY_BYTES
from dataplane.tables.query_protocol import MOST_ROWS, changes_path, row_path, rows_path, table_path

LONG = b"a" * (MAX_KEY_BYTES + 1)
ROWS = rows_path("tab_1").encode()


def refused(path: bytes, query: bytes = b"") -> tuple[int, str]:
    with pytest.raises(QueryRefusedError) as exc:
        parse_query(path, query)
    assert exc.value.code in TITLES
    return exc.value.status, exc.value.code


def test_table_row_and_rows_are_distinguished_by_path():
    assert parse_query(table_path("tab_1").encode(), b"") == TableQuery("tab_1")
    assert parse_query(ROWS, b"") == PrefixQuery("tab_1", "", "", 100)
    assert parse_query(row_path("tab_1", "a/b c").encode(), b"") == RowQuery("tab_1", "a/b c")
    assert parse_query(ROWS + b"/a/b", b"") == RowQuery("tab_1", "a/b")


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=100))
def test_every_key_of_a_row_can_be_requested(key: str):
    assert parse_query(row_path("tab_1", key).encode(), b"") == RowQuery("tab_1", key)
    query = f"prefix={quote(key, safe='')}&after={quote(key, safe='')}&limit=7".encode()
    assert parse_query(ROWS, query) == PrefixQuery("tab_1", key, key, 7)


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"/v1/tables",
        b"/v1/tables/",
        b"/v1/tables/TAB",
        b"/v1/tables/a%2Fb",
        b"/v1/tables/a/",
        b"/v1/tables/a/x",
        b"/v1/tables/a/rows/",
        b"/v1/tables/" + b"a" * 33,
        b"/v2/tables/a",
        b"//v1/tables/a",
        b"/v1/tables/../a",
    ],
)
def test_unknown_path_is_not_found(path: bytes):
    assert refused(path) == (404, "not-found")


@pytest.mark.parametrize(
    "key",
    [b"%ff", b"%ed%a0%80", b"%c0%af", b"%", b"%2", b"%zz", b"%00", b"a%00b", b"\xff", LONG, "é".encode() * 201],
)
def test_key_that_no_row_can_have_is_refused(key: bytes):
    assert refused(ROWS + b"/" + key) == (400, "key-invalid")
    assert refused(ROWS, b"prefix=" + key) == (400, "parameter-invalid")
    assert refused(ROWS, b"after=" + key) == (400, "parameter-invalid")


@pytest.mark.parametrize(
    "limit", [b"0", b"-1", b"+1", b"1.5", b"", b"x", b"\xd9\xa1", b"%31", b"99999", b"%d" % (MOST_ROWS + 1)]
)
def test_limit_is_a_whole_number_within_bounds(limit: bytes):
    assert refused(ROWS, b"limit=" + limit) == (400, "parameter-invalid")


@pytest.mark.parametrize("query", [b"prefix=a&prefix=b", b"other=1", b"limit=1&limit=1", b"pre%66ix=a", b"=1"])
def test_unknown_or_repeated_parameter_is_refused(query: bytes):
    assert refused(ROWS, query) == (400, "parameter-invalid")


def test_longest_limit_and_key_are_accepted():
    key = "k" * MAX_KEY_BYTES
    found = parse_query(ROWS, f"limit={MOST_ROWS}&prefix={key}".encode())
    assert found == PrefixQuery("tab_1", key, "", MOST_ROWS)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_target_is_parsed_or_refused(tail: bytes, query: bytes):
    with contextlib.suppress(QueryRefusedError):
        parse_query(ROWS + tail, query)


CHANGES = changes_path("tab_1").encode()


def test_changes_are_requested_of_a_table_a_row_or_a_prefix():
    assert parse_query(CHANGES, b"") == ChangeQuery("tab_1", None, "", "now")
    assert parse_query(CHANGES, b"key=u%2F1&from=snapshot") == ChangeQuery("tab_1", "u/1", "", "snapshot")
    assert parse_query(CHANGES, b"prefix=u-&from=now") == ChangeQuery("tab_1", None, "u-", "now")


def test_last_event_id_is_where_a_stream_continues():
    query = parse_query(CHANGES, b"from=snapshot", b"0a1b2c3d-42")
    assert query == ChangeQuery("tab_1", None, "", StreamPosition("0a1b2c3d", 42))


@pytest.mark.parametrize(
    "query", [b"from=", b"from=earliest", b"key=a&prefix=a", b"limit=1", b"key=%00", b"key=a&key=b", b"key="]
)
def test_unknown_parameters_of_changes_are_refused(query: bytes):
    assert refused(CHANGES, query) == (400, "parameter-invalid")


@pytest.mark.parametrize("last_event_id", [b"1", b"0a1b2c3d-", b"0a1b2c3d-" + b"9" * 20, b"0A1B2C3D-1", b"\xff", b"-1"])
def test_last_event_id_that_no_event_had_is_refused(last_event_id: bytes):
    with pytest.raises(QueryRefusedError) as exc:
        parse_query(CHANGES, b"", last_event_id)
    assert (exc.value.status, exc.value.code) == (400, "parameter-invalid")
