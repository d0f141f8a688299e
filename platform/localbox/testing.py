"""The box's API for tests: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from localbox.box import Box, free_ports
from localbox.jars import locked
from localbox.kafka_training import ensure_kafka_archive
from localbox.services.postgres import find_binaries, postgres, version
from localbox.settings import ROOT
from localbox.testing_kafka import SWITCH, broker_env

__all__ = ["ROOT", "Box", "box_folder", "box_of", "free_ports"]


@contextmanager
def box_folder(name: str) -> Iterator[Path]:
    """Yield a folder for the data of a box, under var/test, and remove it afterwards.

    pytest makes its folder of temporary directories inaccessible to Postgres's user whenever another run starts:
    Postgres ends there, and cannot restart.
    """
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def box_of(*names: str, extra: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Iterator[Box]:
    """Run a box with only these programs, or with all, plus the demo's programs in `extra`.

    In a run with a secured Kafka (localbox.testing_kafka), the box's own is secured, too.
    Its data is under var/test (`box_folder`). Its Postgres does not wait for the disk: rows survive the end of any
    process, which tests cause, but not of the machine. Its database has the migrations already, as a copy: to run all
    of them takes longer than many tests.
    """
    with box_folder(names[0] if names else "whole") as var:
        given = dict(env or {})
        kafka = {SWITCH: "false"} if "PENSTOCK_KAFKA" in given else broker_env(var)
        box = Box(var, only=names, extra=extra, env=given | kafka)
        if not names or "postgres" in names:
            _copy_migrated_postgres(box, var.parent)
        if not names or "kafka" in names:
            ensure_kafka_archive(box.settings)
        with box:
            yield box


def _copy_migrated_postgres(box: Box, parent: Path) -> None:
    """Give the box's own Postgres a copy of a data directory with `fsync = off` and a migrated database."""
    server = postgres(box.settings)
    if server.prepare is None:
        return
    original = parent / f"migrated-{_digest_of_migrations(box)}"
    with locked(parent / "migrated.lock"):
        if not original.exists():
            for older in parent.glob("migrated-*/"):
                shutil.rmtree(older)
            _make_migrated_postgres(original)
    subprocess.run(["cp", "-a", str(original), str(box.settings.var / "postgres")], check=True)  # keeps owners


def _make_migrated_postgres(target: Path) -> None:
    var = Path(tempfile.mkdtemp(prefix="migrate-", dir=target.parent))
    try:
        box = Box(var, only=("postgres", "migrate"))
        server = postgres(box.settings)
        if server.prepare is not None:
            server.prepare()
        with (var / "postgres" / "postgresql.auto.conf").open("a") as file:
            file.write("fsync = off\n")  # tests empty the 110 tables often
        with box:
            pass
        (var / "postgres").rename(target)
    finally:
        shutil.rmtree(var, ignore_errors=True)


def _digest_of_migrations(box: Box) -> str:
    """Return a digest of all that decides what the migrated database looks like."""
    server = find_binaries(box.settings.var / "postgres")
    digest = hashlib.sha256(f"{server} {version(server)}".encode())
    others = ("mgmt/tenancy/row_policies.py", "platform/localbox/services/postgres.py", "requirements-dev.lock")
    for path in sorted((*ROOT.glob("mgmt/migrations/*.py"), *(ROOT / name for name in others), Path(__file__))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
