"""The coverage gate: `python -m tests.coverage_gate REPORT`, a file of `coverage json`. Exits with 1 under the gate.

Decisions are the modules that an import contract in pyproject.toml keeps from clock and randomness, so the list of
them exists once. Only unit and db tests are measured: what runs in processes of their own (lanes, drivers, the box) is
covered by the integration and fault tests, which no tracer may slow down.
"""

import json
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from localbox.settings import ROOT

DECISIONS_PERCENT: Final = 95.0
ALL_PERCENT: Final = 90.0


class Coverage(NamedTuple):
    """Covered and all of: statements and branches."""

    lines: int
    all_lines: int
    branches: int
    all_branches: int

    @property
    def line_percent(self) -> float:
        """Share of the statements that ran."""
        return 100 * self.lines / max(self.all_lines, 1)

    @property
    def branch_percent(self) -> float:
        """Share of the branches that were taken."""
        return 100 * self.branches / max(self.all_branches, 1)


def decision_modules(pyproject: Mapping[str, Any]) -> set[str]:
    """Return the packages and modules whose contract forbids both `time` and `random`."""
    contracts = pyproject["tool"]["importlinter"]["contracts"]
    return {
        module
        for contract in contracts
        if {"time", "random"} <= set(contract.get("forbidden_modules", ()))
        for module in contract["source_modules"]
    }


def is_within(path: str, modules: Iterable[str]) -> bool:
    """Return True if a source file belongs to one of the packages or modules."""
    name = path.removeprefix("platform/").removesuffix(".py").removesuffix("/__init__").replace("/", ".") + "."
    return any(name.startswith(f"{module}.") for module in modules)


def coverage_of(files: Mapping[str, Any]) -> Coverage:
    """Add up the figures of the files of a report."""
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return Coverage(*(sum(file["summary"][name] for file in files.values()) for name in names))


def shortfalls(files: Mapping[str, Any], decisions: Iterable[str]) -> list[str]:
    """Return what is under the gate, in words; for decisions with the files that lack the most branches."""
    inside = {path: file for path, file in files.items() if is_within(path, decisions)}
    decided, overall = coverage_of(inside), coverage_of(files)
    found = []
    if decided.branch_percent < DECISIONS_PERCENT:
        by_lack = sorted(inside, key=lambda path: -inside[path]["summary"]["missing_branches"])
        worst = ", ".join(f"{path} ({inside[path]['summary']['missing_branches']})" for path in by_lack[:5])
        found.append(f"decisions: {decided.branch_percent:.1f} % of branches, need {DECISIONS_PERCENT} %: {worst}")
    if overall.line_percent < ALL_PERCENT:
        found.append(f"all: {overall.line_percent:.1f} % of statements, need {ALL_PERCENT} %")
    return found


def main() -> int:
    """Print the figures; return 1 under the gate."""
    files = json.loads(Path(sys.argv[1]).read_text())["files"]
    decisions = decision_modules(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    groups = {"decisions": {p: f for p, f in files.items() if is_within(p, decisions)}, "all": files}
    for name, group in groups.items():
        of = coverage_of(group)
        sys.stdout.write(f"coverage, {name}: {of.line_percent:.1f} % lines, {of.branch_percent:.1f} % branches\n")
    found = shortfalls(files, decisions)
    sys.stderr.write("".join(f"under the gate: {text}\n" for text in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
