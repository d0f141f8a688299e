"""The wheel: its contents, and the command line and the box of an environment that has nothing else of Penstock."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from localbox.settings import ROOT
from localbox.testing import free_ports
from tests.support.sizes import PYTHONS
from tests.support.wheels import Installation, build_wheel, install

TOP: Final = ("dataplane", "penstock_cli", "penstock_client", "penstock_home", "typed_clients")
MOVED: Final = {
    "platform/penstock_cli/": "penstock_cli/",
    "platform/typed_clients/": "typed_clients/",
    "penstock_client/": "penstock_client/",
    "dataplane/": "dataplane/",
    "manage.py": "penstock_home/manage.py",
    "platform/config/": "penstock_home/platform/config/",
    "platform/localbox/": "penstock_home/platform/localbox/",
    "platform/loadgen/": "penstock_home/platform/loadgen/",
    **{f"{name}/": f"penstock_home/{name}/" for name in ("mgmt", "controlplane", "templates", "static")},
}
NOT_MOVED: Final = ("platform/bin/",)  # starts the command line of a checkout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("home") / "venv")


def run(home: Path, words: Sequence[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return Installation(home, cwd, env).run(*words)


def test_wheel_has_every_file_of_the_server_and_the_command_line(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(TOP)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    missing = [
        name
        for name in listed
        if (start := next((key for key in MOVED if name.startswith(key)), None))
        and MOVED[start] + name.removeprefix(start) not in names
    ]
    assert missing == []
    folders = {name.split("/")[0] for name in listed if name.endswith(".py") and "/" in name}
    assert folders - {"tests", "examples", "docs", "platform"} == {key[:-1] for key in MOVED if key.count("/") == 1} - {
        "templates",
        "static",
    }, "a new top-level package belongs to the wheel"
    inside = {"/".join(name.split("/")[:2]) + "/" for name in listed if name.startswith("platform/")}
    assert inside <= set(MOVED) | set(NOT_MOVED), "a new package of platform/ belongs to the wheel"


def test_command_line_of_the_wheel_runs_without_a_checkout(home: Path, tmp_path: Path):
    helped = run(home, ["--help"], tmp_path)
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "define pipes" in helped.stdout
    refused = run(home, ["status"], tmp_path)
    assert (refused.returncode, "penstock login" in refused.stderr) == (3, True), refused


def test_box_of_the_wheel_keeps_its_files_in_the_home_folder(home: Path, tmp_path: Path):
    status = run(home, ["box", "status"], tmp_path)
    assert (status.returncode, status.stderr) == (3, "")
    assert status.stdout == f"penstock is not running at {tmp_path}/.local/share/penstock\n"
    refused = run(home, ["box", "restore", "nothing.tar.gz"], tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("penstock: ")


def test_current_directory_gives_the_box_neither_code_nor_variables(home: Path, tmp_path: Path):
    """It may be a checkout of something else, with packages and an .env of its own."""
    project = tmp_path / "project"
    for name in ("config", "controlplane", "localbox"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("raise SystemExit(77)")
    (project / ".env").write_text("PENSTOCK_VAR=/elsewhere\n")
    status = run(home, ["box", "status"], project)
    assert (status.returncode, status.stderr) == (3, "")
    assert status.stdout == f"penstock is not running at {project}/.local/share/penstock\n"


def test_box_reads_the_variables_next_to_its_files(home: Path, tmp_path: Path):
    var = tmp_path / "kept"
    var.mkdir()
    (var / ".env").write_text("PENSTOCK_WEB_PORT=none\n")
    refused = run(home, ["box", "status"], tmp_path, PENSTOCK_VAR="kept")
    assert (refused.returncode, "PENSTOCK_WEB_PORT" in refused.stderr) == (1, True), refused


def test_commands_with_options_are_passed_on(home: Path, tmp_path: Path):
    code = "import os; print(os.environ['PENSTOCK_VAR'])"
    shown = run(home, ["box", "run", "python", "-c", code], tmp_path)
    assert shown.stdout == f"{tmp_path}/.local/share/penstock\n", shown.stderr
    managed = run(home, ["box", "manage", "help", "--commands"], tmp_path)
    assert "rotate_secrets" in managed.stdout.split(), managed.stderr
    refused = run(home, ["box", "demo", "once"], tmp_path)
    assert (refused.returncode, "ONCE=1" in refused.stderr) == (64, True)


def test_missing_packages_of_the_box_are_named(wheel: Path, tmp_path: Path):
    """An environment with the command line's packages only, as `pip install --no-deps` makes it."""
    answer = subprocess.run(
        [sys.executable, "-S", "-c", "from penstock_cli.run_box import run_box; run_box(['up'])"],
        env={"PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the box needs packages that are not installed: django, celery" in answer.stderr
    assert "pip install 'penstock[box]'" in answer.stderr


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("python", PYTHONS)
def test_wheel_installs_everything_and_its_box_delivers(wheel: Path, tmp_path: Path, python: str):
    """With the packages that pip chooses for this Python, not those of the lock files."""
    home = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", str(home)], check=True)
    subprocess.run([str(home / "bin/pip"), "install", "--quiet", f"{wheel}[box]"], check=True)
    env = {**free_ports(), "PENSTOCK_CACHE": str(Path("~/.cache/penstock").expanduser()), "ONCE": "1", "COUNT": "200"}
    shown = run(home, ["--help"], tmp_path / "user")
    assert (shown.returncode, "define pipes" in shown.stdout) == (0, True)
    started = run(home, ["box", "up", "--detach"], tmp_path / "user", **env, PENSTOCK_VAR="own")
    try:
        assert started.returncode == 0, started.stdout[-3_000:] + started.stderr[-3_000:]
        assert (tmp_path / "user" / "own" / "postgres" / "PG_VERSION").exists()
    finally:
        stopped = run(home, ["box", "down"], tmp_path / "user", **env, PENSTOCK_VAR="own")
    assert stopped.stdout == "stopped\n"
    demo = run(home, ["box", "demo"], tmp_path / "user", **env)
    assert demo.returncode == 0, demo.stdout[-3_000:] + demo.stderr[-3_000:]
    result = json.loads(demo.stdout)
    assert [result[name] for name in ("accepted", "delivered", "lost")] == [200, 200, 0]
