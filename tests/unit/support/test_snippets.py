"""Snippets of the guides: each names its language, fragments of specs are accepted, commands exist, programs run.

tests/support/shown_commands.py says for each command which test runs it, or why none does. Programs run in the tests
that ask `documented` for them.
"""

import ast
import json
import os
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import pytest
import yaml
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandParser
from typer.main import get_command

from dataplane.jobs import lake_recompute
from dataplane.spec import PipeSpec, SpecError, parse_pipe_spec
from localbox.settings import ROOT
from penstock_cli.app import app
from tests.support.doc_blocks import documented_all
from tests.support.proofs import missing
from tests.support.shown_commands import (
    COMMANDS,
    PROGRAMS_ELSEWHERE,
    AsShown,
    NotRun,
    SameCommand,
    commands,
    curl_blocks,
    guides,
    management_commands,
)

HERE: Final = "tests/unit/support/test_snippets.py"
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
NOT_PROGRAMS: Final = {"html", "json", "sh", "text"}
# Programs that are not files of this repository.
OTHERS: Final = {"curl", "docker", "gh", "git", "helm", "kubectl", "npm", "npx", "pip", "python", "python3"}
KNOWN: Final = OTHERS | {".", ".venv/bin/pytest", "echo", "export", "mv", "penstock/bin/pip"}
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
MANIFESTS: Final = (ROOT / "deploy" / "kubernetes").rglob("*.yaml")
OBJECTS: Final = [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text()) if one]
DEPLOYMENTS: Final = {one["metadata"].get("name") for one in OBJECTS if one.get("kind") == "Deployment"}
PATHS: Final = ("deploy/", "examples/", "tests/")


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


def test_each_command_exists_with_its_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_TOKEN", "pst_of_a_test")  # `login` asks for none
    wrong = []
    for command in commands():
        try:
            _check(command.words)
        except (Exception, SystemExit) as exc:
            wrong.append(f"{command.block.page.name}: {command.key}: {exc!r} {capsys.readouterr().err}")
    assert not wrong, "\n".join(wrong)


def _check(words: list[str]) -> None:
    assert [word for word in words if word.startswith(PATHS) and not (ROOT / word).exists()] == []
    match words:
        case ["make", *_]:
            _check_make(words)
        case ["penstock" | "penstock/bin/penstock", *rest]:
            _check_command_line(rest)
        case ["python", "manage.py", name, *rest]:
            _check_django(name, rest)
        case ["docker", "compose", "exec", service, "python", "manage.py", name, *rest]:
            assert service in COMPOSE["services"], service
            _check_django(name, rest)
        case ["docker", "compose", _, *rest]:
            assert {word for word in rest if not word.startswith("-")} <= set(COMPOSE["services"]), rest
        case ["kubectl", *rest]:
            named = {word.removeprefix("deployment/") for word in rest if word.startswith("deployment/")}
            assert named <= DEPLOYMENTS, named
        case [program, *_] if program not in KNOWN:
            assert (ROOT / program).exists(), "unknown program"


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


@cache
def _asked_for(path: Path) -> set[tuple[str, str]]:
    """Return page and language of the blocks that a module of tests takes from the guides."""
    return {
        (ast.literal_eval(node.args[0]), ast.literal_eval(node.args[1]))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"documented", "documented_all"}
    }


def test_each_program_is_run_by_a_test():
    own = (path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts)
    asked = set[tuple[str, str]]().union(*map(_asked_for, (path for path in own if path.name != "doc_blocks.py")))
    shown = {(one.page.name, one.language) for one in guides() if one.language not in NOT_PROGRAMS}
    assert shown - set(PROGRAMS_ELSEWHERE) <= asked
    assert set(PROGRAMS_ELSEWHERE) <= shown


def test_each_command_is_run_by_a_test_or_says_why_not():
    by_curl = curl_blocks()
    shown = {one.key for one in commands() if one.block not in by_curl and one.words[0] != "export"}
    without_entry = {one.key for one in management_commands()}
    assert shown - without_entry - set(COMMANDS) == set(), "add an entry to tests/support/shown_commands.py"
    assert set(COMMANDS) - shown == set(), "no page shows it any more"


def test_entries_name_tests_that_run_the_command():
    pages = defaultdict[str, set[str]](set)
    for command in commands():
        pages[command.key].add(command.block.page.name)
    wrong = [f"{key}: {why}" for key, one in COMMANDS.items() for why in _faults(one, pages[key])]
    wrong += [f"{key}: {why}" for key, one in PROGRAMS_ELSEWHERE.items() for why in _faults(one, set())]
    assert not wrong, "\n".join(wrong)


def _faults(entry: AsShown | SameCommand | NotRun, pages: set[str]) -> Iterator[str]:
    """Yield why an entry proves nothing. pages: those that show the command"""
    match entry:
        case NotRun(why, checked):
            yield from [] if why else ["gives no reason"]
            yield from [found for found in [missing(checked, ROOT)] if checked and found]
        case AsShown(test) | SameCommand(test) if found := missing(test, ROOT):
            yield found
        case AsShown(test) if not {(page, "sh") for page in pages} & _asked_for(_module(test)):
            yield f"{test} takes no command from {pages}"
        case SameCommand(test, words) if words not in _module(test).read_text():
            yield f"{test} does not run {words}"


def _module(test: str) -> Path:
    return ROOT / test.partition("::")[0]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (AsShown("tests/e2e/test_cli.py::test_gone"), "there is no test"),
        (AsShown(f"{HERE}::test_each_snippet_names_its_language"), "takes no command"),
        (SameCommand(f"{HERE}::test_each_snippet_names_its_language", "make " + "nothing"), "does not run"),
        (NotRun(""), "no reason"),
        (NotRun("needs a cluster", "tests/gone.py::test_gone"), "there is no file"),
    ],
)
def test_entry_that_proves_nothing_is_reported(entry: AsShown | SameCommand | NotRun, why: str):
    (found,) = _faults(entry, {"command-line.md"})
    assert why in found


def test_each_export_sets_its_variables():
    for command in commands():
        if command.words[0] == "export":
            script = f"{shlex.join(command.words)}; env -0"
            done = subprocess.run(["bash", "-euc", script], env={}, capture_output=True, text=True, check=True)
            assert set(command.words[1:]) <= set(done.stdout.split("\0"))


def test_make_starts_the_program_that_the_tests_run():
    programs = {"lake-recompute": "-m dataplane.jobs.lake_recompute", "demo": "-m localbox.demo"}
    programs |= {name: f"-m localbox {name}" for name in ("up", "down", "backup", "restore")}
    keys = {one.key: one.words for one in commands() if one.words[0] == "make" and one.words[1] in programs}
    assert {words[1] for words in keys.values()} == set(programs)
    for words in keys.values():
        command = ["make", "-n", *words[1:]]
        env = {"PATH": os.environ["PATH"]}  # not the flags of a make that runs this test
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        _, starts, options = done.stdout.replace("\\\n", " ").partition(programs[words[1]])
        assert starts
        assert not options.strip() or options[0].isspace(), options
        if words[1] == "lake-recompute":
            assert lake_recompute.parsed(shlex.split(options)).revision == 8
        elif "FILE=" in words[-1]:
            assert shlex.split(options) == [words[-1].removeprefix("FILE=")]
