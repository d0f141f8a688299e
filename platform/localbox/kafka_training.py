"""Training run for the archive of Kafka's classes: a broker of its own that becomes ready and is stopped."""

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from localbox.box import free_ports
from localbox.java import find_java
from localbox.probes import kafka_ready
from localbox.services.kafka import command, kafka_archive, prepare
from localbox.settings import BoxSettings, settings_from

_LIMIT_S: Final = 120


def ensure_kafka_archive(settings: BoxSettings) -> None:
    """Archive Kafka's classes, unless they are archived already or the box's Kafka is not its own. Raises BoxError."""
    if settings.owns_kafka:
        settings.cache.mkdir(parents=True, exist_ok=True)
        java = find_java(settings.env)
        kafka_archive(settings, java).ensure(lambda option: _record(settings, java, option))


def _record(settings: BoxSettings, java: Path, option: str) -> None:
    """Run a broker with an option of the JVM until it is ready. Raises BoxError, TimeoutExpired."""
    foreign = ("PENSTOCK_KAFKA", "PENSTOCK_KAFKA_SETTINGS", "PENSTOCK_KAFKA_TLS", "PENSTOCK_KAFKA_BROKERS")
    given = {name: value for name, value in settings.env.items() if name not in foreign} | free_ports()
    with tempfile.TemporaryDirectory() as var:
        own = settings_from({**given, "PENSTOCK_VAR": var}, dotenv=None)
        (node,) = own.kafka_nodes
        prepare(own, java, node)
        with subprocess.Popen(
            command(own, java, option, node=node), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as broker:
            until = time.monotonic() + _LIMIT_S
            while kafka_ready(own.env["PENSTOCK_KAFKA"], {}) and broker.poll() is None and time.monotonic() < until:
                time.sleep(0.1)
            broker.terminate()  # the JVM writes the archive at its exit
            broker.wait(_LIMIT_S)
