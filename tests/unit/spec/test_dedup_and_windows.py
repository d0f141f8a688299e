"""Valid dedup and window settings of a spec, and the path that an error names."""

from typing import Any

import pytest

from dataplane.spec import SpecError, parse_pipe_spec, spec_to_builtins

COUNT: dict[str, Any] = {"span": {"kind": "tumbling", "size_s": 60}, "values": {"n": {"op": "count"}}}


def spec(**fields: Any) -> dict[str, Any]:
    return {"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example/"}}, **fields}


def test_spec_without_dedup_and_windows_has_neither():
    parsed = parse_pipe_spec(spec())
    assert (parsed.dedup, parsed.windows) == (None, {})


def test_dedup_and_windows_are_stored_as_given():
    given = spec(dedup={"paths": ["order.id"], "window_s": 60}, windows={"per-minute": COUNT})
    parsed = parse_pipe_spec(given)
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param({"dedup": {"paths": []}}, "$.dedup.paths", id="no path"),
        pytest.param({"dedup": {"paths": ["lines.*.id"]}}, "$.dedup.paths[0]", id="many values"),
        pytest.param({"dedup": {"paths": ["id", "$"]}}, "$.dedup.paths[1]", id="the whole body"),
        pytest.param({"dedup": {"paths": ["id", "id"]}}, "$.dedup.paths", id="twice"),
        pytest.param({"dedup": {"paths": ["id"], "window_s": 0}}, "$.dedup.window_s", id="no window"),
        pytest.param({"windows": {"UPPER": COUNT}}, "$.windows", id="a bad name"),
        pytest.param({"windows": {"w": COUNT | {"span": {"kind": "hopping"}}}}, "$.windows.w.span", id="unknown kind"),
        pytest.param({"windows": {"w": COUNT | {"values": {}}}}, "$.windows.w.values", id="no value"),
        pytest.param(
            {"windows": {"w": COUNT | {"span": {"kind": "sliding", "size_s": 10, "every_s": 20}}}},
            "$.windows.w.span.every_s",
            id="sliding with gaps",
        ),
        pytest.param({"windows": {"w": COUNT | {"by": ["a.*"]}}}, "$.windows.w.by", id="a key of many values"),
        pytest.param(
            {"windows": {"w": COUNT | {"values": {"total": {"op": "sum"}}}}},
            "$.windows.w.values.total.of",
            id="of what",
        ),
        pytest.param(
            {"windows": {"w": COUNT | {"values": {"all": {"op": "reduce", "of": "v", "expr": "body.acc +"}}}}},
            "$.windows.w.values.all.expr",
            id="an expression that does not parse",
        ),
        pytest.param(
            {"windows": {"w": COUNT | {"values": {"n": {"op": "count", "expr": "1"}}}}},
            "$.windows.w.values.n.expr",
            id="an expression nobody reads",
        ),
    ],
)
def test_invalid_setting_is_refused_at_its_path(fields: dict[str, Any], path: str):
    with pytest.raises(SpecError) as told:
        parse_pipe_spec(spec(**fields))
    assert told.value.path.startswith(path)
