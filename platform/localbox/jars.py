"""Kafka's jars: resolved by the Ivy inside PySpark, checked against pinned checksums, shared between clones."""

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from localbox.errors import BoxError

_HERE: Final = Path(__file__).parent / "jars"
IVY_FILE: Final = _HERE / "ivy.xml"
CHECKSUM_FILE: Final = _HERE / "kafka.sha256"
_TRIES: Final = 3


def kafka_place(cache: Path) -> Path:
    """The directory of the pinned jars, named after the checksum file's hash: two versions never share one."""
    return cache / f"kafka-{hashlib.sha256(CHECKSUM_FILE.read_bytes()).hexdigest()[:16]}"


def ensure_kafka_jars(*, java: Path, cache: Path, env: Mapping[str, str]) -> None:
    """Make that directory hold exactly the pinned jars.

    It is put in place by a rename under a file lock, so two at once do the work once. Raises BoxError.
    """
    pins, place = read_pins(CHECKSUM_FILE.read_text()), kafka_place(cache)
    if not what_differs(place, pins):
        return
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{place.name}.lock"):
        if what_differs(place, pins):  # nobody did it while we waited
            _retrieve(java=java, cache=cache, place=place, env=env)


def read_pins(text: str) -> dict[str, str]:
    """File name -> SHA-256, from the lines that sha256sum writes."""
    return {name: digest for digest, name in (line.split() for line in text.splitlines() if line.strip())}


def what_differs(place: Path, pins: dict[str, str]) -> list[str]:
    """Names that are missing, unpinned, or hold other bytes than pinned."""
    found = {path.name for path in place.glob("*.jar")}
    wrong = {name for name in found & pins.keys() if _digest(place / name) != pins[name]}
    return sorted(wrong | (found ^ pins.keys()))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _retrieve(*, java: Path, cache: Path, place: Path, env: Mapping[str, str]) -> None:
    pins = read_pins(CHECKSUM_FILE.read_text())
    print(f"Kafka's jars are not in {cache} yet: retrieving {len(pins)} files (45 MB) ...", flush=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        lib = Path(scratch) / "lib"
        for number in range(1, _TRIES + 1):
            answer = _ivy(java=java, ivy_cache=cache / "ivy", lib=lib, env=env)
            if answer.returncode == 0:
                break
            if number == _TRIES:
                tail = "\n".join((answer.stdout + answer.stderr).splitlines()[-15:])
                raise BoxError(f"Kafka's jars could not be retrieved (is there a network?). Ivy's last words:\n{tail}")
            time.sleep(number)
        if wrong := what_differs(lib, pins):
            raise BoxError(f"Kafka's jars do not match {CHECKSUM_FILE.name}, nothing was kept: {', '.join(wrong)}")
        shutil.rmtree(place, ignore_errors=True)
        lib.rename(place)


def _ivy(*, java: Path, ivy_cache: Path, lib: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [str(java), "-jar", str(_ivy_jar()), "-cache", str(ivy_cache), "-ivy", str(IVY_FILE)]
    # type bundle too: lz4, snappy and others are published as OSGi bundles
    command += ["-confs", "broker", "-retrieve", f"{lib}/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise BoxError("PySpark is not installed here: run `make up`, which prepares .venv from requirements.lock.")
    jars = Path(spec.submodule_search_locations[0]) / "jars"
    return next(iter(sorted(jars.glob("ivy-*.jar"))))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
