"""Split an audit record that is too large for one Kafka record. Pure.

Facts, lags, field samples, usage and other counts are divided over several records. The records with facts carry the
outputs, because a reader stores outputs with the facts of the same record. The inputs are in a separate last record: a
reader must not learn that an input is settled before it has every fact below it. Store the records in their order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
from pyroaring import BitMap64

from dataplane.ledger.audit import AuditRecord, FactSet, encode
from dataplane.ledger.usage import PipeUsage, UsageReport, divide
from dataplane.record_limits import REPORT_BYTES

LEAST_ROOM: Final = 4  # at least 1/4 of the limit is left for facts, however many partitions the marks name
_ARRAY_BYTES: Final = 64  # most that longer list headers and a larger sequence number add to an empty record
_T = TypeVar("_T")
_encode = msgspec.msgpack.Encoder().encode


def encode_parts(audit: AuditRecord, limit_bytes: int = REPORT_BYTES) -> list[bytes]:
    """Encode an audit record as one, or as several of at most `limit_bytes` each, numbered from its sequence on.

    A record exceeds the limit if the marks of its inputs or outputs alone do.
    """
    whole = encode(audit)
    if len(whole) <= limit_bytes:
        return [whole]
    base = msgspec.structs.replace(
        audit, inputs=[], facts=[], lags=[], usage=None, fields=[], rejections=[], traffic=[], breaks=[]
    )
    room_bytes = max(limit_bytes - _size_of(base) - _ARRAY_BYTES, limit_bytes // LEAST_ROOM)
    facts = [part for fact in audit.facts for part in split_facts(fact, room_bytes)]
    contents: list[dict[str, Any]] = [
        *({"facts": some} for some in packed(facts, room_bytes)),
        *({"lags": some} for some in packed(audit.lags, room_bytes)),
        *({"fields": some} for some in packed(audit.fields, room_bytes)),
        *({"rejections": some} for some in packed(audit.rejections, room_bytes)),
        *({"traffic": some} for some in packed(audit.traffic, room_bytes)),
        *({"breaks": some} for some in packed(audit.breaks, room_bytes)),
        *({"usage": some} for some in split_usage(audit.usage, room_bytes)),
        {"inputs": audit.inputs, "outputs": []},
    ]
    return [
        encode(msgspec.structs.replace(base, sequence=audit.sequence + number, **content))
        for number, content in enumerate(contents)
    ]


def packed(items: Iterable[_T], room_bytes: int) -> Iterator[list[_T]]:
    """Divide items, in their order, into lists of at most `room_bytes`; an item larger than that gets its own list."""
    batch: list[_T] = []
    used = 0
    for item in items:
        size = _size_of(item)
        if batch and used + size > room_bytes:
            yield batch
            batch, used = [], 0
        batch.append(item)
        used += size
    if batch:
        yield batch


def split_facts(fact: FactSet, room_bytes: int) -> Iterator[FactSet]:
    """Divide a set by its positions until each part fits; a set of one position stays whole."""
    if _size_of(fact) <= room_bytes:
        yield fact
        return
    positions: Sequence[int] = BitMap64.deserialize(fact.positions).to_array()
    if len(positions) < 2:
        yield fact
        return
    middle = len(positions) // 2
    for half in (positions[:middle], positions[middle:]):
        yield from split_facts(msgspec.structs.replace(fact, positions=BitMap64(half).serialize()), room_bytes)


def split_usage(usage: UsageReport | None, room_bytes: int) -> Iterator[UsageReport]:
    """Divide usage by pipes. Each part has the busy time for its pipes' efforts; their sum is unchanged."""
    if usage is None:
        return
    groups: list[list[PipeUsage]] = list(packed(usage.pipes, room_bytes))
    busy = divide(usage.busy_us, {str(number): sum(one.effort for one in group) for number, group in enumerate(groups)})
    yield UsageReport(usage.busy_us - sum(busy.values()), usage.idle_us, [])
    for number, group in enumerate(groups):
        yield UsageReport(busy.get(str(number), 0), 0, group)


def _size_of(item: Any) -> int:
    return len(_encode(item))
