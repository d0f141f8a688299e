"""Finds the browser of the system: `python -m tests.support.chromium` fails without one."""

import shutil
import sys
from collections.abc import Callable
from typing import Final

# Names on the PATH, then places that are usually not on it: of snap, and of macOS, which nobody has tried.
NAMES: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/snap/bin/chromium",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def find_chromium(which: Callable[[str], str | None] = shutil.which) -> str | None:
    """Return the path of Chromium or Chrome, the first of the usual names that `which` finds; None without one."""
    return next((path for name in NAMES if (path := which(name))), None)


if __name__ == "__main__":
    sys.exit(0 if find_chromium() else 1)
