"""Read the heartbeats of the other replicas: how many there are, and what they admit of each tenant's quota."""

from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_END, TopicPartition

from dataplane.ingest.quotas import TenantMeters
from dataplane.kafka_clients import make_consumer
from dataplane.ledger.heartbeat import decode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC, INGEST_GROUP

READ_LIMIT: Final = 1_000
_OURS: Final = b"/"  # the key of a replica's heartbeat: it belongs to no cell
_ENDED: Final = ("drained", "failed")


class PeerReader:
    """Feeds the meters from heartbeats. Without a broker none arrive, and the replica assumes to be the only one."""

    def __init__(self, kafka: str, name: str, meters: TenantMeters) -> None:
        """Assign the heartbeat topic; `name` is this replica's, whose own heartbeats are skipped."""
        self._name, self._meters = name, meters
        self._consumer: Any = make_consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock-peer-reader",  # the client requires a group; nothing is ever committed
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 1_000,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(HEARTBEAT_TOPIC, 0, OFFSET_END)])

    def refresh(self) -> None:
        """Read the heartbeats that have arrived, without waiting, and share the quotas out again if there were any."""
        found = [message for message in self._consumer.consume(READ_LIMIT, 0) if message.error() is None]
        beats = [message.value() or b"" for message in found if (message.key() or b"").startswith(_OURS)]
        for value in beats:
            self._take(value, self._meters.clock())
        if beats:
            self._meters.share_out()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _take(self, value: bytes, now_s: float) -> None:
        try:
            beat = decode_heartbeat(value)
        except msgspec.DecodeError:
            return  # written by a newer release
        if beat.kind != INGEST_GROUP or beat.writer == self._name:
            return
        if beat.state in _ENDED:
            self._meters.peers.gone(beat.writer)
        else:
            self._meters.peers.on_report(beat.writer, beat.taken, now_s)
