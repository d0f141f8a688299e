"""The installed data plane and PySpark, and the entries of PYTHONPATH that a cell's application must not see."""

import importlib.util
import os
from pathlib import Path
from typing import Final

import dataplane
from controlplane.compute.releases import PACKAGE

# In the environment of a box's worker: the release of the installed code when the supervisor started.
INSTALLED_VARIABLE: Final = "PENSTOCK_INSTALLED_RELEASE"


def installed_root() -> Path:
    """Return the directory that contains the installed data plane, from which a release is built."""
    return Path(str(dataplane.__file__)).parents[1]


def spark_home() -> Path:
    """Return the directory of the running interpreter's PySpark. Raises RuntimeError if it has none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark is not installed in this Python environment")
    return Path(spec.origin).parent


def home_without_zip(home: Path) -> Path:
    """Link Spark's home without `python` into `home`, so that workers import the compiled PySpark and not its zip.

    Compiling the zip took each Python worker a second of CPU, and Spark waits 10 s at most for one that plans a query.
    """
    home.mkdir(parents=True, exist_ok=True)
    for entry in spark_home().iterdir():
        link = home / entry.name
        if entry.name != "python" and link.resolve() != entry.resolve():  # absent, or of a PySpark that has moved
            link.unlink(missing_ok=True)
            link.symlink_to(entry)
    return home


def foreign_path(path: str) -> list[str]:
    """Return the entries of PYTHONPATH without any other data plane: the application runs its release."""
    return [entry for entry in filter(None, path.split(os.pathsep)) if not (Path(entry) / PACKAGE).is_dir()]
