"""Kafka's jars and Spark's for Kafka: resolved by the Ivy inside PySpark, checked against pins, shared between clones.

`python -m localbox.jars <directory>` puts Spark's jars there, for an image.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from localbox.errors import BoxError
from localbox.java import find_java
from localbox.java_proxy import argument_file, java_proxy_options

_HERE: Final = Path(__file__).parent / "jars"
IVY_FILE: Final = _HERE / "ivy.xml"
_TRIES: Final = 3


class JarSet(Struct, frozen=True):
    """Set of jars: a configuration of `ivy.xml`, and the file of its checksums."""

    title: str
    conf: str
    checksums: Path

    def place(self, cache: Path) -> Path:
        """Return the jars' directory, named by the checksum file's hash, so that two versions never share one."""
        return cache / f"{self.checksums.stem}-{hashlib.sha256(self.checksums.read_bytes()).hexdigest()[:16]}"

    @property
    def pins(self) -> dict[str, str]:
        """File name -> SHA-256."""
        return read_pins(self.checksums.read_text())


KAFKA: Final = JarSet("Kafka's jars", "broker", _HERE / "kafka.sha256")
SPARK: Final = JarSet("Spark's jars for Kafka and the lake", "spark", _HERE / "spark.sha256")


def ensure_jars(jars: JarSet, *, java: Path, cache: Path, env: Mapping[str, str]) -> None:
    """Make the set's directory hold exactly the pinned jars.

    A rename under a file lock puts it in place, so two processes do the work once. Raises BoxError.
    """
    place = jars.place(cache)
    if not differences(place, jars.pins):
        return
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{place.name}.lock"):
        if differences(place, jars.pins):  # no other process did it while we waited
            _retrieve(jars, java=java, cache=cache, env=env)


def read_pins(text: str) -> dict[str, str]:
    """Parse the lines that sha256sum writes: file name -> SHA-256."""
    return {name: digest for digest, name in (line.split() for line in text.splitlines() if line.strip())}


def differences(place: Path, pins: dict[str, str]) -> list[str]:
    """Return the names of jars that are missing, unpinned, or differ from their pin."""
    found = {path.name for path in place.glob("*.jar")}
    wrong = {name for name in found & pins.keys() if _digest(place / name) != pins[name]}
    return sorted(wrong | (found ^ pins.keys()))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _retrieve(jars: JarSet, *, java: Path, cache: Path, env: Mapping[str, str]) -> None:
    place, pins = jars.place(cache), jars.pins
    print(f"{jars.title} are not in {cache} yet: retrieving {len(pins)} files ...", flush=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        lib = Path(scratch) / "lib"
        for number in range(1, _TRIES + 1):
            answer = run_ivy(jars.conf, java=java, ivy_cache=cache / "ivy", lib=lib, env=env)
            if answer.returncode == 0:
                break
            if number == _TRIES:
                tail = "\n".join((answer.stdout + answer.stderr).splitlines()[-15:])
                why = "check the network, and that a proxy's URL begins with http://"
                raise BoxError(f"{jars.title} could not be retrieved ({why}). Ivy's last lines:\n{tail}")
            time.sleep(number)
        if wrong := differences(lib, pins):
            raise BoxError(f"{jars.title} do not match {jars.checksums.name}, nothing was kept: {', '.join(wrong)}")
        shutil.rmtree(place, ignore_errors=True)
        lib.rename(place)


def run_ivy(
    conf: str, *, java: Path, ivy_cache: Path, lib: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Ivy, through the proxies of `env`; it puts the jars of the configuration into `lib`."""
    ivy_jar = min((spark_home() / "jars").glob("ivy-*.jar"))
    options = lib.parent / "java-options"  # in a directory of this user only
    options.write_text(argument_file(java_proxy_options(env)))
    command = [str(java), f"@{options}", "-jar", str(ivy_jar), "-cache", str(ivy_cache), "-ivy", str(IVY_FILE)]
    # also of type bundle: lz4, snappy and others are published as OSGi bundles
    command += ["-confs", conf, "-retrieve", f"{lib}/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def spark_home() -> Path:
    """Return PySpark's directory. Raises BoxError if it is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BoxError("PySpark is not installed here: install Penstock with all packages that it needs.")
    return Path(spec.origin).parent


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file lock, so that of two processes the second waits until the first has left."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Put Spark's jars into the directory named on the command line."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as cache:
        ensure_jars(SPARK, java=find_java(), cache=Path(cache), env=os.environ)
        shutil.copytree(SPARK.place(Path(cache)), target, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
