"""Kafka: KRaft nodes (each a broker and a controller in one JVM) from pinned jars, listening on loopback only."""

import base64
import os
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dataplane.kafka_settings import kafka_settings
from dataplane.record_limits import TOPIC_MAX_BYTES
from dataplane.spec.kafka_security import VARIABLE, KafkaSettingsError
from localbox.class_archive import ClassArchive, archive_in
from localbox.errors import BoxError
from localbox.jars import KAFKA, ensure_jars
from localbox.java import find_java
from localbox.probes import kafka_ready
from localbox.program import Program, StartStage
from localbox.services.kafka_nodes import KafkaNode, note_brokers
from localbox.services.kafka_tls import ADMIN, KafkaTls, ensure_kafka_tls, kafka_tls_in, write_private
from localbox.settings import BoxSettings

VERSION: Final = "4.3.1"
_LOG_LEVEL: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
# A killed broker, or active controller, is replaced within about 3 s; with the defaults of Kafka it takes over 9 s.
_REPLICATED: Final = {
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "300",
    "replica.lag.time.max.ms": "2000",
}


def kafka(settings: BoxSettings) -> list[Program]:
    """Return the box's own brokers or, if it has none, only the probe of the configured one. Raises BoxError."""
    if not settings.owns_kafka:
        probe = partial(kafka_ready, settings.env["PENSTOCK_KAFKA"], _foreign_settings(settings))
        return [Program("kafka", StartStage.SERVICES, None, probe=probe)]
    if VARIABLE in settings.env and not settings.has_secured_kafka:
        raise BoxError(
            f"{VARIABLE} is for another Kafka, the box's own has no TLS: set PENSTOCK_KAFKA, too, or unset it"
        )
    nodes = settings.kafka_nodes
    if str(len(nodes)) != settings.env.get("PENSTOCK_KAFKA_BROKERS", str(len(nodes))):
        raise BoxError(
            f"{nodes[0].home} was made with PENSTOCK_KAFKA_BROKERS={len(nodes)}: "
            "leave it out, or set another PENSTOCK_VAR"
        )
    if len(nodes) > 1 and settings.has_secured_kafka:
        raise BoxError(f"PENSTOCK_KAFKA_TLS secures a box with one broker, and this one has {len(nodes)}: leave it out")
    java = find_java(settings.env)
    # The first topics need all brokers. Later, one of three may be away.
    least = len(nodes) - 1 if len(nodes) > 1 and all(node.is_made for node in nodes) else len(nodes)
    return [
        Program(
            node.name,
            StartStage.SERVICES,
            command(settings, java, kafka_archive(settings, java).option, node=node),
            prepare=partial(prepare, settings, java, node),
            probe=partial(_own_ready, settings, node, least),
            version=lambda: VERSION,
            port=node.port,
            stop_grace_s=30,
        )
        for node in nodes
    ]


def _own_ready(settings: BoxSettings, node: KafkaNode, least: int) -> str | None:
    tls = tls_of(settings)
    return kafka_ready(node.address, tls.settings_of(ADMIN) if tls else {}, brokers=least)


def _foreign_settings(settings: BoxSettings) -> dict[str, str]:
    try:
        return kafka_settings(settings.env)
    except KafkaSettingsError as exc:
        raise BoxError(str(exc)) from exc


def tls_of(settings: BoxSettings) -> KafkaTls | None:
    """Return the files of the secured broker, None if the box has none; `prepare` makes them."""
    return kafka_tls_in(settings.var) if settings.has_secured_kafka else None


def command(settings: BoxSettings, java: Path, *flags: str, node: KafkaNode) -> tuple[str, ...]:
    """Return the command that starts a broker, with more options of its JVM."""
    path = node.home / "server.properties"
    return (str(java), *jvm_flags(), *flags, "-cp", _classpath(settings), "kafka.Kafka", str(path))


def kafka_archive(settings: BoxSettings, java: Path) -> ClassArchive:
    """Return the archive of Kafka's classes, next to its jars."""
    return archive_in(settings.cache, program="Kafka", java=java, jars=KAFKA.place(settings.cache))


def jvm_flags() -> list[str]:
    """Return flags for a small heap and short pauses, which add to every message's lag.

    All of the heap is in memory from the start: otherwise it grows to its maximum within hours, although live objects
    take a quarter of it. Memory that the JVM's own threads have freed goes back to the operating system each minute.
    """
    heap = ["-Xms384m", "-Xmx384m", "-XX:+AlwaysPreTouch"]
    trim = ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:TrimNativeHeapInterval=60000"]  # Java 17.0.9 and newer know it
    log = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
    return [*heap, *trim, "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Xshare:auto", _LOG_LEVEL, *log]


def prepare(settings: BoxSettings, java: Path, node: KafkaNode) -> None:
    """Get the jars, write the properties, format the log directory if needed. Data survives `down` and `up`.

    Raises BoxError if that fails.
    """
    ensure_jars(KAFKA, java=java, cache=settings.cache, env=settings.env)
    node.home.mkdir(parents=True, exist_ok=True)
    path, tls = node.home / "server.properties", tls_of(settings)
    if tls:
        ensure_kafka_tls(tls)
    given = properties(settings.kafka_nodes, node, tls)
    write_private(path, "".join(f"{name}={_escaped(value)}\n" for name, value in given.items()))
    if node.is_made:
        return
    note_brokers(settings.kafka_nodes)
    flags = ["-Xmx128m", "-XX:TieredStopAtLevel=1", kafka_archive(settings, java).option, _LOG_LEVEL]
    cluster = _common_cluster_id(settings.var)
    format_log = ["format", "--cluster-id", cluster, "--config", str(path), "--ignore-formatted"]
    # In a file, because all users of the machine can read the command lines of its processes.
    arguments = node.home / "format.args"
    write_private(arguments, "\n".join([*format_log, *(tls.format_options() if tls else [])]))
    answer = subprocess.run(
        [str(java), *flags, "-cp", _classpath(settings), "kafka.tools.StorageTool", f"@{arguments}"],
        capture_output=True,
        text=True,
        check=False,
        env=settings.env,
    )
    arguments.unlink()
    if answer.returncode:
        raise BoxError(f"Kafka could not format {node.home / 'log'}: {(answer.stderr + answer.stdout).strip()}")


def properties(nodes: Sequence[KafkaNode], node: KafkaNode, tls: KafkaTls | None = None) -> dict[str, str]:
    """Return server.properties of one of the brokers; all other properties have Kafka's defaults."""
    listener = "SASL_SSL" if tls else "PLAINTEXT"
    copies, least = str(len(nodes)), str(max(1, len(nodes) - 1))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": ",".join(one.voter for one in nodes),
        "listeners": f"{listener}://{node.address},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"{listener}://{node.address}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": listener,
        "log.dirs": str(node.home / "log"),
        "auto.create.topics.enable": "false",  # only the Provisioner creates topics
        "num.partitions": "1",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": least,
        "group.initial.rebalance.delay.ms": "0",  # a lane rejoins alone: there are no other members to wait for
        "group.min.session.timeout.ms": "6000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "num.recovery.threads.per.data.dir": "2",
        "log.segment.bytes": str(128 * 1024 * 1024),
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        "message.max.bytes": str(TOPIC_MAX_BYTES),
        "replica.fetch.max.bytes": str(TOPIC_MAX_BYTES),
        **(
            _REPLICATED | {"broker.rack": f"zone-{node.number}", "min.insync.replicas": least} if len(nodes) > 1 else {}
        ),
        **(tls.broker_properties() if tls else {}),
    }


def _escaped(value: str) -> str:
    """Return a value for a properties file, in which a backslash begins an escape."""
    return value.replace("\\", "\\\\")


def _classpath(settings: BoxSettings) -> str:
    return f"{KAFKA.place(settings.cache)}/*"


def _common_cluster_id(var: Path) -> str:
    """Return the id of the cluster, which all its nodes have in their data: the first one that asks makes it."""
    path = var / "kafka" / "cluster-id"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f"cluster-id.{uuid.uuid4().hex}")
        scratch.write_text(cluster_id(uuid.uuid4()))
        try:
            with suppress(FileExistsError):
                os.link(scratch, path)  # atomic: nodes are prepared at the same time
        except OSError as exc:
            raise BoxError(f"{path} cannot be made: {exc}") from exc
        finally:
            scratch.unlink()
    return path.read_text()


def cluster_id(chance: uuid.UUID) -> str:
    """Return an id in Kafka's form, 22 characters. The first bit is cleared: a leading dash would make it an option."""
    first, *rest = chance.bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).rstrip(b"=").decode()
