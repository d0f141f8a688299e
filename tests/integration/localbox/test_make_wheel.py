"""`make wheel`: the files of a release, whose bill of materials lists the locked packages and no others."""

import hashlib
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from localbox.settings import ROOT


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "dist"
    subprocess.run(["make", "--no-print-directory", "wheel", f"DIST={folder}"], cwd=ROOT, check=True)
    return folder


def locked() -> set[tuple[str, str]]:
    """Return the packages of the lock as (name, version)."""
    text = (ROOT / "requirements-box.lock").read_text()
    return set(re.findall(r"^([\w.-]+)(?:\[[^\]]+\])?==([\w.+!-]+)", text, re.MULTILINE))


def test_release_has_the_files_that_the_guide_lists(dist: Path):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    guide = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "releasing.md").read_text(), re.MULTILINE)
    assert {path.name for path in dist.iterdir()} == {name.replace("X.Y.Z", version) for name in guide}


def test_bill_of_materials_lists_each_locked_package_with_its_version(dist: Path):
    document = json.loads((dist / "sbom.cdx.json").read_text())
    listed = [(part["name"], part["version"]) for part in document["components"]]
    assert len(listed) == len(set(listed)) > 50
    assert set(listed) == locked()


def test_checksums_are_those_of_all_other_files(dist: Path):
    sums = {name: digest for digest, name in map(str.split, (dist / "SHA256SUMS").read_text().splitlines())}
    files = [path for path in dist.iterdir() if path.name != "SHA256SUMS"]
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_licenses_name_each_locked_package_with_its_version(dist: Path):
    rows = re.findall(r"^\| \[([^\]]+)\]\([^)]*\) \| ([^ |]+) \|", (dist / "licenses.md").read_text(), re.MULTILINE)
    assert {(canonicalize_name(name), version) for name, version in rows} == locked()
