"""Reports to the ledger which events this replica ACKed, cell by cell, until the audit topic has stored it."""

import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec import Struct, field

from dataplane.ingest.journal import Ack, AckJournal
from dataplane.ledger.audit import AUDIT_VERSION, Audit
from dataplane.ledger.facts import ACKED, INGEST, LOG, REUSED, Fact, FactBook, FactKey, log_key
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.usage import Usage
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.lags import LagBook
from dataplane.runtime.replaceable import ReplaceableProducer
from dataplane.runtime.usage import UsageBook

LATE_S: Final = 10.0  # reports that are not stored for so long are a fault
MOST_UNREPORTED: Final = 1_000_000  # ACKed events; beyond them nothing more is taken: memory and journal would grow
_ACKED: Final = FactKey(INGEST, Fact.SENT, ACKED)
_REUSED: Final = FactKey(LOG, Fact.SENT, REUSED)
_ALL_CELLS: Final = ""  # usage is reported of the process, which serves all of them


class Books(Struct):
    """Facts and lags for one cell, and of how many events."""

    facts: FactBook = field(default_factory=FactBook)
    lags: LagBook = field(default_factory=LagBook)
    events: int = 0


class Teller:
    """Collects by `acked` and `passed`, sends by `tell_if_due`.

    A round is the reports of all cells since the round before. Of each cell one record is under way at a time; one that
    fails is sent again, unchanged, and keeps its sequence number, by which the ledger counts it once. The journal lets
    a round go when all of it is stored.
    """

    def __init__(
        self,
        producer: Producer | ReplaceableProducer,
        journal: AckJournal,
        replica: str,
        usage: UsageBook,
        report_bytes: int = REPORT_BYTES,
    ) -> None:
        self._producer = producer
        self._journal = journal
        self._replica = replica
        self._usage = usage
        self._report_bytes = report_bytes
        self._run = os.urandom(8).hex()
        self._sequences: Counter[str] = Counter()  # of the last record for each cell
        self._books: dict[str, Books] = defaultdict(Books)
        self._unstored: dict[str, deque[bytes]] = {}  # of the round under way, by cell
        self._events = 0  # of the round under way
        self._under_way: set[str] = set()
        self._begun = False  # a round is under way, or over and the journal not told yet
        self._due = 0.0
        self._stored_s = time.monotonic()  # when a record was stored last, or there was nothing to report
        self._error = ""
        self.acked(journal.left_behind)

    def acked(self, acks: list[Ack]) -> None:
        """Note events that were answered with 202, or are about to be."""
        if not self._is_owing:
            self._stored_s = time.monotonic()
        for ack in acks:
            book = self._books[ack.cell]
            book.facts.extend(ack.pipe, ack.bucket, _ACKED, ack.positions)
            if ack.producer:
                book.facts.extend(ack.pipe, ack.bucket, log_key(ACKED, ack.producer), ack.positions)
            book.events += len(ack.positions)

    def reused(self, cell: str, pipe: str, bucket: int, positions: Sequence[int]) -> None:
        """Note that Kafka gave these positions to records that are not ACKed, and had given them to others before."""
        self._books[cell].facts.extend(pipe, bucket, _REUSED, positions)

    def passed(self, ack: Ack, lags_in_us: Sequence[int], took_us: Sequence[int]) -> None:
        """Book the timing of these units: from the last byte of their requests to their delivery reports."""
        self._books[ack.cell].lags.add_all((ack.pipe, INGEST, ack.bucket), lags_in_us, took_us)

    @property
    def unreported(self) -> int:
        """ACKed events of which the ledger has no report yet; those of a round under way count until it is over."""
        return self._events + sum(book.events for book in self._books.values())

    @property
    def is_full(self) -> bool:
        """True if nothing more is to be ACKed before something is reported."""
        return self.unreported >= MOST_UNREPORTED

    @property
    def _is_owing(self) -> bool:
        return bool(self._unstored or self.unreported)

    @property
    def late_s(self) -> float:
        """For how many seconds no report was stored that is due; 0 while that is no fault."""
        waited_s = time.monotonic() - self._stored_s if self._is_owing else 0.0
        return waited_s if waited_s > LATE_S else 0.0

    @property
    def trouble(self) -> str:
        """Why reports are late, in words; "" if they are not."""
        return f"reports to the ledger are not stored: {self._error or 'no answer'}" if self.late_s else ""

    def tell_if_due(self, every_s: float) -> None:
        """Send what is not stored yet; else, if the last round is over and it is time, begin the next one."""
        if self._unstored:
            self._send()
            return
        if self._begun:  # here and not where the report comes: only one thread may move the journal's files
            self._begun = False
            self._events = 0
            with suppress(OSError):  # what the journal keeps is reported once more, by the next run
                self._journal.told()
        told = self._usage.is_due or any(len(books.facts) for books in self._books.values())
        if told and time.monotonic() >= self._due:
            self._due = time.monotonic() + every_s
            self._begin()

    def finish(self, seconds: float) -> bool:
        """Report everything that is left, for at most so long; whether it is. The journal keeps what could not be."""
        deadline = time.monotonic() + seconds
        self._usage.hasten()
        while time.monotonic() < deadline:
            self.tell_if_due(0)
            if not self._unstored and not self._begun:
                return True
            self._producer.poll(0.01)  # the turns that collect reports are over
        return False

    def _begin(self) -> None:
        try:
            self._journal.rotate()
        except OSError as exc:
            self._error = f"the journal of ACKs: {exc.strerror}"
            return
        if not self._is_owing:  # usage alone
            self._stored_s = time.monotonic()
        unstored = {cell: self._records(cell, book) for cell, book in self._books.items()}
        if (usage := self._usage.take_if_due()) is not None:
            unstored[_ALL_CELLS] = self._records(_ALL_CELLS, Books(), usage)
        self._begun, self._unstored = True, unstored
        self._events = sum(book.events for book in self._books.values())
        self._books = defaultdict(Books)
        self._send()

    def _records(self, cell: str, book: Books, usage: Usage | None = None) -> deque[bytes]:
        audit = Audit(
            version=AUDIT_VERSION,
            cell=cell,
            writer=self._replica,
            kind=INGEST,
            at_us=time.time_ns() // 1_000,
            inputs=[],
            outputs=[],
            facts=book.facts.sets(),
            lags=book.lags.sketches(),
            usage=usage,
            run=self._run,
            sequence=self._sequences[cell] + 1,
        )
        records = encode_parts(audit, self._report_bytes)
        self._sequences[cell] += len(records)
        return deque(records)

    def _send(self) -> None:
        """Send the next record of each cell that has none under way. What the client refuses is sent next time."""
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
