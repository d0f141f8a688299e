"""Ingest replicas inside the test process."""

from typing import Any

from dataplane.ingest.replica import IngestReplica
from tests.support.reports import Report


class MemoryProducer:
    """Producer that gives each record to `keep` and reports it as stored at the next poll."""

    def __init__(self) -> None:
        self._due: list[tuple[Any, Report]] = []
        self._records = 0

    def keep(self, body: bytes, headers: Any, /) -> None:
        """Do nothing with a record."""

    def produce(self, _topic: str, body: bytes, *record: Any, headers: Any) -> None:
        """Keep a record."""
        _key, partition, report = record
        self.keep(body, headers)
        self._records += 1
        self._due.append((report, Report(partition, self._records)))

    def flush(self, wait_s: float) -> int:
        """Report the records since the last poll; none is left."""
        self.poll(wait_s)
        return 0

    def poll(self, _wait_s: float) -> None:
        """Report the records since the last poll."""
        due, self._due = self._due, []
        for report, place in due:
            report(None, place)


def close_replica(replica: IngestReplica) -> None:
    """Close the files and Kafka clients of a replica that was never started, so that it has nothing to report."""
    replica._journal.close()
    replica._reader.close()
    replica._peers.close()
