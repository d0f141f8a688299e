"""Backup and restore of a stopped box, on directories without programs."""

import random
import resource
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localbox.backups import check_backup, check_restored, restore_backup, write_backup
from localbox.errors import BoxError
from localbox.settings import BoxSettings, settings_from

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def settings(var: Path, **given: str) -> BoxSettings:
    return settings_from({"PENSTOCK_VAR": str(var), **given}, dotenv=None)


@pytest.fixture
def stopped(tmp_path: Path) -> BoxSettings:
    """Box with data of each kind, and files that a start makes again."""
    box = settings(tmp_path / "var")
    for name, text in {
        "kafka/log/penstock.c1.ingest-0/00000.log": "records" * 5_000,
        "postgres/PG_VERSION": "18",
        "data/acks/ingest-1.acks": "acks",
        "lake/orders/part-0.parquet": "rows",
        "log/web.log": "not kept",
        "run/state.json": "not kept",
    }.items():
        path = box.var / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (box.var / "postgres").chmod(0o700)
    (box.var / "data" / "empty").mkdir()
    (box.var / "data" / "newest").symlink_to("acks")
    return box


def content(box: BoxSettings) -> dict[str, tuple[int, str]]:
    """Return mode and text, or link, of everything that is kept."""
    paths = (path for path in box.var.rglob("*") if path.relative_to(box.var).parts[0] not in ("log", "run"))
    return {str(path.relative_to(box.var)): (path.lstat().st_mode, text_of(path)) for path in paths}


def text_of(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return path.read_text() if path.is_file() else ""


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Make each write beyond this size fail, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_restored_box_has_the_same_files_modes_links_and_secrets(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"
    written = write_backup(stopped, archive, now=NOW)
    assert archive.stat().st_mode & 0o777 == 0o600
    other = settings(tmp_path / "other")  # which has generated secrets of its own
    assert restore_backup(other, archive) == written
    assert content(other) == content(stopped)
    assert written.files == 5  # with secrets.env
    check_restored(other)


def test_backup_is_refused_before_the_box_stops(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"
    for wrong, reason in (
        (stopped.var / "box.tar.gz", "is in"),
        (tmp_path / "missing" / "box.tar.gz", "does not exist"),
    ):
        with pytest.raises(BoxError, match=reason):
            check_backup(stopped, wrong)
    archive.touch()
    with pytest.raises(BoxError, match="exists"):
        check_backup(stopped, archive)
    with pytest.raises(BoxError, match="no data of a box"):
        check_backup(settings(tmp_path / "empty"), tmp_path / "new.tar.gz")
    with pytest.raises(BoxError, match="REDIS_URL: not the box's own"):
        check_backup(settings(stopped.var, REDIS_URL="redis://elsewhere:6379/0"), tmp_path / "new.tar.gz")


def test_full_disk_leaves_no_archive(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"
    before = content(stopped)
    with files_of_at_most(200), pytest.raises(BoxError, match="could not be written"):
        write_backup(stopped, archive, now=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["var"]
    assert content(stopped) == before


def test_box_with_data_is_not_overwritten(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"
    write_backup(stopped, archive, now=NOW)
    before = content(stopped)
    with pytest.raises(BoxError, match=r"has data of a box \(kafka, postgres, data, lake\)"):
        restore_backup(stopped, archive)
    assert content(stopped) == before


@pytest.mark.parametrize("cut", [1, 200, 600])
def test_truncated_archive_is_refused_and_the_box_does_not_start_until_the_restore_is_repeated(
    stopped: BoxSettings, tmp_path: Path, cut: int
):
    archive, broken = tmp_path / "box.tar.gz", tmp_path / "broken.tar.gz"
    write_backup(stopped, archive, now=NOW)
    broken.write_bytes(archive.read_bytes()[:-cut])
    other = settings(tmp_path / "other")
    with pytest.raises(BoxError, match=r"could not be read|incomplete"):
        restore_backup(other, broken)
    with pytest.raises(BoxError, match="interrupted restore"):
        check_restored(other)
    with pytest.raises(BoxError, match="interrupted restore"):
        check_backup(other, tmp_path / "new.tar.gz")
    restore_backup(other, archive)
    check_restored(other)
    assert content(other) == content(stopped)


def test_changed_byte_is_found(stopped: BoxSettings, tmp_path: Path):
    (stopped.var / "kafka" / "random").write_bytes(random.Random(0).randbytes(50_000))
    archive = tmp_path / "box.tar.gz"
    write_backup(stopped, archive, now=NOW)
    good = archive.read_bytes()
    for at in range(len(good) // 4, len(good) * 3 // 4, 997):  # in the random bytes, each of which matters
        archive.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises(BoxError, match=r"could not be read"):
            restore_backup(settings(tmp_path / "other"), archive)


def test_archive_without_its_last_member_is_incomplete(stopped: BoxSettings, tmp_path: Path):
    archive, shorter = tmp_path / "box.tar.gz", tmp_path / "shorter.tar.gz"
    write_backup(stopped, archive, now=NOW)
    with tarfile.open(archive) as source, tarfile.open(shorter, "w:gz") as target:
        for member in source.getmembers()[:-1]:
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
    with pytest.raises(BoxError, match=r"incomplete: 5 files of \?"):
        restore_backup(settings(tmp_path / "other"), shorter)


def test_restore_that_ended_between_two_moves_can_be_repeated(
    stopped: BoxSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = tmp_path / "box.tar.gz"
    write_backup(stopped, archive, now=NOW)
    other = settings(tmp_path / "other")
    rename = Path.rename

    def fail_at_postgres(path: Path, target: Path) -> Path:
        if path.name == "postgres":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_at_postgres)
    with pytest.raises(KeyboardInterrupt):
        restore_backup(other, archive)
    monkeypatch.undo()
    with pytest.raises(BoxError, match="interrupted restore"):
        check_restored(other)
    restore_backup(other, archive)
    assert content(other) == content(stopped)


def test_other_files_are_no_backups(tmp_path: Path):
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz") as tar:
        tar.add(__file__, arcname="test.py")
    (tmp_path / "text.tar.gz").write_text("text")
    box = settings(tmp_path / "var")
    for path, reason in ((other, "no backup"), (tmp_path / "text.tar.gz", "read"), (tmp_path / "missing", "read")):
        with pytest.raises(BoxError, match=reason):
            restore_backup(box, path)
