"""The steps of a lane, read from its code: every statement that calls something of the lane's own.

A new step is found automatically, so no list has to be kept; a step that the campaign's traffic misses fails it.
"""

import ast
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from dataplane.names import LaneKind
from localbox.settings import ROOT

_SHARED: Final = (
    "runtime/lanes/lane.py",
    "runtime/lanes/partitions.py",
    "runtime/lanes/rebalance.py",
    "runtime/lanes/envelopes.py",
    "runtime/lanes/checkpoint.py",
    "runtime/producers/tracked_producer.py",
    "runtime/lanes/deadletters.py",
)
_OF_KIND: Final[dict[LaneKind, str]] = {
    "process": "process",
    "process-slow": "process",
    "transmit": "transmit",
    "transmit-retry": "transmit",
    "transmit-slow": "transmit",
    "retrier": "retrier",
}
_COMPOUND: Final = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match, ast.FunctionDef, ast.ClassDef)
# CPython 3.11 counts the depth of all trees in one place, which fails with two threads at once (gh-106905)
_PARSING: Final = threading.Lock()


class Step(NamedTuple):
    """One statement: its place, and what it calls."""

    file: str  # relative to dataplane/
    function: str
    line: int
    call: str

    @property
    def name(self) -> str:
        """Return the function and the call, whatever line they are on."""
        return f"{self.function} {self.call}"

    @property
    def place(self) -> tuple[str, int]:
        """Return file and line."""
        return self.file, self.line


def steps_of(kind: LaneKind) -> list[Step]:
    """Return every step of this kind of lane, in the order of the code."""
    room = ROOT / "dataplane"
    paths = [*(room / name for name in _SHARED), *sorted((room / _OF_KIND[kind]).rglob("*.py"))]
    return [step for path in paths for step in steps_in(path.read_text(), path.relative_to(room))]


def steps_in(code: str, file: Path) -> Iterator[Step]:
    """Yield the steps of one module; a pure one has none, for nothing outside it changes while it runs."""
    with _PARSING:
        module = ast.parse(code)
    if "Pure" not in (ast.get_docstring(module) or ""):
        yield from _walk(module, [], file.as_posix())


def _walk(node: ast.AST, names: list[str], file: str) -> Iterator[Step]:
    for child in ast.iter_child_nodes(node):
        inner = [*names, child.name] if isinstance(child, ast.FunctionDef | ast.ClassDef) else names
        if isinstance(child, ast.stmt) and not isinstance(child, _COMPOUND) and (call := _own_call(child)):
            yield Step(file, ".".join(names), child.lineno, call)
        yield from _walk(child, inner, file)


def _own_call(statement: ast.stmt) -> str:
    """Return the statement's call on its own object: `self.x()` or `self.a.b.x()`; "" if there is none."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base: ast.expr = node.func
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id == "self":
                return ast.unparse(node.func)
    return ""
