"""Start of the command line: quick help, documented exit codes, errors of usage, and an up-to-date client."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from localbox.settings import ROOT
from penstock_cli.__main__ import main
from penstock_cli.app import app
from penstock_cli.client_source import OPERATIONS, digest_of
from penstock_cli.errors import MEANINGS, ExitCode
from penstock_cli.reference import page

SLOW = ("httpx", "attrs", "yaml", "msgspec", "rich", "dataplane", "typed_clients", "penstock_client")
COMMANDS = ["login", "status", "send", "tail", "events", "explain", "listen", "validate", "diff", "apply", "export",
            "replay", "generate"]  # fmt: skip


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
    assert made == OPERATIONS


def test_reference_page_is_that_of_the_commands():
    reference = Path(ROOT / "docs" / "reference" / "cli.md").read_text()
    assert reference == page(), "run: python -m penstock_cli.reference > docs/reference/cli.md"
