"""What tests take from the box: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from localbox.box import Box, free_ports
from localbox.settings import ROOT

__all__ = ["ROOT", "Box", "box_of", "free_ports"]


@contextmanager
def box_of(*names: str, extra: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Iterator[Box]:
    """Run a box with these programs alone, or with all, and those of the demo that are asked for as `extra`.

    Its data are under var/test: each run of pytest closes the folder of all its temporary ones to Postgres's user, who
    could not start again there.
    """
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix=f"{names[0] if names else 'whole'}-", dir=parent))
    try:
        with Box(var, only=names, extra=extra, env=env) as box:
            yield box
    finally:
        shutil.rmtree(var, ignore_errors=True)
