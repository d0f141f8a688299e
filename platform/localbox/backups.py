"""Backup and restore of a stopped box: one archive of everything that it keeps.

Postgres has the offsets up to which the ledger has counted, Kafka the records: copies of one moment agree (0509).
"""

import gzip
import io
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct
from msgspec.structs import asdict

from localbox.end_processes import marked
from localbox.errors import BoxError
from localbox.lock import box_lock
from localbox.settings import BoxSettings, command

FORMAT: Final = 1
RESTORING: Final = "restoring"  # folder in var/ of a restore that has not ended
_FIRST, _LAST = "penstock-backup.json", "penstock-backup-end.json"
_SECRETS, _OLD_SECRETS = "secrets.env", "secrets.env.before-restore"
# Logs and what a start makes again; the others are of development. All else is kept: new kinds of data are not missed.
_NOT_KEPT: Final = frozenset({"log", "run", "spark", "spark-home", RESTORING}) | {
    *("test", "bench", "coverage", "client", "docs-site", "docs-doctrees", "once")
}
_BLOCK: Final = 1024 * 1024
_LEVEL: Final = 1  # of gzip: the box is down meanwhile


class Summary(Struct, frozen=True):
    """Size of an archive's content."""

    files: int
    size: int  # of the files, in bytes


def write_backup(settings: BoxSettings, archive: Path, *, now: datetime) -> Summary:
    """Write everything that the stopped box keeps to a new file, which appears only when it is complete.

    The archive is a gzipped tar. Its last member has the number of files, so that a truncated archive is recognised.
    Raises BoxError, also if the box runs; it cannot start meanwhile.
    """
    archive = archive.absolute()
    partial = archive.with_name(f"{archive.name}.partial")
    with _stopped(settings):
        try:
            _check_target(settings, archive)
            partial.unlink(missing_ok=True)  # of an interrupted backup
            with open(partial, "xb", opener=_private) as raw:
                summary = _write(settings.var, raw, now)
                os.fsync(raw.fileno())
            partial.rename(archive)
            _sync_folder(archive.parent)
        except OSError as exc:
            raise BoxError(f"{archive} could not be written: {exc}") from exc
        finally:
            partial.unlink(missing_ok=True)
    return summary


def restore_backup(settings: BoxSettings, archive: Path) -> Summary | None:
    """Bring back what the archive contains, into a var/ without anything of a box. Deletes nothing.

    Everything is unpacked and verified before the first file is moved to its place. Returns None if an earlier restore
    was interrupted after that: it is completed, whatever `archive` is. Raises BoxError.
    """
    staging = settings.var / RESTORING
    content, verified = staging / "content", staging / "verified"
    with _stopped(settings):
        if verified.exists():
            _move_into_place(content, settings.var)
            return None
        _check_empty(settings.var)
        shutil.rmtree(staging, ignore_errors=True)  # of a restore that ended before it was verified
        content.mkdir(parents=True)
        try:
            summary = _extract(archive, content)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        os.sync()
        verified.touch()
        _move_into_place(content, settings.var)
    return summary


def check_restored(settings: BoxSettings) -> None:
    """Refuse to start on half a restore. Raises BoxError."""
    if (settings.var / RESTORING).exists():
        raise BoxError(
            f"a restore was interrupted: run `{command('restore')}` again, or remove {settings.var / RESTORING}."
        )


@contextmanager
def _stopped(settings: BoxSettings) -> Iterator[None]:
    """Keep the box from starting. Raises BoxError if it runs."""
    with box_lock(settings) as held:
        if held is None or marked(settings.var):
            raise BoxError(f"the box is running: stop it first, with `{command('down')}`.")
        yield


def _check_target(settings: BoxSettings, archive: Path) -> None:
    """Find out before anything is written whether the backup would be complete. Raises BoxError, OSError."""
    owned = {
        "DATABASE_URL": settings.owns_postgres,
        "REDIS_URL": settings.owns_redis,
        "PENSTOCK_KAFKA": settings.owns_kafka,
    }
    if others := [name for name, own in owned.items() if not own]:
        raise BoxError(f"{', '.join(others)}: not the box's own, so a backup would not contain it. Use its own tools.")
    if archive.exists():
        raise BoxError(f"{archive} exists: name a new file.")
    if archive.is_relative_to(settings.var):
        raise BoxError(f"{archive} is in {settings.var}: name a file elsewhere, and keep it on another disk.")
    check_restored(settings)
    paths = list(_kept(settings.var))
    if not any(path.name == "PG_VERSION" for path in paths):
        raise BoxError(f"{settings.var} has no data of a box.")
    for path in paths:
        if path.is_symlink() and not path.resolve().is_relative_to(settings.var.resolve()):
            raise BoxError(f"{path} is a link, whose target a backup would not contain: mount it there instead.")
    needed, free = sum(path.lstat().st_blocks * 512 for path in paths), shutil.disk_usage(archive.parent).free
    if free < needed:
        raise BoxError(f"{archive}: needs up to {needed:,} bytes, and {free:,} are free.")


def _check_empty(var: Path) -> None:
    """Raise BoxError if anything is there that a restore would mix with its own files."""
    allowed = _NOT_KEPT | {_SECRETS}
    if found := sorted(path.name for path in var.iterdir() if path.name not in allowed):
        raise BoxError(f"{var} must be empty for a restore, and has {', '.join(found)}: move all of it away first.")


def _write(var: Path, raw: io.BufferedIOBase, now: datetime) -> Summary:
    with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=_LEVEL) as tar:
        _add_json(tar, _FIRST, {"format": FORMAT, "created_at": now.isoformat()})
        for path in _kept(var):
            tar.add(path, arcname=str(path.relative_to(var)), recursive=False)
        summary = _summary(tar.getmembers())
        _add_json(tar, _LAST, asdict(summary))
    raw.flush()
    return summary


def _extract(archive: Path, target: Path) -> Summary:
    """Unpack the archive, and compare it with its checksum and its last member. Raises BoxError."""
    end: dict[str, int] | None = None
    extracted: list[tarfile.TarInfo] = []
    try:
        with gzip.open(archive) as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
            members = iter(tar)
            first = next(members, None)
            if first is None or first.name != _FIRST or _read_json(tar, first)["format"] != FORMAT:
                raise BoxError(f"{archive} is not a backup that this release can read.")
            for member in members:
                if member.name == _LAST:
                    end = _read_json(tar, member)
                else:
                    tar.extract(member, target, filter=_safe)
                    extracted.append(member)
            while raw.read(_BLOCK):  # the checksum is at the end
                pass
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, KeyError) as exc:
        raise BoxError(f"{archive} could not be read: {exc}") from exc
    summary = _summary(extracted)
    if end != asdict(summary):
        raise BoxError(f"{archive} is incomplete: {summary.files} files of {end['files'] if end else '?'}.")
    return summary


def _safe(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    """Refuse members outside of the target, and leave out their owners; a folder keeps its mode, as Postgres needs."""
    return tarfile.data_filter(member, target).replace(mode=member.mode & 0o755)


def _move_into_place(content: Path, var: Path) -> None:
    """Move what was unpacked. Can be repeated after an interruption. Raises BoxError if something is in its place."""
    for path in sorted(content.iterdir()):
        place = var / path.name
        if path.name == _SECRETS and place.exists():  # generated by a new box, or of data that was moved away
            place.rename(var / _OLD_SECRETS)
        if place.exists():
            raise BoxError(
                f"{place} is in the place of a restored one: move it away, and run `{command('restore')}` again."
            )
        path.rename(place)
    os.sync()
    shutil.rmtree(content.parent)


def _kept(var: Path) -> Iterator[Path]:
    """Yield folders, files and links, parents first, but no FIFO or socket. Raises OSError for an unreadable folder."""
    for top in sorted(var.iterdir()):
        if top.name not in _NOT_KEPT:
            yield top
            if top.is_dir() and not top.is_symlink():
                for folder, folders, files in os.walk(top, onerror=_raise):
                    found = (Path(folder, name) for name in sorted((*folders, *files)))
                    yield from (path for path in found if path.is_file() or path.is_dir() or path.is_symlink())


def _raise(error: OSError) -> NoReturn:
    raise error


def _summary(members: Iterable[tarfile.TarInfo]) -> Summary:
    sizes = [member.size for member in members if member.isfile() and member.name != _FIRST]
    return Summary(len(sizes), sum(sizes))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _add_json(tar: tarfile.TarFile, name: str, value: dict[str, int | str]) -> None:
    text = json.dumps(value).encode()
    member = tarfile.TarInfo(name)
    member.size = len(text)
    tar.addfile(member, io.BytesIO(text))


def _read_json(tar: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, int]:
    file = tar.extractfile(member)
    if file is None:
        raise ValueError(f"{member.name} is not a file")
    value: dict[str, int] = json.loads(file.read())
    return value
