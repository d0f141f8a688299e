"""Observer against real Kafka and Postgres: each record counts exactly once, despite kills and cuts."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from django.db import connection
from pyroaring import BitMap64

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, FactSet, LagSet, encode
from dataplane.ledger.sketch import LagSketch
from dataplane.names import AUDIT_TOPIC
from mgmt.models import AuditOffset, FactRow, LagRow, SettledOffset
from tests.integration.controlplane.observing import observing
from tests.support.kafka import admin_consumer, admin_producer
from tests.support.patience import until

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[3]
UNITS = 20  # per record


class Writer:
    """Writer of audit records of one pipe: record n holds units from n * UNITS on, and as many lags."""

    def __init__(self, kafka: str, pipe: str) -> None:
        self._producer = admin_producer({"bootstrap.servers": kafka, "linger.ms": 5})
        self._pipe = pipe
        self._bucket = int(time.time() // 60)
        self.written = 0

    def write(self, records: int) -> None:
        for _ in range(records):
            units = BitMap64(range(self.written * UNITS, (self.written + 1) * UNITS))
            sketch = LagSketch()
            sketch.add([1_000] * UNITS)
            facts = [FactSet(self._pipe, "ingest", self._bucket, "sent", "acked", 0, units.serialize())]
            lags = [LagSet(self._pipe, "ingest", self._bucket, "out", sketch.encode())]
            audit = AuditRecord(AUDIT_VERSION, "cx", "ingest-1", "ingest", 0, [], [], facts, lags)
            self._producer.produce(AUDIT_TOPIC, encode(audit), b"cx")
            self.written += 1
        assert self._producer.flush(10) == 0

    @property
    def is_stored(self) -> bool:
        rows = FactRow.objects.filter(pipe_id=self._pipe)
        return sum(rows.values_list("count", flat=True)) >= self.written * UNITS

    @property
    def lags(self) -> int:
        return sum(
            LagSketch.decode(bytes(row.lag_out or b"")).count for row in LagRow.objects.filter(pipe_id=self._pipe)
        )


@pytest.fixture
def writer(kafka: str, request: pytest.FixtureRequest) -> Writer:
    TopicCreator(kafka).ensure(cluster_plans(control_settings().topics))
    for partition in range(4):
        AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=partition, next_offset=end_of_audit(kafka, partition))
    return Writer(kafka, request.node.name[:28])


def end_of_audit(kafka: str, partition: int) -> int:
    consumer = admin_consumer({"bootstrap.servers": kafka, "group.id": "penstock.test"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(AUDIT_TOPIC, partition), timeout=10)[1])
    finally:
        consumer.close()


def test_records_written_while_no_observer_runs_are_read_later(writer: Writer):
    with observing():
        writer.write(5)
        until(lambda: writer.is_stored, limit_s=30)
    writer.write(5)
    with observing():
        until(lambda: writer.is_stored, limit_s=30)
    assert writer.lags == writer.written * UNITS


def test_cut_connections_to_postgres_lose_nothing_and_double_nothing(writer: Writer):
    with observing():
        for _ in range(5):
            writer.write(40)
            time.sleep(0.4)
            cut_other_connections()
        until(lambda: writer.is_stored, limit_s=30)
    assert writer.lags == writer.written * UNITS


def cut_other_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def start_process(environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "manage.py", "observe"], cwd=ROOT, env=environment)


def test_repeatedly_killed_observer_counts_each_record_once(writer: Writer, environment: dict[str, str]):
    for _ in range(3):
        process = start_process(environment)
        for _ in range(12):
            writer.write(10)
            time.sleep(0.25)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = start_process(environment)
    try:
        writer.write(10)  # else all may be stored already, and SIGTERM would reach a process that has not started yet
        until(lambda: writer.is_stored, limit_s=30)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert writer.lags == writer.written * UNITS


def test_second_observer_takes_over_when_the_first_dies(writer: Writer, environment: dict[str, str]):
    first = start_process(environment)
    try:
        writer.write(3)
        until(lambda: writer.is_stored, limit_s=30)
        with observing():
            writer.write(3)
            until(lambda: writer.is_stored, limit_s=30)
            first.send_signal(signal.SIGKILL)
            first.wait()
            writer.write(3)
            until(lambda: writer.is_stored, limit_s=30)
    finally:
        first.kill()
        first.wait()
    assert writer.lags == writer.written * UNITS
    assert not SettledOffset.objects.exists()
