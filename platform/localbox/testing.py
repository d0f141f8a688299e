"""The box's API for tests: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`."""

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
    """Run a box with only these programs, or with all, plus the demo's programs in `extra`.

    Its data is under var/test: pytest makes its folder of temporary directories inaccessible to Postgres's user on each
    run, so that Postgres could not restart there.
    """
    parent = ROOT / "var" / "test"
    parent.mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix=f"{names[0] if names else 'whole'}-", dir=parent))
    try:
        with Box(var, only=names, extra=extra, env=env) as box:
            yield box
    finally:
        shutil.rmtree(var, ignore_errors=True)
