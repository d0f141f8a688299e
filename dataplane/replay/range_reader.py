"""Reader of a range of offsets of one partition, for tasks of batch jobs. It joins no group and commits nothing."""

import time
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from dataplane.replay.ranges import OffsetRange

READ_SIZE: Final = 500
READ_S: Final = 0.2
FIRST_S: Final = 15.0
ASK_S: Final = 5.0


class RangeReader:
    """Reads a range in order; after `messages`, `next` and `read` say how far it came.

    next:  offset after the last message that was handled; the range's end if it was read to its end
    read:  messages that were handled
    error: reason why it ended early
    """

    def __init__(self, consumer: Any, range_: OffsetRange) -> None:
        """`consumer`: for assigned partitions, with offset reset `error`."""
        self._consumer, self._range = consumer, range_
        self._is_after_gap = False
        self.next = range_.first
        self.read = 0
        self.error = ""

    def messages(self, deadline_s: float) -> Iterator[Message]:
        """Yield the messages until the end of the range, a time of the monotonic clock, or an error.

        A message counts as handled when the next one is asked for. The first one is waited for at least FIRST_S.
        """
        first_s = time.monotonic() + FIRST_S
        self._assign()
        while self.next < self._range.end and not self.error:
            if time.monotonic() >= (deadline_s if self.read else first_s):
                break
            for message in self._consumer.consume(READ_SIZE, READ_S):
                if self.next >= self._range.end:  # also the end of the partition may follow in the same answer
                    break
                if message.error() is not None:
                    self._handle_error(message.error())
                    break
                offset = int(message.offset() or 0)
                if offset < self.next or (message.topic(), message.partition()) != self._range.place:
                    continue  # fetched for an earlier range of this consumer
                if offset >= self._range.end:  # retention or compaction has left a gap before it
                    self.next = self._range.end
                    break
                yield message
                self.next, self.read = offset + 1, self.read + 1
        if not self.read and self.next < self._range.end and not self.error:
            self.error = "Kafka returned no event in time"

    def take_gap(self) -> bool:
        """Return True once after a gap that retention has left: the newest message is the first one after it."""
        is_after_gap, self._is_after_gap = self._is_after_gap, False
        return is_after_gap

    def _assign(self) -> None:
        self._consumer.assign([TopicPartition(*self._range.place, self.next)])

    def _handle_error(self, error: KafkaError) -> None:
        """Skip events that retention has deleted; note every other error, also an end before the range's end."""
        place = self._range.place
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            try:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=ASK_S)
            except KafkaException as exc:
                self.error = str(exc)
                return
            if self.next < low:
                self.next, self._is_after_gap = min(low, self._range.end), True
                self._assign()
            else:
                self.error = f"{place} ends at {high}, before offset {self.next}"
        elif error.code() == KafkaError._PARTITION_EOF:
            self.error = f"{place} ends at {self.next}, before offset {self._range.end}"
        else:
            self.error = error.str()
