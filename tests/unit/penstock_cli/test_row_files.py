"""Rows of files are read as the server reads them."""

import io
import json
from pathlib import Path
from typing import Literal

import pytest

from mgmt.lookups.row_files import read_rows
from penstock_cli.pipefile.model import RowSource
from penstock_cli.pipefile.rows import rows_of_file

CSV = '\ufeffid,note\r\n"s-1","two\r\nlines"\r\ns-2,"one\nline"\r\ns-3,a\u2028b\x85c\x0bd\r\n'
LINES = '{"id": "s-1", "note": "a\u2028b\u2029c\x85d"}\r\n\n{"id": 2, "note": "two\\nlines"}'


@pytest.mark.parametrize(("form", "text"), [("csv", CSV), ("jsonl", LINES)])
def test_rows_with_line_breaks_are_those_of_the_server(tmp_path: Path, form: Literal["csv", "jsonl"], text: str):
    path = tmp_path / f"rows.{form}"
    path.write_bytes(text.encode())
    stored = {row.key: json.loads(row.text) for row in read_rows(io.BytesIO(text.encode()), form, "id")}
    assert rows_of_file(RowSource(path, "id")) == stored
    assert len(stored) >= 2
