"""Order of what a query writes: records, then their facts, then the offsets of its input."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa
import pytest

from dataplane.jobs import task_writers
from dataplane.jobs.dedup import DedupWriter, VerdictWriter
from dataplane.jobs.ledger_reporter import ReportWriteError
from dataplane.jobs.queries import QueryStart
from dataplane.jobs.windows import ResultWriter
from dataplane.ledger.audit import OffsetMark
from dataplane.runtime.settings import settings_from
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, TopicRecord

INGEST: Final = TopicRecord("ingest", 1, 4, "")
PANES: Final = TopicRecord("panes", 1, 4, "")
KAFKA: Final = "127.0.0.1:1"
CELL: Final = CellRecord("c1", 1, 1, {}, {"ingest": INGEST, "dedup": TopicRecord("asked", 1, 1, "")})
VERDICT: Final = {"pipe": "p", "bucket": 60, "partition": 2, "key": b"k", "value": b"{}", "headers": []}
VERDICTS: Final = [
    {**VERDICT, "offset": 7, "position": 1 << 40, "sent": True},
    {**VERDICT, "offset": 8, "position": 1 << 40 | 1, "sent": False},
]
RESULT: Final = {"id": "r", "pipe": "p", "revision": 1, "window": "w", "key": b'["a"]', "end_us": 1, "body": b"{}"}
CURRENT: Final = {**dict.fromkeys(RESULT), "key": b"digest-of-the-key", "body": b"{}"}


class Log:
    """Reporter that logs calls; records are stored by `await_stored`, which may fail."""

    producer = 1

    def __init__(self, *, fails: bool = False) -> None:
        self.calls: list[str] = []
        self.inputs: list[OffsetMark] = []
        self._fails = fails
        self._reports: list[Callable[[], None]] = []

    def produce(
        self, topic: str, _value: bytes | None, stored: Callable[[Any], None] | None = None, **_record: Any
    ) -> None:
        self.calls.append(f"produce {topic}")
        if stored is not None:
            message: Any = SimpleNamespace(partition=lambda: 2, offset=lambda: 9)
            self._reports.append(lambda: stored(message))

    def await_stored(self) -> None:
        self.calls.append("await")
        if self._fails:
            raise ReportWriteError("1 records not stored within 30 s")
        for report in self._reports:
            report()

    def report(self, facts: Any, inputs: list[OffsetMark], _outputs: list[OffsetMark], _kind: str) -> None:
        self.inputs += inputs
        self.calls.append(f"report {len(facts)} facts, {len(inputs)} inputs")

    def highs(self, _topic: TopicRecord) -> list[OffsetMark]:
        return []

    def close(self) -> None:
        self.calls.append("close")


class Frame:
    """Rows of one partition, written in this process."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def repartition(self, *_: Any) -> "Frame":
        return self

    def sortWithinPartitions(self, *_: Any) -> "Frame":  # noqa: N802
        return self

    def mapInArrow(self, run: Callable[[Iterable[Any]], Iterator[Any]], _schema: str) -> Any:  # noqa: N802
        [written] = run([pa.RecordBatch.from_pylist(self._rows)])
        return SimpleNamespace(collect=lambda: [SimpleNamespace(**row) for row in written.to_pylist()])


def log_of(query: str, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> Log:
    log = Log(fails=fails)
    monkeypatch.setattr(task_writers, "_reporters", {(KAFKA, "c1", query): log})
    return log


def dedup_writer(log: Any) -> DedupWriter:
    settings = settings_from({"PENSTOCK_KAFKA": KAFKA, "PENSTOCK_VAR": str(Path("var"))})
    return DedupWriter(QueryStart(CELL, ControlTable(), settings, "i"), log)


def test_offsets_of_dedup_are_reported_after_facts_and_these_after_records(monkeypatch: pytest.MonkeyPatch):
    log = log_of("dedup", monkeypatch)
    dedup_writer(log)(Frame(VERDICTS), 0)
    assert log.calls == ["produce ingest", "await", "report 1 facts, 0 inputs", "report 0 facts, 1 inputs"]
    assert log.inputs == [OffsetMark("asked", 0, 9)]


def test_failed_attempt_of_dedup_reports_neither_facts_nor_offsets(monkeypatch: pytest.MonkeyPatch):
    log = log_of("dedup", monkeypatch, fails=True)
    with pytest.raises(ReportWriteError):
        dedup_writer(log)(Frame(VERDICTS), 0)
    assert log.calls == ["produce ingest", "await", "close"]


def test_facts_of_results_are_reported_after_the_results(monkeypatch: pytest.MonkeyPatch):
    log = log_of("windows", monkeypatch)
    assert ResultWriter(KAFKA, "c1", INGEST, PANES, 60_000_000)(iter([RESULT, CURRENT])) == 1
    assert log.calls[:3] == ["produce ingest", "produce panes", "await"]
    assert [call.startswith("report ") for call in log.calls[3:]] == [True]


def test_failed_attempt_of_windows_reports_nothing(monkeypatch: pytest.MonkeyPatch):
    log = log_of("windows", monkeypatch, fails=True)
    with pytest.raises(ReportWriteError):
        ResultWriter(KAFKA, "c1", INGEST, PANES, 60_000_000)(iter([RESULT]))
    assert log.calls == ["produce ingest", "await"]


def test_verdicts_without_a_message_to_return_are_reported(monkeypatch: pytest.MonkeyPatch):
    log = log_of("dedup", monkeypatch)
    assert VerdictWriter(KAFKA, "c1", "ingest")(iter([VERDICTS[1]])) == 9
    assert log.calls == ["await", "report 1 facts, 0 inputs"]
