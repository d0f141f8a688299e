"""Objects that batches for an S3 bucket become: the key, the content and the headers. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from dataplane.ledger.meta import MessageMeta
from dataplane.spec import S3Destination
from dataplane.transmit.deliveries.batches import batch_body, batch_id
from dataplane.transmit.deliveries.delivery import Delivery

CONTENT_TYPES: Final = {"jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}


def object_url(to: S3Destination, members: Sequence[Delivery]) -> str:
    """Return the URL of the object of these messages.

    A request that is repeated with the same messages replaces the object that it may have written before; no other
    destination or replay has an object of this name. The folders are the date and hour of ingest, UTC, of the first
    message.
    """
    at = datetime.fromtimestamp(members[0].meta.ingest_time_us // 1_000_000, UTC)
    key = f"{to.prefix}date={at:%Y-%m-%d}/hour={at:%H}/{_name(members)}.{to.format}"
    return f"{to.url.rstrip('/')}/{quote(key)}"


def _name(members: Sequence[Delivery]) -> str:
    first = members[0].meta
    lines = [f"{first.pipe} {first.destination} {first.replay}"]
    lines += [f"{send.meta.position} {send.meta.child} {send.meta.id}" for send in members]
    return batch_id(lines)


def object_headers(to: S3Destination, members: Sequence[Delivery]) -> list[str]:
    """Return the header lines that describe the object; `x-amz-meta-` ones are stored with it."""
    meta = members[0].meta
    replay = [f"x-amz-meta-penstock-replay: {meta.replay}"] if meta.replay else []
    return [
        f"Content-Type: {CONTENT_TYPES[to.format]}",
        f"x-amz-meta-penstock-pipe: {meta.pipe}",
        f"x-amz-meta-penstock-messages: {len(members)}",
        *replay,
    ]


def object_body(to: S3Destination, members: Sequence[Delivery]) -> bytes:
    """Return the content of the object."""
    return _parquet(members) if to.format == "parquet" else batch_body(members, "ndjson")


def _parquet(members: Sequence[Delivery]) -> bytes:
    """Return a Parquet file with the columns of a lake table, apart from those of its folder."""
    # Imported here, because only lanes with such a destination need the memory of both.
    import pyarrow as pa
    from pyarrow import parquet

    time_us = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("position", pa.int64()),
            ("child", pa.int32()),
            ("pipe", pa.string()),
            ("revision", pa.int32()),
            ("source", pa.string()),
            ("event_time", time_us),
            ("ingest_time", time_us),
            ("body", pa.string()),
            ("body_bytes", pa.binary()),
        ]
    )
    rows = [_row(send.meta, send.body) for send in members]
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    file = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), file)
    return bytes(file.getvalue())


def _row(meta: MessageMeta, body: bytes) -> tuple[Any, ...]:
    try:
        text, data = body.decode(), None
    except UnicodeDecodeError:
        text, data = None, body
    times = (meta.event_time_us, meta.ingest_time_us)
    return (meta.id, meta.position, meta.child, meta.pipe, meta.revision, meta.source, *times, text, data)
