"""Backup and restore of a stopped box: one archive of everything that it keeps.

Postgres has the offsets up to which the ledger has counted, Kafka the records: copies of one moment agree (0503).
"""

import gzip
import io
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from localbox.end_processes import marked
from localbox.errors import BoxError
from localbox.settings import BoxSettings
from localbox.supervisor import living

FORMAT: Final = 1
_FIRST, _LAST = "penstock-backup.json", "penstock-backup-end.json"
_RESTORING: Final = "restoring"  # folder in var/: a restore that has not ended
# Made again at each start, or of development. All else is kept, so that a new kind of data is not missed.
_NOT_KEPT: Final = frozenset(
    {
        "log",
        "run",
        "spark",
        "spark-home",
        "test",
        "bench",
        "coverage",
        "client",
        "docs-site",
        "docs-doctrees",
        "once",
        _RESTORING,
    }
)
_DATA: Final = ("kafka", "postgres", "data", "lake")  # a box that has one of these is not overwritten
_BLOCK: Final = 1024 * 1024
_LEVEL: Final = 1  # of gzip: Kafka's segments are compressed by senders, and the box waits meanwhile


class Summary(Struct, frozen=True):
    """What an archive contains."""

    files: int
    size: int  # of the files, in bytes


def check_backup(settings: BoxSettings, archive: Path) -> None:
    """Find out before the box stops whether a backup can be written. Raises BoxError."""
    if others := _external(settings):
        raise BoxError(f"{', '.join(others)}: not the box's own, so a backup would not contain it. Use its own tools.")
    if archive.exists():
        raise BoxError(f"{archive} exists: name a new file.")
    if archive.absolute().is_relative_to(settings.var):
        raise BoxError(f"{archive} is in {settings.var}, which a restore replaces: name a file elsewhere.")
    if not archive.absolute().parent.is_dir():
        raise BoxError(f"{archive.absolute().parent} does not exist.")
    if (settings.var / _RESTORING).exists():
        raise BoxError(f"{settings.var} has an interrupted restore: run the restore again first.")
    if not any((settings.var / name).exists() for name in _DATA):
        raise BoxError(f"{settings.var} has no data of a box.")
    needed = sum(path.lstat().st_blocks * 512 for path in _kept(settings.var))
    free = shutil.disk_usage(archive.absolute().parent).free
    if free < needed:
        raise BoxError(f"{archive}: needs up to {needed:,} bytes, and {free:,} are free.")


def write_backup(settings: BoxSettings, archive: Path, *, now: datetime) -> Summary:
    """Write everything that the stopped box keeps to a new file, which appears only when it is complete.

    The archive is a gzipped tar. Its last member has the number of files, so that a truncated archive is recognised.
    Raises BoxError, also if the box runs.
    """
    check_backup(settings, archive)
    _require_stopped(settings)
    partial = archive.with_name(f"{archive.name}.partial")
    try:
        with open(partial, "wb", opener=_private) as raw:
            with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=_LEVEL) as tar:
                _add_json(tar, _FIRST, {"format": FORMAT, "created_at": now.isoformat()})
                for path in _kept(settings.var):
                    tar.add(path, arcname=str(path.relative_to(settings.var)), recursive=False)
                summary = _summary(tar.getmembers())
                _add_json(tar, _LAST, asdict(summary))
            raw.flush()
            os.fsync(raw.fileno())
        partial.rename(archive)
    except OSError as exc:
        raise BoxError(f"{archive} could not be written: {exc}") from exc
    finally:
        partial.unlink(missing_ok=True)
    return summary


def restore_backup(settings: BoxSettings, archive: Path) -> Summary:
    """Bring back what the archive contains, into a directory without data of a box.

    An interrupted restore can be repeated; until then the box does not start. Raises BoxError.
    """
    _require_stopped(settings)
    staging = settings.var / _RESTORING
    if not staging.exists() and (found := [name for name in _DATA if (settings.var / name).exists()]):
        raise BoxError(f"{settings.var} has data of a box ({', '.join(found)}): move it away first.")
    _remove_kept(settings.var)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700)
    summary = _extract(archive, staging)
    for path in sorted(staging.iterdir()):
        path.rename(settings.var / path.name)
    staging.rmdir()
    return summary


def check_restored(settings: BoxSettings) -> None:
    """Refuse to start on half a restore. Raises BoxError."""
    if (settings.var / _RESTORING).exists():
        raise BoxError(f"{settings.var} has an interrupted restore: run the restore again, or remove the directory.")


def _extract(archive: Path, target: Path) -> Summary:
    """Unpack the archive and compare it with its last member. Raises BoxError."""
    end: dict[str, int] | None = None
    extracted: list[tarfile.TarInfo] = []
    try:
        with gzip.open(archive) as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
            members = iter(tar)
            first = next(members, None)
            if first is None or first.name != _FIRST or _read_json(tar, first)["format"] != FORMAT:
                raise BoxError(f"{archive} is no backup that this release can read.")
            for member in members:
                if member.name == _LAST:
                    end = _read_json(tar, member)
                else:
                    tar.extract(member, target, filter="tar")
                    extracted.append(member)
            while raw.read(_BLOCK):  # the checksum is at the end
                pass
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, KeyError) as exc:
        raise BoxError(f"{archive} could not be read: {exc}") from exc
    summary = _summary(extracted)
    if end != asdict(summary):
        raise BoxError(f"{archive} is incomplete: {summary.files} files of {end['files'] if end else '?'}.")
    return summary


def _summary(members: Iterable[tarfile.TarInfo]) -> Summary:
    sizes = [member.size for member in members if member.isfile() and member.name != _FIRST]
    return Summary(len(sizes), sum(sizes))


def _kept(var: Path) -> Iterator[Path]:
    """Yield folders, files and links, parents first."""
    for top in sorted(var.iterdir()):
        if top.name in _NOT_KEPT:
            continue
        yield top
        if top.is_dir() and not top.is_symlink():
            yield from sorted(top.rglob("*"))


def _remove_kept(var: Path) -> None:
    """Remove what an interrupted restore has moved, and the secrets of a box that never started."""
    for top in var.iterdir():
        if top.name not in _NOT_KEPT:
            shutil.rmtree(top) if top.is_dir() and not top.is_symlink() else top.unlink()


def _require_stopped(settings: BoxSettings) -> None:
    if living(settings) is not None or marked(settings.var):
        raise BoxError("the box is running: stop it first, with `make down`.")


def _external(settings: BoxSettings) -> list[str]:
    owned = {
        "DATABASE_URL": settings.owns_postgres,
        "REDIS_URL": settings.owns_redis,
        "PENSTOCK_KAFKA": settings.owns_kafka,
    }
    return [name for name, own in owned.items() if not own]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


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
