"""Programs in Go that tests run, built once from the module proxy by their pinned version."""

import os
import subprocess
from pathlib import Path

from localbox.jars import locked
from localbox.settings import ROOT

TOOLS = ROOT / "var" / "tools"


def go_tool(package: str, version: str) -> Path:
    """Return the program of a Go package. Building it takes minutes on two cores, the first time."""
    folder = TOOLS / f"{package.rpartition('/')[2]}-{version}"
    program = folder / package.rpartition("/")[2]
    TOOLS.mkdir(parents=True, exist_ok=True)
    with locked(TOOLS / "build.lock"):
        if not program.exists():
            env = os.environ | {"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"}
            subprocess.run(["nice", "go", "install", f"{package}@{version}"], cwd=TOOLS, env=env, check=True)
    return program
