"""One Spark task of a recomputation of a lake table: the events of one partition become rows.

It is apart from the command, because Spark sends the classes of `__main__` to its workers by value, and a msgspec
Struct cannot be sent so: its copy has no fields.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from dataplane.ingest.stamp import key_bytes
from dataplane.jobs.kept_context import close_kept
from dataplane.jobs.lake_batch import hour_of
from dataplane.ledger.meta import MessageMeta, decode_meta
from dataplane.ledger.units import position_of
from dataplane.plan import CompiledPlan, StageError, compile_plan
from dataplane.plan.dedup import DedupIdentity
from dataplane.plan.refold import is_correctable
from dataplane.plan.stage import decode
from dataplane.plan.through import through
from dataplane.process.dedup import VERDICT_HEADER
from dataplane.runtime.lookups import TenantRows
from dataplane.spec import PipeSpec
from dataplane.spec.dedup import DedupSpec
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.tables.lookup_store import LookupStore

EVENT: Final = -1  # child of the row that names a selected event
ASKED: Final = -2  # the same, of an event that dedup judges
RECOMPUTED: Final = (
    "id string, position long, child int, pipe string, revision int, source string, event_time_us long, "
    "ingest_time_us long, date date, hour int, value binary"
)
SENT: Final = "id string, partition int, offset long, header binary, value binary"


class RecomputeRequest(NamedTuple):
    """Rows to recompute, and the revision to use.

    since_us, until_us: range of ingest times (the end is exclusive), microseconds since 1970
    key: the events' key as the source defines it; None for all events
    """

    pipe: str
    destination: str
    revision: int
    since_us: int
    until_us: int
    key: str | None = None


class RecomputeTask(Struct, frozen=True):
    """Input of one Spark task, which compiles its own plan and opens the host's look-up tables.

    complete_us: ingest time from which on all events are retained; 0 if none has expired
    dedup:       settings of the revisions that have dedup, by number
    """

    request: RecomputeRequest
    spec: PipeSpec
    salt: bytes
    tenant: str
    generation: int
    lookups: Path
    complete_us: int = 0
    dedup: dict[int, DedupSpec] = {}

    def originals(self, records: Iterable[Any]) -> Iterator[tuple[Any, MessageMeta]]:
        """Yield each record that ingest stored for the pipe, with its Meta and position; not those that returned."""
        for record in records:
            meta = decode_meta(bytes(record.header))
            if meta.pipe == self.request.pipe and meta.is_original:
                meta.position = position_of(self.generation, record.partition, record.offset)
                yield record, meta

    @contextmanager
    def tables(self) -> Iterator[TenantRows]:
        """Open the tenant's look-up tables as they are now."""
        close_kept()
        store = LookupStore(self.lookups)
        pinned = store.pin()
        try:
            yield TenantRows(pinned, self.tenant)
        finally:
            pinned.close()
            store.close()

    def selects(self, record: Any, meta: MessageMeta) -> bool:
        """Return True for an event of the range that has the key."""
        request = self.request
        if not request.since_us <= meta.ingest_time_us < request.until_us:
            return False
        return request.key is None or record.key == key_bytes(request.pipe, request.key)

    def rows(self, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the table rows of the selected events in these records of the ingest topic.

        Each event first yields a row of child EVENT without a body: all rows of the table at its position are to be
        replaced. Such a row of an event that dedup had to judge is of child ASKED.
        """
        plan = compile_plan(self.spec, self.salt)
        identities = {number: DedupIdentity(spec) for number, spec in self.dedup.items()}
        with self.tables() as tables:
            for record, meta in self.originals(records):
                if not self.selects(record, meta) or (plan.windows and is_result(meta)):
                    continue
                body = bytes(record.value or b"")
                asked = _has_identity(identities.get(meta.revision), meta, body)
                yield self._row(meta, ASKED if asked else EVENT, None)
                yield from self._made(plan, meta, body, tables)

    def sent_results(self, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the sent results of windows among these records: columns SENT."""
        for record, meta in self.originals(records):
            if is_result(meta):
                yield meta.id, record.partition, record.offset, record.header, record.value

    def result_rows(self, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of sent results, corrected where the record's column `refolded` has another body.

        Without a key, the results of the range are replaced; with one, those that differ, whenever they were sent.
        """
        plan, request = compile_plan(self.spec, self.salt), self.request
        definitions = {window.name: window.definition for window in plan.windows}
        with self.tables() as tables:
            for record, meta in self.originals(records):
                sent, made = bytes(record.value or b""), record.refolded
                if not is_correctable(request.pipe, meta.id, sent, definitions, self.complete_us):
                    made = sent
                in_range = request.since_us <= meta.ingest_time_us < request.until_us
                if not in_range if request.key is None else made == sent:
                    continue
                yield self._row(meta, EVENT, None)
                if made is not None:
                    yield from self._made(plan, meta, bytes(made), tables)

    def _made(
        self, plan: CompiledPlan, meta: MessageMeta, body: bytes, tables: TenantRows
    ) -> Iterator[tuple[Any, ...]]:
        for unit, made in through(plan, self.request.destination, meta, body, tables):
            yield self._row(unit, unit.child, made)

    def _row(self, unit: MessageMeta, child: int, body: bytes | None) -> tuple[Any, ...]:
        names = (unit.id, unit.position, child, unit.pipe, self.request.revision, unit.source)
        return (*names, unit.event_time_us, unit.ingest_time_us, *hour_of(unit.ingest_time_us), body)


def is_result(meta: MessageMeta) -> bool:
    """Return True for the result of a window."""
    return meta.source.startswith(WINDOW_SOURCE)


def verdicts(pipe: str, records: Iterable[Any]) -> Iterator[tuple[int, bool]]:
    """Yield the position of each event of the pipe that dedup has judged, and True if it is a repeat of another.

    Such an event is on the ingest topic a second time, with its position and the verdict as the last header.
    """
    for record in records:
        if record.last.key != VERDICT_HEADER:
            continue
        meta = decode_meta(bytes(record.header))
        if meta.pipe == pipe and meta.position:
            yield meta.position, bool(record.last.value)


def _has_identity(identity: DedupIdentity | None, meta: MessageMeta, body: bytes) -> bool:
    if identity is None or is_result(meta):
        return False
    if identity.by_key:
        return identity.of_key(meta) is not None
    try:
        return identity.of(meta.pipe, decode(body)) is not None
    except StageError:  # not JSON, so dedup was not asked
        return False
