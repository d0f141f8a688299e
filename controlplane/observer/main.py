"""The Observer process: reads, stores about once a second, seals and trims; starts a new session after an error."""

import signal
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

import structlog
from confluent_kafka import KafkaException
from django.db import DatabaseError, InterfaceError, connection

from controlplane.locks import try_lock, unlock_all
from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.days import keep_days
from controlplane.observer.incidents import watch_silence
from controlplane.observer.ledger_entries import READ, purpose_of
from controlplane.observer.merge import MergedRecords
from controlplane.observer.metrics import ObserverMetrics
from controlplane.observer.reader import AuditReader, lock_name, start_offset, topics_to_read
from controlplane.observer.rows import raise_marks
from controlplane.observer.runs import load_runs
from controlplane.observer.seal import first_open_bucket
from controlplane.observer.sealing import Sealer
from controlplane.observer.store import LedgerStore, PartitionLostError
from controlplane.observer.trim import trim
from controlplane.region import waits_for_bind
from controlplane.settings import ControlSettings, control_settings
from dataplane.mirror.positions import MirrorError
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC, PartitionKey
from mgmt.models import AuditOffset, Topic

STORE_S: Final = 1.0
SEAL_S: Final = 2.0
SILENCE_S: Final = 2.0
DISCOVER_S: Final = 5.0
TRIM_S: Final = 60.0
TRIM_ON_S: Final = 2.0  # while more rows are left than one slice
DAYS_S: Final = 600.0
_ONCE: Final = frozenset({"held", "dead", "attempts"})  # topics whose records must not be stored twice
STABLE_S: Final = 30.0
LONGEST_WAIT_S: Final = 10.0
log = structlog.get_logger(__name__)


class ObserverSession:
    """Session on one connection to Postgres: owns partitions, and holds the records read and not yet stored."""

    def __init__(self, settings: ControlSettings, shown: ObserverMetrics, reader: AuditReader) -> None:
        """Create a session. `reader` must have no partitions assigned, and has none again after `close`."""
        self._settings = settings
        self._shown = shown
        self._reader = reader
        self._store = LedgerStore()
        self._sealer = Sealer(settings.grace_s)
        shown.begin(self._sealer)
        self._sampler = SuccessSampler(settings.attempt_sample_per_s)
        self._batch = AuditBatch(self._sampler, self._store.counted)
        self._began = datetime.now(UTC)  # older task times prove nothing: Postgres may have been down
        self._due = dict.fromkeys(("discover", "store", "seal", "silence", "trim", "days"), 0.0)

    def step(self, wait_s: float = 0.2) -> None:
        """Read available records and run the jobs that are due.

        Raises DatabaseError, InterfaceError, KafkaException or PartitionLostError, each of which ends the session.
        """
        if self._is_due("discover", DISCOVER_S):
            self.discover()
        messages = self._reader.read(wait_s)
        for message in messages:
            self._batch.add(message)
        self._shown.read(messages, time.time())
        if self._batch.is_full or self._is_due("store", STORE_S):
            self.store()
        if self._is_due("seal", SEAL_S):
            self._sealer.step(datetime.now(UTC), self._reader.bounds)
        if self._is_due("silence", SILENCE_S):
            watch_silence(datetime.now(UTC), self._began)
        if self._is_due("trim", TRIM_S):
            self._trim(datetime.now(UTC))
        if self._is_due("days", DAYS_S):
            keep = self._settings
            keep_days(datetime.now(UTC), facts_keep_d=keep.facts_keep_d, seals_keep_d=keep.seals_keep_d)

    def store(self) -> None:
        """Store the records read since the last call."""
        batch, self._batch = self._batch, AuditBatch(self._sampler, self._store.counted)
        if batch.records:
            now = datetime.now(UTC)
            ended = first_open_bucket(now, self._settings.grace_s)
            with self._shown.storing():
                self._store.save(batch, maybe_sealed_before=ended, now=now)
            self._sealer.remember(batch.tally.cells)

    def discover(self) -> None:
        """Take every partition that no Observer owns; none of a promoted cluster before `region bind`."""
        if not self._reader.places and waits_for_bind(self._settings.kafka):
            log.warning("the cluster was promoted, and Postgres is not bound to it: run `manage.py region bind`")
            return
        of_cells = list(Topic.objects.filter(purpose__in=READ).values_list("name", flat=True))
        for key in self._reader.partitions_of(topics_to_read(of_cells)):
            if key not in self._reader.places and try_lock(lock_name(key)):
                try:
                    self._take(key)
                except KafkaException as exc:  # no leader at this moment: the next discovery takes it
                    log.info("partition not readable yet", topic=key[0], partition=key[1], error=str(exc))

    def close(self) -> None:
        """Release partitions, locks and the connection to Postgres."""
        self._reader.stop()
        unlock_all()
        connection.close()

    def _take(self, key: PartitionKey) -> None:
        topic, partition = key
        if topic == HEARTBEAT_TOPIC:
            self._reader.start(key, 0)
            return
        low, high = self._reader.bounds(key)
        row = AuditOffset.objects.filter(topic=topic, partition=partition).first()
        offset, gone = start_offset(
            row.next_offset if row else None, low, high, repeatable=purpose_of(topic) not in _ONCE
        )
        if gone or (row is not None and row.next_offset > high):
            stored = row and row.next_offset
            log.error("stored offset out of range", topic=topic, partition=partition, gone=gone, at=stored)
        AuditOffset.objects.update_or_create(topic=topic, partition=partition, defaults={"next_offset": offset})
        self._store.offsets[key] = offset
        self._reader.start(key, offset)
        if topic == AUDIT_TOPIC:
            self._store.counted |= load_runs(partition)
            self._sealer.load(partition)
        log.info("observing", topic=topic, partition=partition, offset=offset, end=high)

    def _trim(self, now: datetime) -> None:
        keep = self._settings
        more = trim(
            now,
            attempts_keep_h=keep.attempts_keep_h,
            seals_keep_d=keep.seals_keep_d,
            audit_keep_d=keep.audit_keep_d,
            ends_keep=keep.ends_keep,
        )
        if more:
            self._due["trim"] = time.monotonic() + TRIM_ON_S
        held = [key for key in self._reader.places if purpose_of(key[0]) == "held"]
        # Held messages that the topic has deleted can no longer be released: they are lost (dataplane.ledger.bins).
        raise_marks(MergedRecords(passed={key: self._reader.bounds(key)[0] for key in held}))

    def _is_due(self, job: str, every_s: float) -> bool:
        now = time.monotonic()
        if now < self._due[job]:
            return False
        self._due[job] = now + every_s
        return True


def observe(ending: threading.Event) -> None:
    """Run sessions until `ending` is set. A failed session leaves no state: the next one starts from the rows."""
    settings, shown = control_settings(), ObserverMetrics()
    shown.serve()
    with closing(AuditReader(settings.kafka)) as reader:
        _observe(settings, shown, reader, ending)


def _observe(settings: ControlSettings, shown: ObserverMetrics, reader: AuditReader, ending: threading.Event) -> None:
    failures = 0
    while not ending.is_set():
        session, began = ObserverSession(settings, shown, reader), time.monotonic()
        try:
            while not ending.is_set():
                session.step()
            session.store()
        except (DatabaseError, InterfaceError, KafkaException, MirrorError, PartitionLostError) as exc:
            failures = 1 if time.monotonic() - began > STABLE_S else failures + 1
            log.warning("observer session failed", failures=failures, error=f"{type(exc).__name__}: {exc}"[:300])
        finally:
            session.close()
        ending.wait(min(2.0**failures / 4, LONGEST_WAIT_S) if failures else 0)


def main() -> None:
    """Observe until SIGTERM or Ctrl-C."""
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    observe(ending)
