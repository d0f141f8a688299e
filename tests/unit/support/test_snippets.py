"""Snippets of the guides: each names its language, fragments of specs are accepted, commands exist, programs run.

Commands with curl run in tests/integration/test_curl_commands.py, those of the command line's guide in
tests/e2e/test_cli.py, programs in the tests that ask `documented` for them.
"""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import duckdb
import msgspec
import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandParser
from typer.main import get_command

from dataplane.spec import PipeSpec, SpecError, parse_pipe_spec
from localbox.settings import ROOT
from penstock_cli.app import app
from tests.support.doc_blocks import GENERATED, Block, blocks, documented_all

SPEC_FIELDS: Final = {one.name for one in msgspec.structs.fields(PipeSpec)}
BASE: Final[dict[str, Any]] = {
    "sources": {"shop": {}},
    "destinations": {
        "crm": {"type": "http", "url": "https://crm.example.com/in", "ordered": True},
        "reports": {"type": "lake"},
    },
}
WINDOW: Final = {"span": {"kind": "tumbling", "size_s": 60}, "values": {"n": {"op": "count"}}}
RESPONSES: Final = {"errors", "key", "results", "state", "status", "table", "tenant", "token", "window"}
PROGRAMS: Final = ("postgresql", "python", "sql", "ts")
# Commands of other projects, and those that start from nothing: `make demo` and `make test` run in every release.
KNOWN: Final = {".", "python", ".venv/bin/pytest"}
NOT_RUN: Final = {
    "cd",
    "docker",
    "echo",
    "export",
    "gh",
    "git",
    "helm",
    "kubectl",
    "npm",
    "npx",
    "pip",
    "mv",
    "python3",
    "penstock/bin/pip",
}
VARIABLE: Final = re.compile(r"^[A-Z_]+=\S")


def guides() -> list[Block]:
    return [one for one in blocks() if GENERATED not in one.page.parents and "decisions" not in one.page.parts]


def fragments() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield page and document of each fragment of a spec: some of its fields, some destinations, or one."""
    for block in guides():
        if block.language != "json":
            continue
        found = json.loads(block.text)
        if set(found) <= SPEC_FIELDS:
            yield block.page.name, found
        elif "type" in found and "url" in found:
            yield block.page.name, {"destinations": {"crm": found}}
        elif all(isinstance(one, dict) and "type" in one for one in found.values()):
            yield block.page.name, {"destinations": found}
        else:
            assert RESPONSES & set(found) or "properties" in found, (block.page.name, block.text)


def test_each_snippet_names_its_language():
    assert [(one.page.name, one.text[:60]) for one in guides() if not one.language] == []


def test_each_fragment_of_a_spec_is_accepted():
    wrong = []
    for page, fragment in fragments():
        document = BASE | {"windows": {"per-shop": WINDOW}} if "routes" in fragment else BASE
        document = document | fragment
        if "sources" not in fragment and "destinations" in fragment:
            document |= {"destinations": BASE["destinations"] | fragment["destinations"]}
        try:
            parse_pipe_spec(document)
        except SpecError as exc:
            wrong.append(f"{page}: {fragment}: {exc}")
    assert not wrong, "\n".join(wrong)


def commands() -> list[tuple[str, list[str]]]:
    """Return page and words of each command, without the variables in front of it."""
    found = []
    for block in guides():
        for line in _lines(block.text) if block.language == "sh" else ():
            words = shlex.split(line, comments=True)
            while words and VARIABLE.match(words[0]):
                words.pop(0)
            if words[:2] == ["python", "manage.py"]:
                words.pop(0)
            if words:
                found.append((block.page.name, words))
    return found


def _lines(text: str) -> list[str]:
    """Return a line for each command: without line ends that a backslash or a quoted text continues."""
    lines: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if lines and lines[-1].count("'") % 2:
            lines[-1] += " " + line
        else:
            lines.append(line)
    return lines


def test_each_command_exists_with_its_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_TOKEN", "pst_of_a_test")  # `login` asks for none
    wrong, run = [], {"curl", "make", "penstock", "manage.py"}
    for page, words in commands():
        try:
            match words:
                case ["make", *_]:
                    _check_make(words)
                case ["penstock" | "penstock/bin/penstock", *rest]:
                    _check_command_line(rest)
                case ["manage.py", name, *rest]:
                    _check_django(name, rest)
                case [program, *_] if program not in run | NOT_RUN:
                    assert (ROOT / program).exists() or program in KNOWN, "unknown program"
        except (Exception, SystemExit) as exc:
            wrong.append(f"{page}: {shlex.join(words)}: {exc!r} {capsys.readouterr().err}")
    assert not wrong, "\n".join(wrong)


def _check_make(words: list[str]) -> None:
    targets = [word for word in words[1:] if "=" not in word]
    text = (ROOT / "Makefile").read_text()
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", text, re.MULTILINE), target
    for word in words[1:]:
        if "=" in word:
            name = word.partition("=")[0]
            assert re.search(rf"\b{name}\b", text), name


def _check_command_line(words: list[str]) -> None:
    """Parse the words as `penstock` does, without running the command."""
    command: Any = get_command(app)
    context = None
    while True:
        context = command.make_context("penstock", list(words), parent=context)
        left = [*context._protected_args, *context.args] if hasattr(context, "_protected_args") else context.args
        if not hasattr(command, "resolve_command"):
            return
        _, command, words = command.resolve_command(context, left)
        assert command is not None


def _check_django(name: str, words: list[str]) -> None:
    command = load_command_class(get_commands()[name], name)
    parser: CommandParser = command.create_parser("manage.py", name)
    parser.parse_args(words)


def test_query_of_the_lakes_guide_runs():
    """On a table with such columns; test_lake.py reads the columns that Spark wrote."""
    with duckdb.connect() as db:
        db.sql('CREATE TABLE orders (event STRUCT(customer STRUCT(country TEXT), total DOUBLE, "at" TIMESTAMPTZ))')
        for country, total, at in (("NL", 1.5, "2026-11-02"), ("NL", 2.5, "2026-11-02"), ("BE", 9, "2026-10-31")):
            event = {"customer": {"country": country}, "total": total, "at": at}
            db.execute("INSERT INTO orders VALUES (?)", [event])
        of_lake, *_ = documented_all("topic-table-and-lake-destinations.md", "sql")  # others have tests of their own
        assert db.sql(of_lake).fetchall() == [("NL", 4.0)]


def test_each_program_is_run_by_a_test():
    asked = set()
    for path in (path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts):
        if path == ROOT / "tests" / "support" / "doc_blocks.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"documented", "documented_all"}:
                asked.add(tuple(ast.literal_eval(one) for one in node.args))
    shown = {(one.page.name, one.language) for one in guides() if one.language in PROGRAMS}
    elsewhere = {("verify-signatures.md", "python")}  # test_verify_page.py
    assert shown - elsewhere <= asked
