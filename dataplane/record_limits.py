"""How large a Kafka record may be at each hop. Constants, and one upper bound for a record's size.

Brokers, topics, our clients and Spark's all take their limits from here, so that what a client accepts is never
refused by a topic. A message is body + envelope (headers, key, framing). Ingest caps both; a process lane caps the body
again after its steps; what later hops add (destination, stopwatch, marks of a dead letter, a tier's header) stays below
HOP_BYTES. So a message that was accepted fits egress, retry, held and dead:

    BODY_BYTES + ENVELOPE_BYTES + HOP_BYTES = CLIENT_MAX_BYTES < TOPIC_MAX_BYTES
"""

from collections.abc import Iterable
from typing import Final

TOPIC_MAX_BYTES: Final = 2 * 1024 * 1024  # max.message.bytes of every topic, message.max.bytes of brokers
CLIENT_MAX_BYTES: Final = TOPIC_MAX_BYTES - 1_024  # of producers: brokers count the batch's header as well
HOP_BYTES: Final = 32 * 1024
ENVELOPE_BYTES: Final = 64 * 1024
BODY_BYTES: Final = CLIENT_MAX_BYTES - ENVELOPE_BYTES - HOP_BYTES
REPORT_BYTES: Final = TOPIC_MAX_BYTES // 4  # an audit or attempts record; a larger report is split

# What librdkafka counts beside key, value and headers (RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD), and at most for each header.
FRAMING_BYTES: Final = 36
HEADER_FRAMING_BYTES: Final = 10


def wire_bytes(value: bytes | None, key: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return an upper bound of what librdkafka holds against its `message.max.bytes`."""
    size = FRAMING_BYTES + len(value or b"") + len(key or b"")
    return size + sum(HEADER_FRAMING_BYTES + len(name.encode()) + len(text or b"") for name, text in headers)
