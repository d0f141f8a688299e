"""Programs of the box, to compare with the files that start the same ones elsewhere."""

import re
from collections.abc import Iterable
from pathlib import Path

from localbox.catalogue import programs
from localbox.program import Program
from localbox.settings import settings_from


def box_programs(var: Path, **more: str) -> list[Program]:
    """Return all programs, with services that are not the box's own. `more`: further variables."""
    foreign = {"DATABASE_URL": "postgresql://x@y/z", "REDIS_URL": "redis://y", "PENSTOCK_KAFKA": "y:1"}
    return programs(settings_from({"PENSTOCK_VAR": str(var), **foreign, **more}, dotenv=None))


def plain(command: Iterable[str]) -> list[str]:
    """Return a command without directories, addresses, names of replicas, log levels and what holds only in a box."""
    words = [re.sub(r".*/", "", word) for word in command]
    words = ["python" if word.startswith("python") else word for word in words]
    words = [re.sub(r"ingest-\d+|\$\(POD_NAME\)", "<replica>", word) for word in words]
    left_out = ("127.0.0.1", "0.0.0.0", "--log-level", "-l", "warning", "--box-starts")  # noqa: S104
    return [word for word in words if word not in left_out]
