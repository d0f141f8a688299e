"""A release is named by its content, built once, and not run if its content differs from its name."""

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controlplane.compute.releases import ReleaseError, ReleaseStore
from localbox.settings import ROOT


def code(root: Path, text: str) -> Path:
    jobs = root / "dataplane" / "jobs"
    jobs.mkdir(parents=True, exist_ok=True)
    (jobs / "cell.py").write_text(text)
    return root


def test_same_code_gives_the_same_release_in_any_folder(tmp_path: Path):
    here, there = ReleaseStore(tmp_path / "r1"), ReleaseStore(tmp_path / "r2")
    older, newer = code(tmp_path / "a", "x = 1"), code(tmp_path / "b", "x = 1")
    os.utime(older / "dataplane" / "jobs" / "cell.py", (1e9, 1e9))
    first, second = here.pack(older), there.pack(newer)
    assert first == second
    assert here.archive(first).read_bytes() == there.archive(second).read_bytes()


def test_changed_code_is_another_release_and_the_old_one_stays(tmp_path: Path):
    releases = ReleaseStore(tmp_path)
    first = releases.pack(code(tmp_path, "x = 1"))
    second = releases.pack(code(tmp_path, "x = 2"))
    assert first != second
    programs = [releases.application(release) for release in (first, second)]
    assert [program.read_text() for program in programs] == ["x = 1", "x = 2"]


def test_threads_that_pack_the_same_code_at_once_do_not_disturb_each_other(tmp_path: Path):
    root = code(tmp_path, "x = 1\n" * 200_000)
    for number in range(5):
        releases = ReleaseStore(tmp_path / str(number))
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _, releases=releases: releases.pack(root), range(8)))
        assert found == {ReleaseStore.identify(root)}
        assert [path.name for path in (tmp_path / str(number) / "releases").iterdir()] == [
            releases.archive(found.pop()).name
        ]


def test_release_contains_the_whole_data_plane_and_nothing_else(tmp_path: Path):
    releases = ReleaseStore(tmp_path)
    names = zipfile.ZipFile(releases.archive(releases.pack(ROOT))).namelist()
    assert set(names) == {path.relative_to(ROOT).as_posix() for path in (ROOT / "dataplane").rglob("*.py")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"x = 1", b"x = 2", id="another program"),
        pytest.param(b"PK", b"", id="some bytes less"),
        pytest.param(b"PK", b"PKPK", id="some bytes more"),
    ],
)
def test_modified_build_is_not_run_until_it_is_rebuilt(tmp_path: Path, old: bytes, new: bytes):
    releases = ReleaseStore(tmp_path)
    release = releases.pack(code(tmp_path, "x = 1"))
    archive = releases.archive(release)
    archive.write_bytes(archive.read_bytes().replace(old, new, 1))
    with pytest.raises(ReleaseError, match="was changed after the build"):
        releases.application(release)
    assert releases.pack(tmp_path) == release
    assert releases.application(release).read_text() == "x = 1"


def test_program_that_was_changed_after_its_extraction_is_not_run(tmp_path: Path):
    releases = ReleaseStore(tmp_path)
    release = releases.pack(code(tmp_path, "x = 1"))
    releases.application(release).write_text("x = 2")
    assert releases.application(release).read_text() == "x = 1"


@pytest.mark.parametrize("release", ["", "../x", "0123456789abcdeg", "0123456789ABCDEF"])
def test_invalid_release_name_is_refused(tmp_path: Path, release: str):
    with pytest.raises(ReleaseError, match="needs 16 hexadecimal digits"):
        ReleaseStore(tmp_path).archive(release)


def test_missing_release_is_named_in_the_error(tmp_path: Path):
    with pytest.raises(ReleaseError, match=r"release 0123456789abcdef: .* cannot be read: No such file"):
        ReleaseStore(tmp_path).archive("0123456789abcdef")
