"""What tests take from the box: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from localbox.box import Box, free_ports
from localbox.settings import ROOT

__all__ = ["ROOT", "Box", "box_of", "free_ports"]


@contextmanager
def box_of(*names: str, env: Mapping[str, str] | None = None) -> Iterator[Box]:
    """A box with these services alone, or with all, under var/test: pytest's own are closed to Postgres's user."""
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix=f"{names[0] if names else 'whole'}-", dir=parent))
    try:
        with Box(var, only=names, env=env) as box:
            yield box
    finally:
        shutil.rmtree(var, ignore_errors=True)
