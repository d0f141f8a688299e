"""Differences of two specs in words."""

from typing import Any

import pytest

from penstock_cli.pipefile.spec_words import spec_words

BOOKS = {"type": "http", "url": "https://books.example.com", "retry": {"span_s": 10}}
SPEC: dict[str, Any] = {
    "sources": {"shop": {"type": "http", "key": None}},
    "normalize": [{"op": "filter", "when": "body.a"}, {"op": "remove", "path": "b"}],
    "routes": {"rules": [{"when": "true", "to": ["books"]}], "mode": "first", "otherwise": []},
    "transform": {},
    "destinations": {"books": BOOKS},
    "dedup": None,
    "execution": "streaming",
}


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        pytest.param({}, [], id="equal specs"),
        pytest.param(
            {"destinations": {"books": BOOKS | {"retry": {"span_s": 20}}}},
            ["destination books: retry.span_s: 10 becomes 20"],
            id="setting of a destination",
        ),
        pytest.param(
            {"destinations": {"books": BOOKS, "crm": {"type": "http", "url": "https://crm"}}},
            ["destination crm: added, type http, https://crm"],
            id="new destination",
        ),
        pytest.param({"destinations": {}}, ["destination books: removed"], id="removed destination"),
        pytest.param(
            {"normalize": [{"op": "filter", "when": "body.c"}, {"op": "remove", "path": "b"}]},
            ['normalize step 1 (filter): when: "body.a" becomes "body.c"'],
            id="changed step",
        ),
        pytest.param(
            {"normalize": [{"op": "keep", "paths": ["a"]}, *SPEC["normalize"]]},
            ['normalize step 1: added, {"op": "keep", "paths": ["a"]}'],
            id="inserted step leaves the others alone",
        ),
        pytest.param(
            {"normalize": SPEC["normalize"][1:]},
            ['normalize step 1: removed, {"op": "filter", "when": "body.a"}'],
            id="removed step",
        ),
        pytest.param(
            {"routes": None}, ["routes: removed, every message is sent to all destinations"], id="removed routes"
        ),
        pytest.param(
            {"transform": {"books": [{"op": "remove", "path": "x"}]}},
            ['transform step of books 1: added, {"op": "remove", "path": "x"}'],
            id="step of one destination",
        ),
        pytest.param({"dedup": {"paths": ["id"]}}, ['dedup: null becomes {"paths": ["id"]}'], id="other part"),
        pytest.param({"execution": "bulk"}, ['execution: "streaming" becomes "bulk"'], id="execution"),
    ],
)
def test_difference_is_one_line(change: dict[str, Any], lines: list[str]):
    assert spec_words(SPEC, SPEC | change) == lines
