"""Tells the ledger what this replica ACKed: one audit record per cell at a time, kept until it is stored."""

import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from dataplane.ingest.journal import Ack, AckJournal
from dataplane.ledger.audit import AUDIT_VERSION, Audit, encode
from dataplane.ledger.facts import ACKED, INGEST, Fact, FactBook, FactKey
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.lags import LagBook
from dataplane.runtime.usage import UsageBook

_ACKED: Final = FactKey(INGEST, Fact.SENT, ACKED)
_ALL_CELLS: Final = ""  # usage is told of the process, which serves all of them


class Books:
    """Facts and lags for one cell."""

    def __init__(self) -> None:
        self.facts = FactBook()
        self.lags = LagBook()


class Teller:
    """`acked` and `lag` collect, `tell_if_due` sends. Records that fail are sent again, unchanged, until stored."""

    def __init__(self, producer: Producer, journal: AckJournal, replica: str, usage: UsageBook) -> None:
        self._producer = producer
        self._journal = journal
        self._replica = replica
        self._usage = usage
        self._books: dict[str, Books] = defaultdict(Books)
        self._telling: dict[str, bytes] = {}  # cell -> audit record not yet known to be stored
        self._under_way: set[str] = set()
        self._begun = False  # a round is under way, or over and the journal not told yet
        self._due = 0.0
        self.acked(journal.left_behind)

    def acked(self, acks: list[Ack]) -> None:
        """These were answered with 202 (or are about to be)."""
        for ack in acks:
            self._books[ack.cell].facts.extend(ack.pipe, ack.bucket, _ACKED, ack.positions)

    def passed(self, ack: Ack, event_times_us: Sequence[int], lags_in_us: Sequence[int], *, out_us: int) -> None:
        """Lags of these units: in when the last byte of the request had come, out when their reports had."""
        lags = self._books[ack.cell].lags
        lags.add_all((ack.pipe, INGEST, ack.bucket, "in"), lags_in_us)
        lags.add_pass((ack.pipe, INGEST, ack.bucket, "out"), out_us, event_times_us)

    def tell_if_due(self, every_s: float) -> None:
        """Send what failed again; else, if the last round is stored and it is time, begin the next one."""
        if self._telling:
            self._send()
            return
        if self._begun:  # here and not where the report comes: only one thread may move the journal's files
            self._begun = False
            self._journal.told()
        told = self._usage.is_due or any(len(books.facts) for books in self._books.values())
        if told and time.monotonic() >= self._due:
            self._due = time.monotonic() + every_s
            self._begin()

    def finish(self, seconds: float) -> bool:
        """Tell everything that is left, for at most so long; whether it is. The journal keeps what could not be."""
        deadline = time.monotonic() + seconds
        self._usage.hasten()
        while time.monotonic() < deadline:
            self.tell_if_due(0)
            if not self._telling and not self._begun:
                return True
            self._producer.poll(0.01)  # the turns that collect reports are over
        return False

    def _begin(self) -> None:
        self._journal.rotate()
        self._begun = True
        books, self._books = self._books, defaultdict(Books)
        now_us = time.time_ns() // 1_000
        for cell, book in books.items():
            facts, lags = book.facts.take(), book.lags.take()
            audit = Audit(AUDIT_VERSION, cell, self._replica, INGEST, now_us, [], [], facts, lags)
            self._telling[cell] = encode(audit)
        if (usage := self._usage.take_if_due()) is not None:
            audit = Audit(AUDIT_VERSION, _ALL_CELLS, self._replica, INGEST, now_us, [], [], [], [], usage)
            self._telling[_ALL_CELLS] = encode(audit)
        self._send()

    def _send(self) -> None:
        for cell, value in self._telling.items():
            if cell in self._under_way:
                continue
            try:
                report = partial(self._report, cell)
                self._producer.produce(AUDIT_TOPIC, value, key=cell, on_delivery=report)
            except (BufferError, KafkaException):
                return  # the next turn tries again
            self._under_way.add(cell)

    def _report(self, cell: str, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._telling.pop(cell, None)
        self._under_way.discard(cell)
