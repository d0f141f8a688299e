"""One Spark task of a recomputation of a lake table: the events of one partition become rows.

It is apart from the command, because Spark sends the classes of `__main__` to its workers by value, and a msgspec
Struct cannot be sent so: its copy has no fields.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from dataplane.jobs.lake_batch import hour_of
from dataplane.ledger.meta import decode_meta
from dataplane.ledger.units import position_of
from dataplane.plan import compile_plan
from dataplane.plan.through import through
from dataplane.runtime.lookups import TenantRows
from dataplane.spec import PipeSpec
from dataplane.tables.lookup_store import LookupStore


class RecomputeRequest(NamedTuple):
    """Rows to recompute, and the revision to use.

    since_us, until_us: range of ingest times (the end is exclusive), microseconds since 1970
    """

    pipe: str
    destination: str
    revision: int
    since_us: int
    until_us: int


class RecomputeTask(Struct, frozen=True):
    """Input of one Spark task, which compiles its own plan and opens the host's look-up tables."""

    request: RecomputeRequest
    spec: PipeSpec
    salt: bytes
    tenant: str
    generation: int
    lookups: Path

    def rows(self, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the table rows of these records of the ingest topic."""
        request, plan = self.request, compile_plan(self.spec, self.salt)
        store = LookupStore(self.lookups)
        pinned = store.pin()
        try:
            tables = TenantRows(pinned, self.tenant)
            for record in records:
                meta = decode_meta(bytes(record.header))
                if meta.pipe != request.pipe or not request.since_us <= meta.ingest_time_us < request.until_us:
                    continue
                meta.position = position_of(self.generation, record.partition, record.offset)
                for unit, body in through(plan, request.destination, meta, bytes(record.value or b""), tables):
                    names = (unit.id, unit.position, unit.child, unit.pipe, request.revision, unit.source)
                    hour = hour_of(unit.ingest_time_us)
                    yield (*names, unit.event_time_us, unit.ingest_time_us, *hour, body)
        finally:
            pinned.close()
            store.close()
