"""Where the held topic begins: what retention has taken of it is nobody's any more, and the ledger must know."""

import itertools
import time
from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from dataplane.retrier.mover import place_reader
from dataplane.runtime.lane import Lane

EVERY_S: Final = 15.0  # one partition each time
ASK_S: Final = 1.0


class Floor:
    """Asks for one partition's beginning after the other, and puts it among the marks of the lane's audit records."""

    def __init__(self, lane: Lane) -> None:
        self._audits = lane.audits
        self._consumer = place_reader(lane.settings.kafka)
        held = lane.cell.topics["held"]
        self._places = itertools.cycle([TopicPartition(held.name, number) for number in range(held.partitions)])
        self._due_s = time.monotonic() + EVERY_S

    def turn(self, now_s: float) -> None:
        """Ask, if it is time."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + EVERY_S
        place = next(self._places)
        try:
            low, _ = self._consumer.get_watermark_offsets(place, timeout=ASK_S)
        except KafkaException:
            return  # the broker is away; the next round asks again
        if low:
            self._audits.floors[place.topic, place.partition] = low

    def close(self) -> None:
        """Ask no more."""
        self._consumer.close()
