"""Metadata of a message that steps, routes and dry runs can read besides its body."""

from zlib import crc32

from dataplane.expr import Timestamp
from dataplane.ledger.meta import MessageMeta
from dataplane.stages.steps import StepContext


def about(meta: MessageMeta) -> StepContext:
    """Return the root `meta` of expressions, and the random number in [0, 1) that a message's id alone determines."""
    return StepContext(
        {
            "id": meta.id,
            "pipe": meta.pipe,
            "revision": meta.revision,
            "source": meta.source,
            "event_time": Timestamp(meta.event_time_us * 1_000),
            "ingest_time": Timestamp(meta.ingest_time_us * 1_000),
            "headers": meta.request_headers,
        },
        crc32(meta.id.encode()) / 2**32,
    )
