"""Rows of CSV and JSON Lines files: what is accepted, and the error for an invalid row."""

import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tables.lookups import MAX_KEY_BYTES, MAX_ROW_BYTES
from mgmt.lookups import row_files
from mgmt.lookups.row_files import NewRow, RowFileError, RowFormat, UploadTooLarge, read_rows


def rows(body: bytes, form: RowFormat = "jsonl", key: str = "key") -> list[NewRow]:
    return list(read_rows(io.BytesIO(body), form, key))


def test_csv_with_a_header_gives_objects_of_strings():
    found = rows(b'\xef\xbb\xbfsku,name,vat\r\na1,"Apple, red",7\r\n"b\n2",,\r\n', "csv", "sku")
    assert [(row.number, row.key) for row in found] == [(1, "a1"), (2, "b\n2")]
    assert json.loads(found[0].text) == {"sku": "a1", "name": "Apple, red", "vat": "7"}
    assert json.loads(found[1].text) == {"sku": "b\n2", "name": "", "vat": ""}


def test_json_lines_are_kept_unchanged_and_empty_lines_are_only_numbered():
    found = rows(b'{"key":"a","n":1.50}\n\n  {"key":7}\r\n')
    assert found == [NewRow(1, "a", '{"key":"a","n":1.50}'), NewRow(3, "7", '{"key":7}')]


def test_longest_key_and_row_are_accepted():
    filler = MAX_ROW_BYTES - len('{"key":"","t":""}') - MAX_KEY_BYTES
    text = json.dumps({"key": "k" * MAX_KEY_BYTES, "t": "x" * filler}, separators=(",", ":"))
    assert rows(text.encode())[0].key == "k" * MAX_KEY_BYTES


@pytest.mark.parametrize(
    ("body", "number", "reason"),
    [
        pytest.param(b'{"key":"a"}\n{"key":"b"', 2, "a JSON object on one line", id="cut off"),
        pytest.param(b'{"key":"a"}\n["b"]', 2, "a JSON object", id="no object"),
        pytest.param(b'{"key":"a","n":NaN}', 1, "a JSON object", id="NaN"),
        pytest.param(b'{"key":"a\xff"}', 1, "a JSON object", id="no UTF-8"),
        pytest.param(b'{"key":"a"}\n{"kez":"b"}', 2, "field 'key'", id="no key"),
        pytest.param(b'{"key":""}', 1, "needs a key", id="empty key"),
        pytest.param(b'{"key":null}', 1, "needs a key", id="null key"),
        pytest.param(b'{"key":true}', 1, "needs a key", id="a bool as key"),
        pytest.param(b'{"key":1.5}', 1, "needs a key", id="a fraction as key"),
        pytest.param(b'{"key":"a\\u0000"}', 1, "U+0000", id="NUL in the key"),
        pytest.param(b'{"key":"%s"}' % (b"k" * 401), 1, "needs a key of at most 400 bytes, got 401", id="long key"),
        pytest.param(b'{"key":"a","t":"%s"}' % (b"x" * 17_000), 1, "16384 bytes as JSON", id="large row"),
        pytest.param(b'{"key":"a","t":"%s"}' % (b"x" * 99_000), 1, "16384 bytes as JSON", id="endless line"),
        pytest.param(b'{"key":"a","t":' + b"[" * 9_000 + b"]" * 9_000 + b"}", 1, "", id="nested too deep"),
    ],
)
def test_invalid_json_line_is_reported_with_its_number_and_reason(body: bytes, number: int, reason: str):
    with pytest.raises(RowFileError) as refused:
        rows(body)
    assert refused.value.number == number
    assert reason in refused.value.reason


@pytest.mark.parametrize(
    ("body", "number", "reason"),
    [
        pytest.param(b"", 0, "the key column 'key'", id="nothing"),
        pytest.param(b"sku,name\na,b\n", 0, "the key column 'key'", id="no such column"),
        pytest.param(b"key,key\na,b\n", 0, "unique names", id="a name twice"),
        pytest.param(b"key,\na,b\n", 0, "unique names", id="a name is empty"),
        pytest.param(b"key,n\na,1\nb\n", 2, "needs 2 values, as in the header row, got 1", id="too few"),
        pytest.param(b"key,n\na,1\nb,2,3\n", 2, "needs 2 values, as in the header row, got 3", id="too many"),
        pytest.param(b'key,n\na,"1\n', 1, "is not CSV", id="an open quote"),
        pytest.param(b'key,n\na,1\n"b"c,2\n', 2, "is not CSV", id="text after a quote"),
        pytest.param(b"key,n\n,1\n", 1, "needs a key", id="empty key"),
        pytest.param(b"key,n\na\xff,1\n", 1, "UTF-8", id="no UTF-8"),
    ],
)
def test_invalid_csv_row_is_reported_with_its_number_and_reason(body: bytes, number: int, reason: str):
    with pytest.raises(RowFileError) as refused:
        rows(body, "csv")
    assert refused.value.number == number
    assert reason in refused.value.reason


def test_upload_size_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_files, "MAX_UPLOAD_BYTES", 20)
    with pytest.raises(UploadTooLarge, match="20 bytes"):
        rows(b'{"key":"a"}\n{"key":"b"}\n')


@given(body=st.binary(max_size=200), form=st.sampled_from(["csv", "jsonl"]))
def test_any_input_gives_valid_rows_or_a_row_error(body: bytes, form: RowFormat):
    with suppress(RowFileError):
        found = rows(b"key,n\n" + body if form == "csv" else body, form)
        assert all(row.key and isinstance(json.loads(row.text), dict) for row in found)
