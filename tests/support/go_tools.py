"""Programs in Go that tests run, built once from the module proxy in a pinned version."""

import os
import subprocess
from pathlib import Path
from typing import Final

from localbox.jars import locked
from localbox.settings import ROOT

TOOLS: Final = ROOT / "var" / "tools"
PACKAGES: Final = {
    "caddy": "github.com/caddyserver/caddy/v2/cmd/caddy",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5",
    "versitygw": "github.com/versity/versitygw/cmd/versitygw",
}


def go_tool(name: str, version: str) -> Path:
    """Return the program. The first call builds it, which takes minutes on two cores."""
    folder = TOOLS / f"{name}-{version}"
    program = folder / name
    TOOLS.mkdir(parents=True, exist_ok=True)
    with locked(TOOLS / "build.lock"):
        if not program.exists():
            env = os.environ | {"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"}
            subprocess.run(["nice", "go", "install", f"{PACKAGES[name]}@{version}"], cwd=TOOLS, env=env, check=True)
    return program
