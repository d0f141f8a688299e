"""Archives of the classes of Spark and Kafka: created once, used by each start, and never the cause of a failed one."""

import os
import subprocess
from pathlib import Path

import pytest

from localbox.jars import spark_home
from localbox.java import find_java
from localbox.kafka_training import ensure_kafka_archive
from localbox.services.kafka import command, kafka_archive, prepare
from localbox.settings import settings_from
from localbox.spark import OPTIONS, ensure_spark_archive, spark_archive, with_archive
from localbox.testing import free_ports

MAIN = "org.apache.spark.deploy.SparkSubmit"


def loaded_from(options: str, log: Path) -> str:
    """Return the source of the main class of Spark's JVM."""
    env = os.environ | {OPTIONS: f"{options} -Xlog:class+load:file={log}"}
    subprocess.run([spark_home() / "bin" / "spark-submit", "--version"], env=env, check=True, capture_output=True)
    return next(line for line in log.read_text().splitlines() if f" {MAIN} " in line).partition("source: ")[2]


def test_spark_maps_its_classes_from_the_archive(tmp_path: Path):
    java = find_java()
    ensure_spark_archive(java, os.environ)
    made = spark_archive(java).path.stat()
    ensure_spark_archive(java, os.environ)
    assert spark_archive(java).path.stat() == made
    assert loaded_from(with_archive(java, {})[OPTIONS], tmp_path / "with.log") == "shared objects file (top)"


@pytest.mark.parametrize("content", [None, b"", b"rubbish" * 10_000], ids=["missing", "empty", "rubbish"])
def test_spark_starts_from_its_jars_without_a_usable_archive(tmp_path: Path, content: bytes | None):
    archive = tmp_path / "classes.jsa"
    if content is not None:
        archive.write_bytes(content)
    assert loaded_from(f"-XX:SharedArchiveFile={archive}", tmp_path / "without.log").endswith(".jar")


def test_environment_keeps_its_existing_options():
    given = with_archive(find_java(), {OPTIONS: "-Xss2m"})[OPTIONS]
    assert given == f"-Xss2m {spark_archive(find_java()).option}"


def test_kafka_maps_its_classes_from_the_archive(tmp_path: Path):
    given = {name: value for name, value in os.environ.items() if name != "PENSTOCK_KAFKA"} | free_ports()
    box = settings_from({**given, "PENSTOCK_VAR": str(tmp_path)}, dotenv=None)
    java = find_java(box.env)
    ensure_kafka_archive(box)
    made = kafka_archive(box, java).path.stat()
    ensure_kafka_archive(box)
    assert kafka_archive(box, java).path.stat() == made
    (node,) = box.kafka_nodes
    prepare(box, java, node)
    log = tmp_path / "classes.log"
    flags = (kafka_archive(box, java).option, f"-Xlog:class+load:file={log}")
    started = [
        *command(box, java, *flags, node=node)[:-1],
        str(tmp_path / "none"),
    ]  # it ends, after its main class is loaded
    assert subprocess.run(started, check=False, capture_output=True).returncode == 1
    line = next(line for line in log.read_text().splitlines() if " kafka.Kafka " in line)
    assert line.partition("source: ")[2] == "shared objects file (top)"
