"""The coverage gate finds the decisions by their import contracts, and fails for too few branches or statements."""

import tomllib
from typing import Any

import pytest

from localbox.settings import ROOT
from tests.coverage_gate import decision_modules, is_within, shortfalls

DECISIONS = {"dataplane.expr", "controlplane.interlocks", "loadgen.plan"}


def report(**covered: tuple[int, int]) -> dict[str, Any]:
    """Return a report in which each file has 100 statements and 100 branches, of which these are covered."""
    return {
        path.replace("__", "/") + ".py": {
            "summary": {
                "covered_lines": lines,
                "num_statements": 100,
                "covered_branches": branches,
                "num_branches": 100,
                "missing_branches": 100 - branches,
            }
        }
        for path, (lines, branches) in covered.items()
    }


def test_decisions_are_the_modules_without_clock_and_chance():
    found = decision_modules(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    assert {"dataplane.ledger", "dataplane.transmit.policy", "controlplane.interlocks", "mgmt.ramps.schedule"} <= found
    assert not found & {"dataplane.ingest", "dataplane.runtime", "controlplane.provisioner"}
    for module in found:
        paths = [folder / module.replace(".", "/") for folder in (ROOT, ROOT / "platform")]
        assert any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths), module


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("dataplane/expr/parse.py", True),
        ("dataplane/expr/__init__.py", True),
        ("controlplane/interlocks.py", True),
        ("platform/loadgen/plan.py", True),
        ("controlplane/interlocks_page.py", False),
        ("dataplane/expressions.py", False),
    ],
)
def test_file_belongs_to_its_package(path: str, inside: bool):
    assert is_within(path, DECISIONS) is inside


def test_too_few_branches_of_decisions_fail_and_name_the_file():
    files = report(dataplane__expr__parse=(100, 94), mgmt__models=(100, 100))
    assert shortfalls(files, DECISIONS) == [
        "decisions: 94.0 % of branches, need 95.0 %: dataplane/expr/parse.py (6)",
    ]
    assert shortfalls(report(dataplane__expr__parse=(100, 95), mgmt__models=(100, 0)), DECISIONS) == []


def test_too_few_statements_of_the_whole_fail():
    files = report(dataplane__expr__parse=(100, 100), mgmt__models=(79, 100))
    assert shortfalls(files, DECISIONS) == ["all: 89.5 % of statements, need 90.0 %"]
