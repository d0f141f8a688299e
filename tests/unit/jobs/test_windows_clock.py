"""Clock of windows: it waits for everything that runs steps and may still tap an event."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from dataplane.jobs import windows
from dataplane.jobs.windows import TapTicker
from dataplane.names import cell_topic, lane_group, query_group
from dataplane.tables.records import TopicRecord

END = 5
TOPICS = {
    name: TopicRecord(cell_topic("c1", name, 1), 1, 1, "")
    for name in ("ingest", "process-slow", "bulk", "dedup", "taps")
}
GROUPS = (
    lane_group("c1", "process"),
    lane_group("c1", "process-slow"),
    query_group("c1", "bulk"),
    query_group("c1", "dedup"),
)


class Reader:
    """Offsets of one group: its topics end at END."""

    committed_by: dict[str, int]

    def __init__(self, _kafka: str, group: str) -> None:
        self._group = group

    def get_watermark_offsets(self, _partition: TopicPartition, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        return 0, END

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        return [TopicPartition(one.topic, one.partition, self.committed_by[self._group]) for one in partitions]

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def ticker(monkeypatch: pytest.MonkeyPatch) -> TapTicker:
    """A clock whose thread does not run."""
    monkeypatch.setattr(windows, "make_offset_client", Reader)
    monkeypatch.setattr(windows, "QueryLedgerReporter", lambda *_: None)
    monkeypatch.setattr("dataplane.jobs.windows.threading.Thread", lambda **_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(Reader, "committed_by", dict.fromkeys(GROUPS, END), raising=False)
    start: Any = SimpleNamespace(cell=SimpleNamespace(cell="c1", topics=TOPICS), settings=SimpleNamespace(kafka=""))
    return TapTicker(start)


def test_clock_advances_once_everything_is_settled_also_what_dedup_has_returned(
    ticker: TapTicker, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def passed(group: str, _topic: TopicRecord) -> bool:
        asked.append(group)
        return True

    monkeypatch.setattr(ticker, "_passed", passed)
    assert ticker._all_settled()
    assert asked == [*GROUPS[:3], GROUPS[3], *GROUPS[:3]]


@pytest.mark.parametrize("group", GROUPS)
def test_clock_waits_for_each_reader_that_may_still_tap(ticker: TapTicker, monkeypatch: pytest.MonkeyPatch, group: str):
    monkeypatch.setitem(Reader.committed_by, group, END - 1)
    monkeypatch.setattr(ticker._ending, "wait", lambda _s: ticker._ending.set())
    assert not ticker._all_settled()
