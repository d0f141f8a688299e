"""Start of the command line: quick help, documented exit codes, errors of usage, and an up-to-date client."""

import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

from localbox.settings import ROOT
from penstock_cli.__main__ import main
from penstock_cli.app import app
from penstock_cli.client_source import client_document, digest_of, operations_of
from penstock_cli.errors import MEANINGS, ExitCode
from penstock_cli.reference import page

# Imports all modules of the command line in an environment that has only the distributions of the arguments.
IMPORT_ALL = """
import importlib, pkgutil, sys
from importlib.metadata import packages_distributions

class OnlyThese:
    known = packages_distributions()
    def find_spec(self, name, path=None, target=None):
        owners = {one.lower().replace("_", "-") for one in self.known.get(name, ())}
        if owners and not owners & set(sys.argv[1:]):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, OnlyThese())
import penstock_cli, penstock_client.api.operations, typed_clients
for package in (penstock_cli, penstock_client.api.operations, typed_clients):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".runtime" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
SLOW = ("httpx", "attrs", "yaml", "msgspec", "rich", "dataplane", "typed_clients", "penstock_client")
COMMANDS = ["login", "status", "send", "tail", "events", "explain", "listen", "validate", "diff", "apply", "export",
            "replay", "generate", "box"]  # fmt: skip


def test_help_imports_nothing_that_takes_long():
    code = "import sys, penstock_cli.__main__; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert not set(done.stdout.split()) & set(SLOW)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]):
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: penstock {command}" in shown
    assert "Examples:" in shown
    assert f"penstock {command}" in shown.partition("Examples:")[2]


def test_commands_are_those_of_the_application():
    assert sorted(get_command(app).commands) == sorted(COMMANDS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [["nothing"], ["apply"], ["status", "--wrong"], ["events", "--limit", "x"]])
def test_invalid_command_line_has_its_own_exit_code(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == ExitCode.USAGE
    assert "Error:" in capsys.readouterr().err


def test_every_exit_code_is_documented():
    assert set(MEANINGS) == set(ExitCode)


def test_generated_client_is_that_of_the_document():
    document = yaml.load((ROOT / "docs" / "openapi.yaml").read_text(), yaml.CSafeLoader)
    now = (ROOT / "penstock_client" / "DIGEST").read_text().strip()
    assert now == digest_of(document), "run: make client"
    made = {path.stem for path in (ROOT / "penstock_client" / "api" / "operations").glob("[a-z]*.py")}
    assert made == operations_of(client_document(document))


def test_documented_packages_are_enough_for_every_command():
    page = (ROOT / "docs" / "command-line.md").read_text()
    named = page.split("\npip install typer")[1].splitlines()[0].split()
    words = [sys.executable, "-c", IMPORT_ALL, "penstock", *_with_their_needs({"typer", *named})]
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr


def _with_their_needs(names: set[str]) -> set[str]:
    """Return these distributions and all that they require."""
    found: set[str] = set()
    due = list(names)
    while due:
        name = canonicalize_name(due.pop())
        if name not in found:
            found.add(name)
            needs = map(Requirement, requires(name) or ())
            due += [one.name for one in needs if not one.marker or one.marker.evaluate({"extra": ""})]
    return found


def test_reference_page_is_that_of_the_commands():
    reference = Path(ROOT / "docs" / "reference" / "cli.md").read_text()
    assert reference == page(), "run: python -m penstock_cli.reference > docs/reference/cli.md"
