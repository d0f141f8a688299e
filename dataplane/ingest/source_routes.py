"""Routes of sources: by API key, by the secret of a webhook URL, and those of feeds."""

import time

from dataplane.ingest.feed import FedSource
from dataplane.ingest.feeds import FeedKey
from dataplane.ingest.operational_feed import OperationalFeedKey
from dataplane.ingest.problems import RETRY_AFTER_S, EventRejectedError, table_unread
from dataplane.ingest.route import SourceRoute
from dataplane.ingest.schemas import check_of
from dataplane.ingest.table_feed import TableFeedKey
from dataplane.ledger.rejections import SENDER_CHARS
from dataplane.plan import SourceFields, source_fields
from dataplane.spec.keys import PREFIX, key_digest, key_is_well_formed
from dataplane.tables.control import ControlReader
from dataplane.tables.event_types import EventTypeGates
from dataplane.tables.records import PipeRecord


class SourceRoutes:
    """Routes of the control table. Those of keys are kept until the table changes."""

    def __init__(self, reader: ControlReader) -> None:
        self._reader = reader
        self._table = reader.table
        self._gates = EventTypeGates(reader.table)
        self._found: dict[str, SourceRoute] = {}
        self._changes = -1

    def find(self, key: str, prefix: str = PREFIX) -> SourceRoute:
        """Return the route of an API key, or of the secret part of a webhook URL, which has another prefix.

        The prefix keeps them apart: as a key, that part would post events without a signature.

        Raises EventRejectedError for an unknown, expired or revoked key, a closed pipe, or one that is not live yet.
        """
        if self._changes != self._table.changes:
            self._found.clear()
            self._changes = self._table.changes
        route = self._found.get(key) if key.startswith(prefix) else None
        if route is None:
            if not key_is_well_formed(key, prefix):  # malformed and mistyped keys cost no look-up
                raise _unknown_key()
            route = self._found[key] = self._find(key_digest(key))
        if 0 < route.ends_us <= time.time_ns() // 1_000:
            raise _expired_key()
        return route

    def _find(self, digest: str) -> SourceRoute:
        key = self._table.key(digest)
        if key is None and not self._reader.at_end:
            raise table_unread()  # a sender gives up on 401, and the key may be newer than the snapshot
        if key is None or key.revoked:
            raise _unknown_key()
        route = self.lead(key.pipe, key.source)
        route.check = check_of(self._table.schema(key.pipe, key.source))
        route.sender, route.ends_us = digest[:SENDER_CHARS], key.expires_us
        return route

    def lead(self, pipe_id: str, source: str, feed: FedSource | None = None) -> SourceRoute:
        """Return the route of a source, or of its feed.

        Raises EventRejectedError for a closed pipe, or one that is not live yet.
        """
        pipe = self._table.pipe(pipe_id)
        cell = self._table.cell(pipe.cell) if pipe else None
        if pipe is None or cell is None or not pipe.weights:
            raise _starting()
        if pipe.state == "closed":
            raise EventRejectedError(409, "pipe-closed", "the pipe is closed; reopen it to send events")
        fields = self._fields(source, pipe, feed)
        weights = [(revision, share) for revision, share in pipe.weights if revision in fields]
        spread = frozenset(revision for revision, of_revision in fields.items() if of_revision.spread)
        gate = self._gates.find(pipe.tenant, pipe_id, source)
        return SourceRoute(pipe, source, cell.topics["ingest"], fields, weights, spread=spread, gate=gate)

    def type_header(self, want: FeedKey) -> str:
        """Return the record header that names the event types of a Kafka source; "" if none does."""
        gate = self._gates.find(want.tenant, want.pipe, want.source)
        return "" if gate is None else gate.record_header

    def _fields(self, source: str, pipe: PipeRecord, feed: FedSource | None) -> dict[int, SourceFields]:
        """Return the fields that each revision which names the source reads.

        During a ramp, perhaps only one of the two names it, or reads the rows or events of the feed. Raises
        EventRejectedError if none does, or a plan is unknown.
        """
        records = [self._table.plan(pipe.pipe, revision) for revision, _ in pipe.weights]
        known = [record for record in records if record is not None]
        named = {record.revision: record.spec for record in known if source in record.spec.sources}
        if isinstance(feed, TableFeedKey | OperationalFeedKey):
            named = {revision: spec for revision, spec in named.items() if feed.reads(spec.sources[source])}
        if len(known) < len(records) or not named:
            raise _starting()
        return {revision: source_fields(spec)[source] for revision, spec in named.items()}


def _unknown_key() -> EventRejectedError:
    return EventRejectedError(401, "key-invalid", "the API key is unknown or revoked")


def _expired_key() -> EventRejectedError:
    return EventRejectedError(401, "key-expired", "the API key has expired; use a newer key of the source")


def _starting() -> EventRejectedError:
    return EventRejectedError(
        503, "pipe-starting", "the pipe is not live yet; retry later", retry_after_s=RETRY_AFTER_S
    )
