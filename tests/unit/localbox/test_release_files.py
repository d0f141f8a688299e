"""`make wheel` with programs that only write files: of a folder it replaces what it makes, and keeps the rest."""

import subprocess
from pathlib import Path

import pytest

from localbox.settings import ROOT

WRITES_FILES = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        --wheel-dir) echo new > "$2/penstock-2.0.0-py3-none-any.whl" ;;
        --output-file) echo new > "$2" ;;
    esac
    shift
done
"""
MADE = ["SHA256SUMS", "licenses.md", "penstock-2.0.0-py3-none-any.whl", "sbom.cdx.json"]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python", "cyclonedx-py"):
        (folder / name).write_text(WRITES_FILES)
        (folder / name).chmod(0o755)
    return folder


def make_wheel(programs: Path, folder: Path) -> None:
    words = [f"DIST={folder}", f"BIN={programs}", f"DEV_STAMP={programs / 'python'}"]
    subprocess.run(["make", "--silent", "wheel", *words], cwd=ROOT, check=True, capture_output=True)


def test_other_files_of_the_folder_are_kept(tmp_path: Path, programs: Path):
    folder = tmp_path / "my files"
    (folder / "data").mkdir(parents=True)
    kept = [folder / "data" / "events.log", folder / "notes.whl", folder / ".env"]
    for path in kept:
        path.write_text("kept")
    make_wheel(programs, folder)
    assert [path.read_text() for path in kept] == ["kept"] * 3
    assert sorted(path.name for path in folder.iterdir()) == sorted([".env", "data", "notes.whl", *MADE])


def test_files_of_an_earlier_release_are_replaced_and_only_new_ones_have_checksums(tmp_path: Path, programs: Path):
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in ("penstock-1.0.0-py3-none-any.whl", "sbom.cdx.json", "licenses.md", "SHA256SUMS", "notes.txt"):
        (folder / name).write_text("old")
    make_wheel(programs, folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*MADE, "notes.txt"])
    assert "old" not in [(folder / name).read_text() for name in MADE]
    sums = (folder / "SHA256SUMS").read_text().splitlines()
    assert sorted(line.split()[1] for line in sums) == MADE[1:]
