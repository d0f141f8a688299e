"""What steps, routes and dry runs may know of a message beside its body."""

from zlib import crc32

from dataplane.expr import Timestamp
from dataplane.ledger.meta import Meta
from dataplane.stages.steps import About


def about(meta: Meta) -> About:
    """The root `meta` of expressions, and the message's own chance, which its id alone decides."""
    return About(
        {
            "id": meta.id,
            "pipe": meta.pipe,
            "revision": meta.revision,
            "source": meta.source,
            "event_time": Timestamp(meta.event_time_us * 1_000),
            "ingest_time": Timestamp(meta.ingest_time_us * 1_000),
        },
        crc32(meta.id.encode()) / 2**32,
    )
