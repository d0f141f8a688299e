"""Finds Java 17 or newer: in JAVA_HOME or on PATH, else installs it with apt-get if run as root."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localbox.errors import BoxError

NEEDED: Final = 17
_PACKAGE: Final = "openjdk-17-jre-headless"


def find_java(env: Mapping[str, str] = os.environ) -> Path:
    """Return the `java` to use; install one if there is none and we are root. Raises BoxError that says what to do."""
    if java := _find(env):
        return java
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        _apt_install()
        if java := _find(env):
            return java
    raise BoxError(
        f"Java {NEEDED} or newer is needed for Kafka and Spark and was found neither in JAVA_HOME nor on PATH: "
        f"install it (on Debian or Ubuntu: apt-get install {_PACKAGE}) or set JAVA_HOME."
    )


def java_version(java: Path) -> int | None:
    """Return Java's major version, or None if the program cannot be run or does not print one."""
    try:
        result = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(found[1]) if found else None


def _find(env: Mapping[str, str]) -> Path | None:
    homes = [Path(env["JAVA_HOME"]) / "bin" / "java"] if env.get("JAVA_HOME") else []
    on_path = shutil.which("java", path=env.get("PATH"))
    for java in [*homes, *([Path(on_path)] if on_path else [])]:
        if (java_version(java) or 0) >= NEEDED:
            return java
    return None


def _apt_install() -> None:
    print(f"Java was not found: installing {_PACKAGE} ...", flush=True)
    if not _apt("install", "-y", "-q", "--no-install-recommends", _PACKAGE):
        _apt("update", "-q")
        _apt("install", "-y", "-q", "--no-install-recommends", _PACKAGE)


def _apt(*words: str) -> bool:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", *words], env=env, check=False, capture_output=True).returncode == 0
