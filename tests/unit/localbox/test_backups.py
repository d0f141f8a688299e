"""Backup and restore of a stopped box, on directories without programs."""

import io
import os
import random
import resource
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from localbox.backups import check_restored, restore_backup, write_backup
from localbox.errors import BoxError
from localbox.lock import box_lock
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


def restored(box: BoxSettings) -> dict[str, tuple[int, str]]:
    """Return the content without the secrets that the box had before."""
    return {name: found for name, found in content(box).items() if not name.endswith(".before-restore")}


def write_now(box: BoxSettings, archive: Path) -> None:
    write_backup(box, archive, now=NOW)


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
    assert restored(other) == content(stopped)
    assert written.files == 5  # with secrets.env
    check_restored(other)


def test_fifo_is_left_out(stopped: BoxSettings, tmp_path: Path):
    before = content(stopped)
    os.mkfifo(stopped.var / "data" / "fifo")
    write_now(stopped, tmp_path / "box.tar.gz")
    fresh = settings(tmp_path / "fresh")
    restore_backup(fresh, tmp_path / "box.tar.gz")
    assert restored(fresh) == before


def test_incomplete_backup_is_refused(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"

    def refused(box: BoxSettings, path: Path, reason: str) -> None:
        with pytest.raises(BoxError, match=reason):
            write_backup(box, path, now=NOW)
        assert not path.exists() or path == tmp_path / "taken"

    refused(stopped, stopped.var / "box.tar.gz", "keep it on another disk")
    refused(stopped, tmp_path / "missing" / "box.tar.gz", "No such file")
    (tmp_path / "taken").touch()
    refused(stopped, tmp_path / "taken", "exists")
    refused(settings(tmp_path / "empty"), archive, "no data of a box")
    refused(settings(stopped.var, REDIS_URL="redis://elsewhere:6379/0"), archive, "REDIS_URL: not the box's own")
    (stopped.var / "kafka").rename(tmp_path / "disk")
    (stopped.var / "kafka").symlink_to(tmp_path / "disk")
    refused(stopped, archive, "kafka is a link")


def test_folder_that_cannot_be_read_fails_the_backup(
    stopped: BoxSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    scandir = os.scandir

    def refuse_kafka(path: str) -> object:  # root may read every folder
        if str(path).endswith("/kafka/log"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse_kafka)
    with pytest.raises(BoxError, match="Permission denied"):
        write_backup(stopped, tmp_path / "box.tar.gz", now=NOW)


def test_box_that_starts_is_neither_backed_up_nor_restored(stopped: BoxSettings, tmp_path: Path):
    with box_lock(stopped) as held:
        assert held is not None
        for command in (write_now, restore_backup):
            with pytest.raises(BoxError, match="stop it first"):
                command(stopped, tmp_path / "box.tar.gz")


def test_box_cannot_start_during_a_backup(stopped: BoxSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    free: list[bool] = []
    add = tarfile.TarFile.add

    def note(tar: tarfile.TarFile, name: Path, **more: Any) -> None:
        with box_lock(stopped) as held:
            free.append(held is not None)
        add(tar, name, **more)

    monkeypatch.setattr(tarfile.TarFile, "add", note)
    write_backup(stopped, tmp_path / "box.tar.gz", now=NOW)
    assert set(free) == {False}


def test_full_disk_leaves_no_archive(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"
    before = content(stopped)
    with files_of_at_most(200), pytest.raises(BoxError, match="could not be written"):
        write_backup(stopped, archive, now=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["var"]
    assert content(stopped) == before


@pytest.mark.parametrize("moved", [(), ("kafka", "postgres", "data", "lake")])
def test_restore_deletes_nothing(stopped: BoxSettings, tmp_path: Path, moved: tuple[str, ...]):
    archive = tmp_path / "box.tar.gz"
    write_backup(stopped, archive, now=NOW)
    for name in moved:
        (stopped.var / name).rename(stopped.var / f"{name}.old")
    before = content(stopped)
    for path in (archive, tmp_path / "missing.tar.gz", Path()):
        with pytest.raises(BoxError, match=r"must be empty for a restore, and has .*kafka"):
            restore_backup(stopped, path)
    assert content(stopped) == before


def test_archive_in_the_directory_of_the_box_survives(stopped: BoxSettings, tmp_path: Path):
    other = settings(tmp_path / "other")
    write_backup(stopped, tmp_path / "box.tar.gz", now=NOW)
    archive = (tmp_path / "box.tar.gz").rename(other.var / "box.tar.gz")
    with pytest.raises(BoxError, match=r"must be empty for a restore, and has box.tar.gz"):
        restore_backup(other, archive)
    assert archive.exists()


def test_secrets_of_before_are_kept(stopped: BoxSettings, tmp_path: Path):
    archive = tmp_path / "box.tar.gz"
    write_backup(stopped, archive, now=NOW)
    other = settings(tmp_path / "other")
    before = (other.var / "secrets.env").read_text()
    restore_backup(other, archive)
    assert (other.var / "secrets.env.before-restore").read_text() == before
    assert (other.var / "secrets.env").read_text() == (stopped.var / "secrets.env").read_text()


def test_failed_restore_leaves_the_directory_as_it_was(stopped: BoxSettings, tmp_path: Path):
    other = settings(tmp_path / "other")
    before = content(other)
    with pytest.raises(BoxError, match="No such file"):
        restore_backup(other, tmp_path / "missing.tar.gz")
    assert content(other) == before
    check_restored(other)


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
def test_archive_writes_nothing_outside(tmp_path: Path, kind: bytes):
    victim, archive = tmp_path / "victim", tmp_path / "box.tar.gz"
    victim.write_text("mine")
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in (("penstock-backup.json", b'{"format": 1}'), ("link", None), ("link", b"theirs")):
            member = tarfile.TarInfo(name)
            member.size = len(text or b"")
            if text is None:
                member.type, member.linkname = kind, "../../../victim"
            tar.addfile(member, io.BytesIO(text or b""))
    with pytest.raises(BoxError, match="could not be read"):
        restore_backup(settings(tmp_path / "var"), archive)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("cut", [1, 200, 600])
def test_truncated_archive_is_refused(stopped: BoxSettings, tmp_path: Path, cut: int):
    archive, broken = tmp_path / "box.tar.gz", tmp_path / "broken.tar.gz"
    write_backup(stopped, archive, now=NOW)
    broken.write_bytes(archive.read_bytes()[:-cut])
    other = settings(tmp_path / "other")
    before = content(other)
    with pytest.raises(BoxError, match=r"could not be read|incomplete"):
        restore_backup(other, broken)
    assert content(other) == before
    restore_backup(other, archive)
    assert restored(other) == content(stopped)


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
    with pytest.raises(BoxError, match="a restore was interrupted"):
        check_restored(other)
    assert restore_backup(other, tmp_path / "any") is None
    check_restored(other)
    assert restored(other) == content(stopped)


def test_other_files_are_no_backups(tmp_path: Path):
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz") as tar:
        tar.add(__file__, arcname="test.py")
    (tmp_path / "text.tar.gz").write_text("text")
    box = settings(tmp_path / "var")
    for path, reason in ((other, "not a backup"), (tmp_path / "text.tar.gz", "read"), (tmp_path / "missing", "read")):
        with pytest.raises(BoxError, match=reason):
            restore_backup(box, path)
