"""Archive of Spark's classes: created once, used by every start, and never the cause of a failed start."""

import os
import subprocess
from pathlib import Path

import pytest

from localbox.class_archive import OPTIONS, archive_of, ensure_archive, with_archive
from localbox.jars import spark_home
from localbox.java import find_java

MAIN = "org.apache.spark.deploy.SparkSubmit"


def loaded_from(options: str, log: Path) -> str:
    """Return the source of the main class of Spark's JVM."""
    env = os.environ | {OPTIONS: f"{options} -Xlog:class+load:file={log}"}
    subprocess.run([spark_home() / "bin" / "spark-submit", "--version"], env=env, check=True, capture_output=True)
    return next(line for line in log.read_text().splitlines() if f" {MAIN} " in line).partition("source: ")[2]


def test_spark_maps_its_classes_from_the_archive(tmp_path: Path):
    java = find_java()
    ensure_archive(java, os.environ)
    made = archive_of(java).stat()
    ensure_archive(java, os.environ)
    assert archive_of(java).stat() == made
    assert loaded_from(with_archive(java, {})[OPTIONS], tmp_path / "with.log") == "shared objects file (top)"


@pytest.mark.parametrize("content", [None, b"", b"rubbish" * 10_000], ids=["missing", "empty", "rubbish"])
def test_spark_starts_from_its_jars_without_a_usable_archive(tmp_path: Path, content: bytes | None):
    archive = tmp_path / "classes.jsa"
    if content is not None:
        archive.write_bytes(content)
    assert loaded_from(f"-XX:SharedArchiveFile={archive}", tmp_path / "without.log").endswith(".jar")


def test_environment_keeps_its_existing_options():
    given = with_archive(find_java(), {OPTIONS: "-Xss2m"})[OPTIONS]
    assert given == f"-Xss2m -XX:SharedArchiveFile={archive_of(find_java())}"
