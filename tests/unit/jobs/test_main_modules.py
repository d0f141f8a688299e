"""Modules that run as `__main__` on Spark: what they define is sent to workers by value."""

import ast
from pathlib import Path

import pytest

import dataplane.jobs

JOBS = Path(dataplane.jobs.__path__[0])
MAIN = [path for path in sorted(JOBS.glob("*.py")) if '__name__ == "__main__"' in path.read_text()]


def structs_in(source: str) -> list[str]:
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if any("Struct" in ast.unparse(base) for base in node.bases)]


def test_struct_in_a_source_is_found():
    assert structs_in("class A(Struct, frozen=True): x: int\nclass B(msgspec.Struct): ...\nclass C: ...") == ["A", "B"]


@pytest.mark.parametrize("path", MAIN, ids=lambda path: path.stem)
def test_no_struct_is_defined_in_a_module_that_runs_as_main(path: Path):
    assert structs_in(path.read_text()) == []


def test_commands_are_among_the_modules():
    assert {"cell", "lake_recompute"} <= {path.stem for path in MAIN}
