"""Messages that wait for a retry, and what the retrier knows of their destination."""

from typing import Any

from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.names import Purpose
from dataplane.retrier.retry_messages import LEAVE_HEADER
from dataplane.spec import HttpDestination, RetryPolicy
from dataplane.tables.records import DestinationRecord
from dataplane.tables.redrives import (
    REDRIVES_VERSION,
    EarlyReleaseProgress,
    early_release_key,
    encode_progress,
    format_place,
)
from dataplane.tables.signals import SIGNAL_VERSION, BreakerState, DestinationSignal, encode_signal, signal_key
from tests.support.memory_lane import MemoryLane, MemoryMessage, message

S = 1_000_000
NOW = 1_790_000_000 * S


def parked(lane: MemoryLane, offset: int, due_us: int, topic: Purpose = "retry-in", **more: Any) -> MemoryMessage:
    """Return a message that waits for a retry, due at `due_us`, from a topic of retries."""
    fields: dict[str, Any] = {"attempt": 2, "not_before_us": due_us, "first_us": NOW - S, **more}
    return message(offset, topic=lane.cell.topics[topic].name, **fields)


def in_tier(lane: MemoryLane, offset: int, leave_us: int, due_us: int = 0, **more: Any) -> MemoryMessage:
    """Return a message that leaves its delay tier at `leave_us`."""
    leave = [(LEAVE_HEADER, str(leave_us).encode())]
    return parked(lane, offset, due_us or leave_us, **{"topic": "delay-10s", **more}, more=leave)


def metas(lane: MemoryLane, purpose: Purpose) -> list[MessageMeta]:
    """Return the metadata of the messages that were produced to a topic."""
    return [read_meta(record["headers"]) for record in lane.producer.of(lane.cell.topics[purpose].name)]


def passed_on(lane: MemoryLane) -> list[str]:
    """Return the ids of the messages that were forwarded to be sent."""
    return [meta.id for meta in metas(lane, "retry-out")]


def known(lane: MemoryLane, span_s: int = 86_400, version: int = 1) -> None:
    """Add the destination crm of the pipe p, whose retries end after `span_s`."""
    to = HttpDestination("https://crm.example/", retry=RetryPolicy(span_s=span_s))
    lane.table.apply(DestinationRecord("p", "crm", version, "active", to, []))


def hear(lane: MemoryLane, breaker: BreakerState, *, until_us: int = 0, at_us: int = NOW, of_version: int = 1) -> None:
    """Apply a signal of a transmit lane: the state of the breaker of that destination."""
    signal = DestinationSignal(
        SIGNAL_VERSION,
        "c1",
        "transmit-0",
        "p",
        "crm",
        at_us,
        breaker,
        until_us,
        of_version=of_version,
    )
    lane.work._signal_state.apply(signal_key(signal), encode_signal(signal), at_us)


def release(lane: MemoryLane, reached: int, *, running: bool = True, end: int = 10_000, at_us: int = NOW) -> None:
    """Apply the report of an early release of the messages of delay-5m/0 up to `end`."""
    place = format_place((lane.cell.topics["delay-5m"].name, 0))
    ends = {place: end} if running else {}
    report = EarlyReleaseProgress(REDRIVES_VERSION, "p", "crm", at_us, {place: reached}, running, ends)
    lane.work._signal_state.apply(early_release_key("p", "crm"), encode_progress(report), at_us)
