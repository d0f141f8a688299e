"""Report the events that this replica ACKed to the ledger, by cell, until the audit topic has stored the reports."""

import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec import Struct, field

from dataplane.ingest.journal import AckJournal, JournalledAck
from dataplane.ingest.rejections import RejectionBook
from dataplane.ingest.version_traffic import TrafficBook
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord
from dataplane.ledger.facts import ACKED, INGEST, LOG, REUSED, Fact, FactBook, FactKey, log_key
from dataplane.ledger.report_parts import encode_parts
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.runtime.telemetry.usage import UsageBook

LATE_S: Final = 10.0  # without a stored report for this long, reporting counts as failing
MOST_UNREPORTED: Final = 1_000_000  # ACKed events; above it no event is accepted: memory and journal would grow
_ACKED: Final = FactKey(INGEST, Fact.SENT, ACKED)
_REUSED: Final = FactKey(LOG, Fact.SENT, REUSED)
_NO_COUNTS: Final[Mapping[str, Any]] = MappingProxyType({})
_ALL_CELLS: Final = ""  # counts are reported for the process, which serves all cells


class ReportBooks(Struct):
    """Facts and lags to report for one cell, and the number of their events."""

    facts: FactBook = field(default_factory=FactBook)
    lags: LagBook = field(default_factory=LagBook)
    events: int = 0


class EventCounts(NamedTuple):
    """Counts that are reported for the process, not by cell."""

    usage: UsageBook
    rejections: RejectionBook
    traffic: TrafficBook

    @property
    def is_due(self) -> bool:
        """True if a report of one of them is due."""
        return any(book.is_due for book in self)

    def hasten(self) -> None:
        """Make all reports due now, because the process is about to end."""
        for book in self:
            book.hasten()

    def take_if_due(self) -> dict[str, Any]:
        """Return the fields of an audit record whose counts are due, and reset these counts."""
        found = {name: book.take_if_due() for name, book in self._asdict().items()}
        return {name: counts for name, counts in found.items() if counts}


class LedgerReporter:
    """Collects ACKs and timings, and sends them as audit records with `report_if_due`.

    A report round is the records of all cells since the round before. For each cell one record is in flight at a time;
    one that fails is sent again, unchanged, with the same sequence number, by which the ledger counts it once. The
    journal drops the entries of a round when all of its records are stored.
    """

    def __init__(
        self,
        producer: Producer | ReplaceableProducer,
        journal: AckJournal,
        replica: str,
        counts: EventCounts,
        *,
        report_bytes: int = REPORT_BYTES,
    ) -> None:
        self._producer = producer
        self._journal = journal
        self._replica = replica
        self._counts = counts
        self._report_bytes = report_bytes
        self._run = os.urandom(8).hex()
        self._sequences: Counter[str] = Counter()  # of the last record, by cell
        self._books: dict[str, ReportBooks] = defaultdict(ReportBooks)
        self._unstored: dict[str, deque[bytes]] = {}  # of the current round, by cell
        self._events = 0  # of the current round
        self.unreported = 0  # ACKed events that the ledger has no report of, those of a round until it is complete
        self._under_way: set[str] = set()
        self._begun = False  # a round is running, or is over and not yet removed from the journal
        self._due = 0.0
        self._stored_s = time.monotonic()  # last time at which a record was stored or nothing was due
        self._error = ""
        self.on_delivery(journal.left_behind)

    def on_delivery(self, acks: list[JournalledAck]) -> None:
        """Note events that were acknowledged with 202, or are about to be."""
        if not self._is_owing:
            self._stored_s = time.monotonic()
        for ack in acks:
            book = self._books[ack.cell]
            book.facts.extend(ack.pipe, ack.bucket, _ACKED, ack.positions)
            if ack.producer:
                book.facts.extend(ack.pipe, ack.bucket, log_key(ACKED, ack.producer), ack.positions)
            book.events += len(ack.positions)
            self.unreported += len(ack.positions)

    def reused(self, cell: str, pipe: str, bucket: int, positions: Sequence[int]) -> None:
        """Note positions that Kafka gave to records that are not ACKed, and had given to others before."""
        self._books[cell].facts.extend(pipe, bucket, _REUSED, positions)

    def passed(self, ack: JournalledAck, lags_in_us: Sequence[int], took_us: Sequence[int]) -> None:
        """Record the timing of these units: lag on arrival and process duration, in microseconds.

        The duration is from the last byte of the request to the delivery report.
        """
        self._books[ack.cell].lags.add_all((ack.pipe, INGEST, ack.bucket), lags_in_us, took_us)

    @property
    def is_full(self) -> bool:
        """True if nothing more may be ACKed before something is reported."""
        return self.unreported >= MOST_UNREPORTED

    @property
    def _is_owing(self) -> bool:
        return bool(self._unstored or self.unreported)

    @property
    def _has_unsent(self) -> bool:
        """True if something is to be reported that is not in the current round."""
        return any(len(book.facts) for book in self._books.values()) or self._counts.is_due

    @property
    def late_s(self) -> float:
        """Seconds since a report was last stored while one is due; 0 below LATE_S."""
        waited_s = time.monotonic() - self._stored_s if self._is_owing else 0.0
        return waited_s if waited_s > LATE_S else 0.0

    @property
    def trouble(self) -> str:
        """Reason for which reports are late; "" if they are not."""
        return f"reports to the ledger are not stored: {self._error or 'no response'}" if self.late_s else ""

    def report_if_due(self, every_s: float) -> None:
        """Send records that are not stored yet; if there are none and it is time, begin the next round.

        every_s: seconds between rounds
        """
        if self._unstored:
            self._send()
            return
        if self._begun:  # here and not in the delivery callback: only one thread may move the journal's files
            self._begun = False
            self.unreported -= self._events
            self._events = 0
            with suppress(OSError):  # the next run reports the journal's entries once more
                self._journal.reported()
        if self._has_unsent and time.monotonic() >= self._due:
            self._due = time.monotonic() + every_s
            self._begin()

    def finish(self, seconds: float) -> bool:
        """Report everything that is left, for at most this many seconds; return whether all of it is stored.

        The journal keeps the rest.
        """
        deadline = time.monotonic() + seconds
        self._counts.hasten()
        self._due = 0.0  # do not wait for the next regular round
        while time.monotonic() < deadline:
            self.report_if_due(0)
            if not (self._unstored or self._begun or self._has_unsent):
                return True
            self._producer.poll(0.01)  # the event loop no longer polls for delivery reports
        return False

    def _begin(self) -> None:
        try:
            self._journal.rotate()
        except OSError as exc:
            self._error = f"cannot rotate the ACK journal: {exc.strerror}"
            return
        if not self._is_owing:  # only counts to report
            self._stored_s = time.monotonic()
        unstored = {cell: self._records(cell, book) for cell, book in self._books.items()}
        if counts := self._counts.take_if_due():
            unstored[_ALL_CELLS] = self._records(_ALL_CELLS, ReportBooks(), counts)
        self._begun, self._unstored = True, unstored
        self._events = sum(book.events for book in self._books.values())
        self._books = defaultdict(ReportBooks)
        self._send()

    def _records(self, cell: str, book: ReportBooks, counts: Mapping[str, Any] = _NO_COUNTS) -> deque[bytes]:
        audit = AuditRecord(
            version=AUDIT_VERSION,
            cell=cell,
            writer=self._replica,
            kind=INGEST,
            at_us=time.time_ns() // 1_000,
            inputs=[],
            outputs=[],
            facts=book.facts.sets(),
            lags=book.lags.sketches(),
            run=self._run,
            sequence=self._sequences[cell] + 1,
            **counts,
        )
        records = encode_parts(audit, self._report_bytes)
        self._sequences[cell] += len(records)
        return deque(records)

    def _send(self) -> None:
        """Send the next record of each cell that has none in flight; retry refused records in the next call."""
        for cell, records in self._unstored.items():
            if cell in self._under_way:
                continue
            try:
                report = partial(self._report, cell)
                self._producer.produce(AUDIT_TOPIC, records[0], key=cell or self._replica, on_delivery=report)
            except (BufferError, KafkaException) as exc:
                self._error = str(exc) or "the producer's queue is full"
                return
            self._under_way.add(cell)

    def _report(self, cell: str, error: KafkaError | None, _message: Message) -> None:
        self._under_way.discard(cell)
        if error is not None:
            self._error = error.str()
            return
        self._error = ""
        self._stored_s = time.monotonic()
        records = self._unstored[cell]
        records.popleft()
        if not records:
            del self._unstored[cell]
