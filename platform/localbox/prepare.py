"""Prepare .venv from a lock file: `python3 platform/localbox/prepare.py requirements.lock`.

Runs on the system's Python with the standard library alone, before anything is installed. A stamp named after the
lock's hash says what .venv holds, so a second run costs nothing; a file lock lets two at once do the work once.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    """Prepare what is asked for, saying nothing if it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lock", help="requirements.lock, or requirements-dev.lock, which holds all of it and more")
    parser.add_argument("--browser", action="store_true", help="Chromium too, for the tests that use one")
    given = parser.parse_args()
    if not (3, 11) <= sys.version_info[:2] < (3, 13):
        sys.exit(
            f"penstock: Python 3.11 or 3.12 is needed, this is {sys.version.split()[0]}: make PYTHON=python3.11 ..."
        )
    (ROOT / "var").mkdir(exist_ok=True)
    with (ROOT / "var" / "venv.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        prepare(ROOT / given.lock)
    if given.browser:
        ensure_browser()


def prepare(lock: Path) -> None:
    """Make .venv hold exactly what the lock names, or more."""
    if works() and any(stamp(name).exists() for name in {lock, ROOT / "requirements-dev.lock"}):
        return
    print(f"preparing .venv from {lock.name} ...", file=sys.stderr, flush=True)
    if not works():
        shutil.rmtree(VENV, ignore_errors=True)
        run(sys.executable, "-m", "venv", str(VENV))
    run(
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
        str(lock),
    )
    for old in VENV.glob("penstock-*.stamp"):
        old.unlink()
    stamp(lock).touch()


def stamp(lock: Path) -> Path:
    """The file that says: this lock is installed."""
    return VENV / f"penstock-{lock.stem}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}.stamp"


def works() -> bool:
    """Whether .venv is there and its Python starts (a clone that was moved has one that does not)."""
    return PYTHON.exists() and subprocess.run([str(PYTHON), "-c", ""], check=False, capture_output=True).returncode == 0


def run(*command: str) -> None:
    """Run it with its output on stderr: stdout is for results."""
    code = subprocess.run(command, check=False, stdout=sys.stderr).returncode
    if code:
        sys.exit(f"penstock: `{' '.join(command)}` failed with exit code {code}")


def ensure_browser() -> None:
    """Install Chromium through the system's package manager if there is none and we may."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        print("Chromium is not here: installing chromium ...", file=sys.stderr, flush=True)
        for command in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *command], env=env, check=False, stdout=subprocess.DEVNULL)
    if not any(shutil.which(name) for name in BROWSERS):
        sys.exit("penstock: Chromium is needed for the browser tests: install it (Debian: apt-get install chromium).")


if __name__ == "__main__":
    main()
