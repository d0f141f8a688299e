"""The writer: brings messages to destinations that are topics of ours, each settled by its own delivery report.

Its producer is not the lane's: it gives up in time, and one topic that is gone must not end the lane.
"""

import logging
import time
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from dataplane.plan.stage import StageError
from dataplane.runtime.kafka import ingest_producer
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.kept import Maker, record_maker
from dataplane.transmit.sender import REQUEST_INVALID, Answer
from dataplane.transmit.sends import Send
from dataplane.transmit.verdict import OK, Outcome, Verdict

log = logging.getLogger(__name__)

MAX_WRITES: Final = 4_000
TIMEOUT_MS: Final = 10_000
CLOSE_S: Final = 1.0
_TOO_LARGE: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE)
_UNWRITABLE: Final = Verdict(Outcome.RECOVERABLE, "topic-unwritable")


class Writer:
    """Up to MAX_WRITES records under way. `begin` starts one, `turn` returns what ended, as the sender does."""

    def __init__(self, kafka: str, name: str, lake_topic: str) -> None:
        self._kafka, self._name = kafka, name
        self._producer: Producer | None = None  # most lanes need none
        self._failed = False  # for good: the producer is replaced once it has reported on all it held
        self._lake_topic = lake_topic
        self._makers: dict[tuple[str, str], tuple[DestinationRecord, Maker]] = {}
        self._ended: list[Answer] = []
        self.active = 0

    @property
    def room(self) -> int:
        """How many more may begin."""
        return MAX_WRITES - self.active

    def begin(self, send: Send) -> None:
        """Start it; it comes back in an Answer with a verdict."""
        self.active += 1
        began_ns = time.monotonic_ns()
        try:
            record = self._maker(send.target.record)(send)
            self._open().produce(
                record.topic,
                record.value,
                record.key,
                on_delivery=partial(self._reported, send, began_ns),
                headers=record.headers,
            )
        except StageError as exc:
            self._end(send, Verdict(Outcome.DEAD, exc.cause), exc.detail, began_ns)
        except BufferError:
            self._end(send, _UNWRITABLE, "the producer's queue is full", began_ns)
        except KafkaException as exc:
            self._reported(send, began_ns, exc.args[0], None)
        except Exception as exc:  # one message ends no lane
            log.exception("a record could not be made")
            self._end(send, REQUEST_INVALID, type(exc).__name__, began_ns)

    def turn(self) -> list[Answer]:
        """Return what ended since the last call."""
        if self._producer is not None and self.active:
            try:
                self._producer.poll(0)
            except KafkaException as exc:  # a fatal error; it is raised once, and reports come with the next polls
                log.warning("the writer's producer failed: %s", exc.args[0].str())
                self._failed = True
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """What is still under way counts as unsettled: it is read again."""
        if self._producer is not None:
            self._producer.flush(CLOSE_S)

    def _maker(self, record: DestinationRecord) -> Maker:
        """Compiled once for each version of a destination."""
        place = (record.pipe, record.name)
        known = self._makers.get(place)
        if known is None or known[0] is not record:
            known = self._makers[place] = (record, record_maker(record, self._lake_topic))
        return known[1]

    def _open(self) -> Producer:
        """Return the producer; a new one instead of one that failed, unless that has yet to report on other records."""
        if self._producer is None or (self._failed and self.active == 1):
            self._producer, self._failed = ingest_producer(self._kafka, self._name, TIMEOUT_MS), False
        return self._producer

    def _reported(self, send: Send, began_ns: int, error: Any, _message: Any) -> None:
        if error is None:
            self._end(send, OK, "", began_ns)
        elif error.code() in _TOO_LARGE:
            self._end(send, Verdict(Outcome.DEAD, "too-large"), error.str(), began_ns)
        else:
            self._failed = self._failed or error.code() == KafkaError._FATAL
            self._end(send, _UNWRITABLE, error.str(), began_ns)

    def _end(self, send: Send, verdict: Verdict, message: str, began_ns: int) -> None:
        self.active -= 1
        total_us = (time.monotonic_ns() - began_ns) // 1_000
        self._ended.append(Answer(send, 0, 0, message, "", False, total_us=total_us, verdict=verdict))
