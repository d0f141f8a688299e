"""Size limits of a Kafka record at each hop, and an upper bound of a record's size.

Brokers, topics, our clients and Spark's all take their limits from here, so that a topic never refuses a record that
a client accepted. A message is body + envelope (headers, key, framing); the original of a body that ingest converted
counts as a part of the body (dataplane.ingest.record_size). Ingest caps both; a process lane caps the body
again after its steps; additions of later hops (destination, stopwatch, marks of a dead letter, a tier's header) stay
below HOP_BYTES. So an accepted message fits egress, retry, held and dead:

    BODY_BYTES + ENVELOPE_BYTES + HOP_BYTES = CLIENT_MAX_BYTES < TOPIC_MAX_BYTES
"""

from collections.abc import Iterable
from typing import Final

TOPIC_MAX_BYTES: Final = 2 * 1024 * 1024  # max.message.bytes of every topic, message.max.bytes of brokers
CLIENT_MAX_BYTES: Final = TOPIC_MAX_BYTES - 1_024  # of producers; brokers also count the batch header
HOP_BYTES: Final = 32 * 1024
ENVELOPE_BYTES: Final = 64 * 1024
BODY_BYTES: Final = CLIENT_MAX_BYTES - ENVELOPE_BYTES - HOP_BYTES
REPORT_BYTES: Final = TOPIC_MAX_BYTES // 4  # an audit or attempts record; a larger report is split

# Overhead that librdkafka adds to key, value and headers (RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD), and at most per header.
FRAMING_BYTES: Final = 36
HEADER_FRAMING_BYTES: Final = 10


def wire_bytes(value: bytes | None, key: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return an upper bound of the size that librdkafka compares with `message.max.bytes`."""
    size = FRAMING_BYTES + len(value or b"") + len(key or b"")
    return size + sum(HEADER_FRAMING_BYTES + len(name.encode()) + len(text or b"") for name, text in headers)
