"""The Provisioner's Celery task: take a snapshot, decide, act, until only waiting is left."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Final

import structlog
from celery import shared_task
from confluent_kafka import KafkaException

from controlplane.compute.factory import compute_at
from controlplane.control_topic import ControlTopic, ControlTopicError
from controlplane.locks import TaskWaitingError, alone
from controlplane.provisioner.act import Effects, act, ensure_cluster_topics, open_revisions
from controlplane.provisioner.admissions import advance_admissions
from controlplane.provisioner.apply_step import apply_step
from controlplane.provisioner.decide import AnnotateRevision, decide
from controlplane.provisioner.migrating import AnnotateMigration, next_steps
from controlplane.provisioner.snapshot_queries import take_snapshot
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, TopicsNotReadyError
from mgmt.cells.schedule import PROVISION

ROUNDS: Final = 8  # a new pipe takes place, topics, publish, ramp, publish, live: more would be a flapping decision
CHECK_S: Final = 600.0
LOCK: Final = PROVISION
log = structlog.get_logger(__name__)


def utc_now() -> datetime:
    """Return the host's time."""
    return datetime.now(UTC)


class Provisioner:
    """Clients of one process and its memory between ticks, all of which may be lost at any time."""

    def __init__(self, effects: Effects, clock: Callable[[], datetime] = utc_now) -> None:
        """`clock`: read in each round, because a tick may wait for Kafka in between."""
        self._hands = effects
        self._clock = clock
        self._check_at = 0.0

    def tick(self) -> str:
        """Run one pass under the lock; return a summary of the actions."""
        return alone(LOCK, self._run)

    def _run(self) -> str:
        try:
            return self._rounds()
        except (ControlTopicError, TopicsNotReadyError, KafkaException) as exc:
            reason = f"waiting for Kafka: {exc}"[:300]
            open_revisions().update(state_reason=reason)
            log.warning("tick cut short", reason=reason)
            raise TaskWaitingError(reason) from exc

    def _rounds(self) -> str:
        check = time.monotonic() >= self._check_at
        if check:
            ensure_cluster_topics(self._hands)
        self._hands.refused.clear()
        done: list[str] = []
        advance_admissions(self._clock(), self._hands.settings.admission)
        for _ in range(ROUNDS):
            self._hands.control.refresh()
            now = self._clock()
            snapshot = take_snapshot(
                compute=self._hands.compute,
                published=self._hands.control.published,
                master=self._hands.settings.cell_master,
                now=now,
                problems=self._hands.refused | self._hands.problems,
                check_topics=check,
                policy=self._hands.settings.ramp,
                placing=self._hands.settings.placing,
            )
            actions, steps = decide(snapshot), next_steps(snapshot)
            for action in actions:
                act(self._hands, action, now)
            for step in steps:
                apply_step(self._hands, step, now)
            done += [type(action).__name__ for action in (*actions, *steps)]
            if check:
                check, self._check_at = False, time.monotonic() + CHECK_S
            if all(isinstance(action, AnnotateRevision | AnnotateMigration) for action in (*actions, *steps)):
                break
        return ", ".join(done)


@cache
def provisioner() -> Provisioner:
    """Return this process's Provisioner; its clients are created at the first tick, never before a fork."""
    settings = control_settings()
    return Provisioner(
        Effects(
            settings=settings,
            topics=TopicCreator(settings.kafka),
            control=ControlTopic(settings.kafka),
            compute=compute_at(settings.cell_master, settings.var, os.environ),
            problems={},
        )
    )


@shared_task(name="provisioner.tick")
def tick() -> str:
    """Bring the cells one step closer to the state that the rows require.

    Safe to run twice, at once, and to be killed anywhere: every step is derived from the rows and the control topic,
    not from memory; topics are made if absent and bound to the id that they have; a record already written is found in
    the topic and not written again; rows change by conditional updates. An overlapping tick skips, by an advisory lock
    that Postgres releases when its holder exits. A tick never waits for a cell: the next tick checks again.
    """
    return provisioner().tick()
