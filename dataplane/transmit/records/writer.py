"""Writer for destinations that are topics of Penstock's own Kafka; each record is settled by its delivery report.

It does not share the lane's producer: its producer has a timeout, and one missing topic must not end the lane.
"""

import logging
import time
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

from dataplane.causes import Cause
from dataplane.plan.stage import StageError
from dataplane.runtime.kafka import ingest_producer
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.http.sender import HOST_ERRORS, REQUEST_INVALID, HttpResponse
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryOutcome, DeliveryVerdict
from dataplane.transmit.records.storage_records import Maker, record_maker

log = logging.getLogger(__name__)

MAX_WRITES: Final = 4_000
TIMEOUT_MS: Final = 10_000
CLOSE_S: Final = 1.0
_TOO_LARGE: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE)
_UNWRITABLE: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.TOPIC_UNWRITABLE)


class RecordWriter:
    """Writer of up to MAX_WRITES records at once: `begin` starts one, `poll` returns those that ended."""

    def __init__(self, kafka: str, name: str, lake_topic: str) -> None:
        self._kafka, self._name = kafka, name
        self._producer: Producer | None = None  # created on first use: most lanes need none
        self._failed = False  # fatal error: the producer is replaced once it has reported on all its records
        self._lake_topic = lake_topic
        self._makers: dict[tuple[str, str], tuple[DestinationRecord, Maker]] = {}
        self._reports: list[tuple[Delivery, int, KafkaError | None]] = []  # that `poll` has not handled
        self._ended: list[HttpResponse] = []
        self.active = 0

    @property
    def room(self) -> int:
        """Number of records that may begin now."""
        return MAX_WRITES - self.active

    def begin(self, send: Delivery) -> None:
        """Start to write a message; `poll` returns an HttpResponse with its verdict.

        Raises only HOST_ERRORS, because one message must not end the lane.
        """
        self.active += 1
        began_ns = time.monotonic_ns()
        try:
            record = self._maker(send.target.record)(send)
            self._open().produce(
                record.topic,
                record.value,
                record.key,
                # Only noted: the client's poll would mix an exception of a callback with its own fatal error.
                on_delivery=lambda error, _message: self._reports.append((send, began_ns, error)),
                headers=record.headers,
            )
        except StageError as exc:
            self._end(send, DeliveryVerdict(DeliveryOutcome.DEAD, exc.cause), exc.detail, began_ns)
        except BufferError:
            self._end(send, _UNWRITABLE, "the producer's queue is full", began_ns)
        except KafkaException as exc:
            self._reported(send, began_ns, exc.args[0])
        except HOST_ERRORS:  # not caused by the message: the lane ends, and the next one writes the record
            raise
        except Exception as exc:  # one message must not end the lane
            log.exception("could not build a record")
            self._end(send, REQUEST_INVALID, type(exc).__name__, began_ns)

    def poll(self) -> list[HttpResponse]:
        """Return the results since the last call."""
        if self._producer is not None and self.active:
            try:
                self._producer.poll(0)
            except KafkaException as exc:  # fatal error: raised once, the delivery reports follow with the next polls
                log.warning("the writer's producer failed: %s", exc.args[0].str())
                self._failed = True
        reports, self._reports = self._reports, []
        for send, began_ns, error in reports:
            self._reported(send, began_ns, error)
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """Flush for up to CLOSE_S. Records still in flight count as unsettled and are read again."""
        if self._producer is not None:
            self._producer.flush(CLOSE_S)

    def _maker(self, record: DestinationRecord) -> Maker:
        """Return the destination's maker, compiled once per version of its record."""
        key = (record.pipe, record.name)
        known = self._makers.get(key)
        if known is None or known[0] is not record:
            known = self._makers[key] = (record, record_maker(record, self._lake_topic))
        return known[1]

    def _open(self) -> Producer:
        """Return the producer; replace a failed one as soon as it has reported on all other records."""
        if self._producer is None or (self._failed and self.active == 1):
            self._producer, self._failed = ingest_producer(self._kafka, self._name, TIMEOUT_MS), False
        return self._producer

    def _reported(self, send: Delivery, began_ns: int, error: KafkaError | None) -> None:
        if error is None:
            self._end(send, OK, "", began_ns)
        elif error.code() in _TOO_LARGE:
            self._end(send, DeliveryVerdict(DeliveryOutcome.DEAD, Cause.TOO_LARGE), error.str(), began_ns)
        else:
            self._failed = self._failed or error.code() == KafkaError._FATAL
            self._end(send, _UNWRITABLE, error.str(), began_ns)

    def _end(self, send: Delivery, verdict: DeliveryVerdict, message: str, began_ns: int) -> None:
        self.active -= 1
        total_us = (time.monotonic_ns() - began_ns) // 1_000
        self._ended.append(HttpResponse(send, 0, 0, message, "", False, total_us=total_us, verdict=verdict))
