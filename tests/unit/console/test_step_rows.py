"""Step rows of the form and steps of the spec convert into each other."""

import pytest

from dataplane.spec import parse_pipe_spec, spec_to_builtins
from mgmt.pipes.editor.steps import OPS, StepRow, row_to_step, step_to_row

ROWS = [
    StepRow("set", ("a.b", "42", "")),
    StepRow("set", ("a.b", '"words"', "")),
    StepRow("remove", ("a", "", "")),
    StepRow("rename", ("a", "b.c", "")),
    StepRow("keep", ("", "a, b", "")),
    StepRow("cast", ("a", "decimal", "")),
    StepRow("cast", ("a", "money", "EUR")),
    StepRow("mask", ("a", "partial", "")),
    StepRow("mask", ("a", "hash", "")),
    StepRow("default", ("a", "null", "")),
    StepRow("filter", ("", "body.total > 100", "")),
    StepRow("map", ("a", "body.total * 2", "")),
    StepRow("explode", ("lines", "", "")),
    StepRow("peek", ("here", "0.5", "")),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.op} {row.typed}")
def test_row_becomes_a_valid_step_and_converts_back(row: StepRow):
    spec = parse_pipe_spec(
        {
            "sources": {"web": {}},
            "destinations": {"crm": {"type": "http", "url": "https://crm.example.com"}},
            "normalize": [row_to_step(row)],
        }
    )
    stored = spec_to_builtins(spec)["normalize"][0]
    assert step_to_row(stored) == row


def test_every_operation_has_a_row():
    assert {row.op for row in ROWS} == set(OPS)


def test_value_that_is_not_json_is_text():
    assert row_to_step(StepRow("set", ("a", "plain words", "")))["value"] == "plain words"


def test_row_without_input_is_empty():
    assert StepRow().empty
    assert not StepRow("keep", ("", "a", "")).empty
    assert StepRow("keep", ("what another operation left", "", "")).empty
