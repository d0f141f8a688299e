"""Invalid look-ups of a spec, and the field that the error names."""

from typing import Any

import pytest

from dataplane.spec import EnrichSpec, SpecError, parse_pipe_spec, spec_to_builtins

STEP = {"table": "shops", "key": "body.shop", "into": "shop_row"}


def spec(*steps: Any) -> dict[str, Any]:
    to = {"type": "http", "url": "https://crm.example/"}
    return {"sources": {"shop": {}}, "destinations": {"crm": to}, "enrich": list(steps)}


def test_lookup_survives_a_storage_round_trip():
    parsed = parse_pipe_spec(spec(STEP))
    assert parsed.enrich == [EnrichSpec("shops", "body.shop", "shop_row")]
    assert parse_pipe_spec(spec_to_builtins(parsed)) == parsed


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"table": "Shops"}, "$.enrich[0].table", id="a name in capitals"),
        pytest.param({"key": "body.shop +"}, "$.enrich[0].key", id="an expression that does not parse"),
        pytest.param({"key": "table.x"}, "$.enrich[0].key", id="a root that is not there"),
        pytest.param({"into": "$"}, "$.enrich[0].into", id="the whole body"),
        pytest.param({"into": "lines.*.row"}, "$.enrich[0].into", id="many places"),
        pytest.param({"default": 1}, "$.enrich[0].default", id="a default that is never used"),
        pytest.param({"on_missing": "skip"}, "$.enrich[0].on_missing", id="a choice that is not there"),
        pytest.param({"tabel": 1}, "$.enrich[0]", id="a misspelt field"),
    ],
)
def test_invalid_lookup_is_refused_with_its_field(changes: dict[str, Any], path: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(spec(STEP | changes))
    assert refused.value.path == path
