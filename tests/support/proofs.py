"""The pages under docs/proof: tables of promises and the tests that show them; and the errors of such a page.

A table counts if its last heading is "shown by". That column holds ids as pytest accepts them, without parameters;
"(long)" follows the ids that only `make test-long` runs.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

HEADING: Final = "shown by"
_ID: Final = re.compile(r"`([^`]+)`( \(long\))?")


class Claim(NamedTuple):
    """One row: its first cell, and each test id with True if the page calls it long."""

    what: str
    tests: list[tuple[str, bool]]


def claims(page: str) -> list[Claim]:
    """Return every row of the tables that count, in order."""
    return [Claim(cells[0], [(id_, bool(long)) for id_, long in _ID.findall(cells[-1])]) for cells in _rows(page)]


def what_is_wrong(page: str, root: Path) -> list[str]:
    """Return the errors of a page of promises, as sentences; `root` is the folder that ids start from."""
    found = claims(page)
    wrong = [] if found else [f'no table whose last heading is "{HEADING}"']
    for claim in found:
        wrong += [] if claim.tests else [f"{claim.what}: names no test"]
        wrong += [f"{claim.what}: {why}" for id_, long in claim.tests if (why := _wrong_with(id_, long, root))]
    return wrong


def _rows(page: str) -> Iterator[list[str]]:
    counts = False
    before: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and not before:
            counts = cells[-1] == HEADING
        elif cells and counts and set(cells[0]) - set("-: "):
            yield cells
        before = cells


def missing(id_: str, root: Path) -> str:
    """Return what of a test id does not exist, or nothing."""
    file, _, name = id_.partition("::")
    if not (root / file).is_file():
        return f"there is no file {file}"
    return "" if name in _tests_in(root / file) else f"there is no test {name} in {file}"


def _wrong_with(id_: str, called_long: bool, root: Path) -> str:
    if why := missing(id_, root):
        return why
    file, _, name = id_.partition("::")
    if _tests_in(root / file)[name] != called_long:
        return f"{id_} {'must not carry' if called_long else 'needs'} the word (long)"
    return ""


@cache
def _tests_in(file: Path) -> dict[str, bool]:
    """Return the functions and classes that pytest collects from a module, with True for the long ones."""
    module = ast.parse(file.read_text())
    whole = any(_assigned(s) == "pytestmark" and "mark.long" in ast.unparse(s) for s in module.body)
    return {name: whole or is_long for name, is_long in _named_tests(module)}


def _named_tests(module: ast.Module) -> Iterator[tuple[str, bool]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test"):
            yield node.name, any(ast.unparse(decorator) == "pytest.mark.long" for decorator in node.decorator_list)
        elif (name := _assigned(node)).startswith("Test"):
            yield name, False  # the test case of a state machine


def _assigned(statement: ast.stmt) -> str:
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
