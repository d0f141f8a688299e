"""Exports for spreadsheets and programs, and durations as people type them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mgmt.web.durations import duration_s, typed_duration
from mgmt.web.export import export

ROWS: list[dict[str, Any]] = [
    {"at": datetime(2026, 11, 21, 12, tzinfo=UTC), "text": '=HYPERLINK("x")', "n": 3},
    {"at": None, "text": "a,b"},
]


def test_csv_export_contains_no_formula_of_a_payload():
    answer = export("csv", ROWS, ("at", "text", "n"), name="list")
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[arg-type]
    assert lines == ["at,text,n", '2026-11-21T12:00:00+00:00,"\'=HYPERLINK(""x"")",3', ',"a,b",']
    assert answer["Content-Disposition"] == 'attachment; filename="list.csv"'


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_export_quotes_every_character_that_starts_a_formula(begin: str):
    answer = export("csv", [{"text": f"{begin}1"}], ("text",), name="list")
    assert f"'{begin}1" in b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]


def test_jsonl_export_has_one_unchanged_object_per_line():
    answer = export("jsonl", ROWS, ("at", "text", "n"), name="list")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[arg-type]
    assert lines[0] == {"at": "2026-11-21T12:00:00+00:00", "text": '=HYPERLINK("x")', "n": 3}
    assert lines[1] == {"at": None, "text": "a,b", "n": None}


@pytest.mark.parametrize(
    ("text", "span_s"), [("24 h", 86_400), ("3d", 259_200), ("90 min", 5_400), ("90m", 5_400), ("45", 45), ("7 S", 7)]
)
def test_duration_is_parsed_with_its_unit(text: str, span_s: int):
    assert duration_s(text) == span_s


@pytest.mark.parametrize("text", ["", "soon", "-1 h", "1.5 h", "1 week", "99999999 s", "1 h\n2"])
def test_invalid_duration_is_refused(text: str):
    with pytest.raises(ValueError, match="such as 24 h"):
        duration_s(text)


@pytest.mark.parametrize("span_s", [1, 59, 60, 90, 3_600, 5_400, 86_400, 604_800])
def test_formatted_duration_is_parsed_to_the_same_value(span_s: int):
    assert duration_s(typed_duration(span_s)) == span_s
