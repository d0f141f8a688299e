"""Files for spreadsheets and programs, and lengths of time as people type them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mgmt.console.export import export
from mgmt.console.spans import span_in_s, typed_span

ROWS: list[dict[str, Any]] = [
    {"at": datetime(2026, 11, 21, 12, tzinfo=UTC), "text": '=HYPERLINK("x")', "n": 3},
    {"at": None, "text": "a,b"},
]


def test_a_spreadsheet_gets_no_formula_from_a_payload():
    answer = export("csv", ROWS, ("at", "text", "n"), name="list")
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[arg-type]
    assert lines == ["at,text,n", '2026-11-21T12:00:00+00:00,"\'=HYPERLINK(""x"")",3', ',"a,b",']
    assert answer["Content-Disposition"] == 'attachment; filename="list.csv"'


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_whatever_a_formula_may_begin_with_is_quoted(begin: str):
    answer = export("csv", [{"text": f"{begin}1"}], ("text",), name="list")
    assert f"'{begin}1" in b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]


def test_a_program_gets_a_line_of_json_each_as_it_is():
    answer = export("jsonl", ROWS, ("at", "text", "n"), name="list")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[arg-type]
    assert lines[0] == {"at": "2026-11-21T12:00:00+00:00", "text": '=HYPERLINK("x")', "n": 3}
    assert lines[1] == {"at": None, "text": "a,b", "n": None}


@pytest.mark.parametrize(
    ("text", "span_s"), [("24 h", 86_400), ("3d", 259_200), ("90 min", 5_400), ("90m", 5_400), ("45", 45), ("7 S", 7)]
)
def test_a_span_is_typed_with_its_unit(text: str, span_s: int):
    assert span_in_s(text) == span_s


@pytest.mark.parametrize("text", ["", "soon", "-1 h", "1.5 h", "1 week", "99999999 s", "1 h\n2"])
def test_a_span_that_is_none_is_refused(text: str):
    with pytest.raises(ValueError, match="such as 24 h"):
        span_in_s(text)


@pytest.mark.parametrize("span_s", [1, 59, 60, 90, 3_600, 5_400, 86_400, 604_800])
def test_a_span_is_read_back_as_it_is_written(span_s: int):
    assert span_in_s(typed_span(span_s)) == span_s
