"""Usage of a process: busy and idle CPU apart, reported when due, each part exactly once."""

import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.lanes import make_work
from dataplane.ledger.audit import AuditRecord, decode_audit
from dataplane.ledger.usage import PipeUsage, UsageReport
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.telemetry.usage import REPORT_S, UsageBook
from loadgen.measured import EVENT
from tests.bench import threads
from tests.bench.stand import STEPS, fill
from tests.support.cluster import PIPE

COUNT = 1_500


class Clocks:
    """CPU time and clock of the process, set by the test."""

    def __init__(self) -> None:
        self.cpu_ns = 5_000_000
        self.now_s = 100.0
        self.reads = 0

    def read(self) -> int:
        self.reads += 1
        return self.cpu_ns

    def book(self) -> UsageBook:
        return UsageBook(self.read, lambda: self.now_s)


def taken(clocks: Clocks, book: UsageBook) -> UsageReport:
    clocks.now_s += REPORT_S
    usage = book.take_if_due()
    assert usage is not None
    return usage


def test_usage_is_not_reported_before_it_is_due():
    clocks = Clocks()
    book = clocks.book()
    book.add("p", 1, 10, 1)
    clocks.now_s += REPORT_S - 0.1
    assert book.take_if_due() is None
    book.hasten()
    assert book.take_if_due() == UsageReport(0, 0, [PipeUsage("p", 1, 10, 1)])


def test_cpu_used_before_the_recording_starts_is_not_counted():
    clocks = Clocks()
    book = clocks.book()
    clocks.cpu_ns += 7_000
    assert taken(clocks, book) == UsageReport(7, 0, [])


def test_busy_and_idle_are_separate_and_the_clock_is_read_only_at_a_change():
    clocks = Clocks()
    book = clocks.book()
    for idle, spent_ns in ((False, 3_000), (True, 2_000), (True, 4_000), (False, 10_000)):
        book.poll(idle=idle)
        clocks.cpu_ns += spent_ns
    assert clocks.reads == 3, "at creation, and at two changes"
    assert taken(clocks, book) == UsageReport(13, 6, [])


def test_work_for_a_pipe_adds_up_and_is_reported_once():
    clocks = Clocks()
    book = clocks.book()
    book.add("p", 2, 20, 5)
    book.add("q", 1, 1, 0)
    book.add("p", 1, 10, 7)
    assert taken(clocks, book).pipes == [PipeUsage("p", 3, 30, 12), PipeUsage("q", 1, 1, 0)]
    assert taken(clocks, book).pipes == []


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3_000), st.booleans()), max_size=40))
def test_sum_of_all_reports_is_all_cpu_used(turns: list[tuple[bool, int, bool]]):
    clocks = Clocks()
    book, began_ns = clocks.book(), clocks.cpu_ns
    told_us = 0
    for idle, spent_ns, due in turns:
        book.poll(idle=idle)
        clocks.cpu_ns += spent_ns
        if due:
            usage = taken(clocks, book)
            told_us += usage.busy_us + usage.idle_us
    last = taken(clocks, book)
    told_us += last.busy_us + last.idle_us
    assert 0 <= clocks.cpu_ns - began_ns - told_us * 1_000 < 2_000, "except for a fraction of a microsecond each"


def audits(kafka: str) -> list[AuditRecord]:
    """Return every audit record on the broker."""
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "reader", "enable.auto.commit": False})
    found = []
    for partition in reader.list_topics(AUDIT_TOPIC, timeout=10).topics[AUDIT_TOPIC].partitions:
        place = TopicPartition(AUDIT_TOPIC, partition, 0)
        _, end = reader.get_watermark_offsets(place, timeout=10)
        reader.assign([place])
        records = reader.consume(end, 10) if end else []
        found += [decode_audit(record.value() or b"") for record in records]
    reader.close()
    return found


def test_lane_reports_its_work_for_a_pipe_at_the_latest_when_it_drains(monkeypatch: pytest.MonkeyPatch):
    """A whole lane on librdkafka's mock broker: all messages, all bytes, and no more CPU than the process used."""
    monkeypatch.setattr(threads, "COUNT", COUNT)
    with threads.mock_cluster(STEPS) as (cluster, settings):
        fill(cluster, COUNT)
        began = UsageBook()  # created before the lane's own
        lane = threads.TimedLane(LaneIdentity("c1", "process", 0, 1, "test"), settings, make_work)
        assert lane.run() == "drained"
        told = [audit.usage for audit in audits(cluster.kafka) if audit.usage is not None]
    began.hasten()
    used = began.take_if_due()
    assert used is not None
    pipes = [one for usage in told for one in usage.pipes]
    assert {one.pipe for one in pipes} == {PIPE}
    assert sum(one.units for one in pipes) == COUNT
    assert sum(one.size_bytes for one in pipes) == COUNT * len(EVENT)
    assert all(one.effort for one in pipes)
    assert 0 < sum(usage.busy_us for usage in told) <= used.busy_us + used.idle_us
