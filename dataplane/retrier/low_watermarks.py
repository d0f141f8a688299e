"""Low watermarks of the held topic: the ledger must learn which held messages retention has deleted."""

import itertools
import time
from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from dataplane.retrier.redriver import place_reader
from dataplane.runtime.lanes.context import LaneContext

EVERY_S: Final = 15.0  # between two queries, of one partition each
ASK_S: Final = 1.0


class LowWatermarks:
    """Queries the low watermarks, one partition at a time, and adds them to the marks of the lane's audit records."""

    def __init__(self, lane: LaneContext) -> None:
        self._audits = lane.audits
        self._consumer = place_reader(lane.settings.kafka)
        held = lane.cell.topics["held"]
        self._places = itertools.cycle([TopicPartition(held.name, number) for number in range(held.partitions)])
        self._due_s = time.monotonic() + EVERY_S

    def poll(self, now_s: float) -> None:
        """Query the next partition if EVERY_S has passed; blocks for at most ASK_S."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + EVERY_S
        partition = next(self._places)
        try:
            low, _ = self._consumer.get_watermark_offsets(partition, timeout=ASK_S)
        except KafkaException:
            return  # the broker is unavailable; the next round queries the partition again
        if low:
            self._audits.floors[partition.topic, partition.partition] = low

    def close(self) -> None:
        """Close the Kafka consumer."""
        self._consumer.close()
