"""The containers' health check: exits with 0 if a program is healthy, else prints the reason and exits with 1.

`python -m localbox.healthy URL`: GET answers 200.
`python -m localbox.healthy FILE SECONDS`: the file was written within these seconds. For programs without a port.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from localbox.probes import http_ready


def file_fresh(path: Path, within_s: float, now_s: float) -> str | None:
    """Return None if the file was written within so many seconds before `now_s`, else the reason.

    Of a database, the newest of its files counts: some kinds of dbm add suffixes to its name.
    """
    written_s = max((file.stat().st_mtime for file in path.parent.glob(f"{path.name}*")), default=None)
    if written_s is None:
        return f"{path} does not exist"
    age_s = now_s - written_s
    return None if age_s <= within_s else f"{path} needs to be at most {within_s:g} s old, is {age_s:.0f} s old"


def main(arguments: Sequence[str]) -> str | None:
    """Run the check of the command line; return None if the program is healthy, else the reason."""
    if len(arguments) == 1:
        return http_ready(arguments[0])
    path, within_s = arguments
    return file_fresh(Path(path), float(within_s), time.time())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
