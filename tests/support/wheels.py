"""Wheels of this tree and of earlier commits, installed in environments that have nothing else of Penstock."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from localbox.settings import ROOT


class Installation(NamedTuple):
    """Virtual environment with a wheel, and the variables of its box."""

    home: Path
    cwd: Path
    env: dict[str, str]

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the console script, outside of the checkout and without its paths and variables."""
        self.cwd.mkdir(exist_ok=True)
        inside = ("PENSTOCK", "PYTHON", "DJANGO")
        outside = {name: value for name, value in os.environ.items() if not name.startswith(inside)}
        given = outside | {"HOME": str(self.cwd)} | self.env | env
        return subprocess.run(
            [str(self.home / "bin/penstock"), *words],
            env=given,
            cwd=self.cwd,
            capture_output=True,
            text=True,
            check=False,
        )


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """Build the wheel of a tree into this folder and return it."""
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--wheel-dir"]
    subprocess.run([sys.executable, "-m", "pip", *build, str(folder), str(source)], check=True)
    (found,) = folder.glob("penstock-*-py3-none-any.whl")
    return found


def build_earlier_wheel(folder: Path, commit: str) -> Path:
    """Build the wheel of a commit or tag of this repository."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    return build_wheel(folder / "dist", source)


def install(wheel: Path, folder: Path) -> Path:
    """Return a new environment with the wheel, which finds other packages in that of the tests."""
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "packages_of_the_tests.pth").write_text(sysconfig.get_paths()["purelib"])
    words: Sequence[str] = ("install", "--quiet", "--no-deps", "--disable-pip-version-check", str(wheel))
    subprocess.run([sys.executable, "-m", "pip", "--python", str(folder), *words], check=True)
    script = folder / "bin" / "celery"  # of a package that this environment has by the file above only
    script.write_text(f"#!{folder / 'bin' / 'python'}\nfrom celery.__main__ import main\n\nmain()\n")
    script.chmod(0o755)
    return folder
