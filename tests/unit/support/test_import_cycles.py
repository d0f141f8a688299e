"""No module imports itself through others: the arrows between modules go one way."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from localbox.settings import ROOT

PLANES: Final = ("mgmt", "controlplane", "dataplane", "platform")


def modules() -> dict[str, Path]:
    """Return every module of the planes by its dotted name."""
    found = {}
    for plane in PLANES:
        for path in sorted((ROOT / plane).rglob("*.py")):
            parts = path.relative_to(ROOT / plane if plane == "platform" else ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the known modules that a module imports when it is loaded: not those for types or inside functions."""
    waiting: list[ast.stmt] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                full = f"{node.module}.{one.name}"
                yield from (full,) if full in known else (node.module,) if node.module in known else ()
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)
        elif isinstance(node, ast.Try | ast.With) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            waiting += node.body


def cycle_of(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one cycle, in order; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        cycle: list[str] = exc.args[1]
        return cycle
    return []


def test_modules_import_each_other_without_cycles():
    known = modules()
    graph = {name: set(imports(ast.parse(path.read_text()), known)) - {name} for name, path in known.items()}
    assert sum(map(len, graph.values())) > 3 * len(graph), "imports are found"
    assert cycle_of(graph) == []


@pytest.mark.parametrize("back", ["import b", "from c import x"])
def test_cycle_is_detected(back: str):
    known = dict.fromkeys(("a", "b", "c"), Path())
    texts = {"a": "from b import y", "b": "import c", "c": back.replace("from c", "from a")}
    graph = {name: set(imports(ast.parse(text), known)) for name, text in texts.items()}
    assert cycle_of(graph)
