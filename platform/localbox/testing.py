"""The box's API for tests: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from localbox.box import Box, free_ports
from localbox.kafka_training import ensure_kafka_archive
from localbox.services.postgres import postgres
from localbox.settings import ROOT

__all__ = ["ROOT", "Box", "box_of", "free_ports"]


@contextmanager
def box_of(*names: str, extra: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Iterator[Box]:
    """Run a box with only these programs, or with all, plus the demo's programs in `extra`.

    Its data is under var/test: pytest makes its folder of temporary directories inaccessible to Postgres's user on each
    run, so that Postgres could not restart there. Its Postgres does not wait for the disk: rows survive the end of any
    process, which tests cause, but not of the machine.
    """
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix=f"{names[0] if names else 'whole'}-", dir=parent))
    try:
        box = Box(var, only=names, extra=extra, env=env)
        if not names or "postgres" in names:
            _turn_off_fsync(box)
        if not names or "kafka" in names:
            ensure_kafka_archive(box.settings)
        with box:
            yield box
    finally:
        shutil.rmtree(var, ignore_errors=True)


def _turn_off_fsync(box: Box) -> None:
    """Create the data directory of the box's own Postgres with `fsync = off`, as tests empty its 110 tables often."""
    server = postgres(box.settings)
    if server.prepare is not None:
        server.prepare()
        with (box.settings.var / "postgres" / "postgresql.auto.conf").open("a") as file:
            file.write("fsync = off\n")
