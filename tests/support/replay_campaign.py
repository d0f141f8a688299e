"""A replay under kills: who is killed, and which copies an interrupted job may have produced twice."""

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import psutil
from confluent_kafka import TopicPartition

from controlplane.compute.processes import is_worker_daemon, signal_all
from dataplane.ledger.meta import REPLAY_HEADER
from dataplane.ledger.units import parse_position, place_of
from dataplane.tables.redrives import format_place
from dataplane.tables.replays import ReplayProgress, decode_replay_progress, replay_progress_key
from tests.support.data_plane import DataPlane
from tests.support.kafka import admin_consumer
from tests.support.patience import until

Victim = Literal["driver", "executor"]
VICTIMS: Final[tuple[Victim, ...]] = ("driver", "executor")
ORPHAN_MS: Final = 10_000  # a Python worker ends its task of 2 s although its JVM is gone
READ_S: Final = 60.0


class ReplayKill(NamedTuple):
    """One kill; `at_ms`: wall clock."""

    victim: Victim
    at_ms: int


class StoredProgress(NamedTuple):
    """Progress record as it is on the signals topic."""

    at_ms: int
    progress: ReplayProgress


def records(plane: DataPlane, topic: str, partitions: int) -> Iterator[Any]:
    """Yield all records that a topic has now. Raises TimeoutError after READ_S without one."""
    reader = admin_consumer({"bootstrap.servers": plane.broker.address, "group.id": "looks-on", "log_level": 3})
    try:
        bounds = {p: reader.get_watermark_offsets(TopicPartition(topic, p), timeout=30) for p in range(partitions)}
        left = {p: high for p, (low, high) in bounds.items() if low < high}
        reader.assign([TopicPartition(topic, p, bounds[p][0]) for p in left])
        deadline_s = time.monotonic() + READ_S
        while left:
            for message in reader.consume(1_000, 0.5):
                assert message.error() is None, message.error()
                deadline_s = time.monotonic() + READ_S
                if message.offset() + 1 >= left.get(message.partition(), 0):
                    left.pop(message.partition(), None)
                yield message
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{topic} could not be read to {left}")
    finally:
        reader.close()


def end_of(plane: DataPlane, topic: str) -> int:
    """Return the end offset of the only partition of a topic."""
    reader = admin_consumer({"bootstrap.servers": plane.broker.address, "group.id": "looks-on", "log_level": 3})
    try:
        return int(reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
    finally:
        reader.close()


def history_of(plane: DataPlane, replay: str) -> list[StoredProgress]:
    """Return all stored progress of a replay, in order."""
    key = replay_progress_key(replay).encode()
    return [
        StoredProgress(message.timestamp()[1], decode_replay_progress(message.value()))
        for message in records(plane, plane.cluster.topics["signals"].name, 1)
        if message.key() == key
    ]


def kill(plane: DataPlane, victim: Victim) -> ReplayKill:
    """SIGKILL the cell's JVM, or every Python worker that runs no lane: one of them runs the replay's tasks."""
    until(plane.is_running, "the application runs", 240)
    plane.heartbeats.refresh()
    if victim == "driver":
        os.kill(plane.driver_pid(), signal.SIGKILL)
    else:
        signal_all(task_workers(plane), signal.SIGKILL)
    return ReplayKill(victim, time.time_ns() // 1_000_000)


def task_workers(plane: DataPlane) -> list[psutil.Process]:
    """Return the Python workers that run no lane; none while the application starts or ends."""
    plane.heartbeats.refresh()
    lanes = {beat.pid for beat in plane.heartbeats.latest.values()}
    try:
        children = psutil.Process(plane.driver_pid()).children()
        daemons = [one for one in children if is_worker_daemon(one)]
        return [one for daemon in daemons for one in daemon.children() if one.pid not in lanes]
    except (psutil.Error, AssertionError):  # a process of it, or all of it, has just ended
        return []


def copies_by_position(plane: DataPlane, topic: str, replay: str) -> dict[int, list[int]]:
    """Return the times (wall clock, ms) at which a replay wrote the copies of each position to a topic, in order.

    topic: of a destination, with one partition
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    for message in records(plane, topic, 1):
        headers = dict(message.headers() or [])
        if headers.get(REPLAY_HEADER) == replay.encode():
            found[parse_position(headers["penstock-position"].decode())].append(message.timestamp()[1])
    return {position: sorted(times) for position, times in found.items()}


def unexplained(
    copies: dict[int, list[int]], kills: Iterable[ReplayKill], history: list[StoredProgress], ingest: str
) -> list[int]:
    """Return the positions that were produced twice for another reason than a job that a kill interrupted.

    The first copy is explained if a kill follows it, and its event was not below the progress stored before that kill.
    """
    interrupted = [(one.at_ms, _reached(history, one.at_ms)) for one in kills]
    return [
        position
        for position, times in copies.items()
        if any(not _is_repeat(position, pair, interrupted, ingest) for pair in pairwise(times))
    ]


def _reached(history: list[StoredProgress], at_ms: int) -> dict[str, int]:
    stored = [one.progress.reached for one in history if one.at_ms <= at_ms]
    return stored[-1] if stored else {}


def _is_repeat(
    position: int, times: tuple[int, int], interrupted: list[tuple[int, dict[str, int]]], ingest: str
) -> bool:
    place = place_of(position)
    key = format_place((ingest, place.partition))
    return any(
        times[0] <= at_ms + ORPHAN_MS and at_ms <= times[1] and reached.get(key, 0) <= place.offset
        for at_ms, reached in interrupted
    )
