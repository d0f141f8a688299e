"""The Provisioner's Celery task: look, decide, act, until nothing but waiting is left."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Final

import structlog
from celery import shared_task
from confluent_kafka import KafkaException

from controlplane.compute.choose import compute_at
from controlplane.control_topic import ControlTopic, ControlTopicError
from controlplane.locks import alone
from controlplane.provisioner.act import Hands, act, ensure_cluster_topics, open_revisions
from controlplane.provisioner.admissions import let_in
from controlplane.provisioner.decide import Wait, decide
from controlplane.provisioner.look import take_snapshot
from controlplane.provisioner.relocating import Say, next_steps
from controlplane.provisioner.take_step import take_step
from controlplane.settings import control_settings
from controlplane.topics import TopicAdmin, TopicsNotReadyError
from mgmt.schedule import PROVISION

ROUNDS: Final = 8  # a new pipe goes place, topics, publish, ramp, publish, live: more would be a decision that flaps
CHECK_S: Final = 600.0
LOCK: Final = PROVISION
log = structlog.get_logger(__name__)


def utc_now() -> datetime:
    """The clock of the host."""
    return datetime.now(UTC)


class Provisioner:
    """One process's clients and what it remembers between ticks; all of it can be lost at any time."""

    def __init__(self, hands: Hands, clock: Callable[[], datetime] = utc_now) -> None:
        """`clock`: asked anew in each round, for a tick may wait for Kafka in between."""
        self._hands = hands
        self._clock = clock
        self._check_at = 0.0

    def tick(self) -> str:
        """One pass under the lock. Returns what was done, in words."""
        return alone(LOCK, self._run)

    def _run(self) -> str:
        try:
            return self._rounds()
        except (ControlTopicError, TopicsNotReadyError, KafkaException) as exc:
            reason = f"waiting for Kafka: {exc}"[:300]
            open_revisions().update(state_reason=reason)
            log.warning("tick cut short", reason=reason)
            return reason

    def _rounds(self) -> str:
        check = time.monotonic() >= self._check_at
        if check:
            ensure_cluster_topics(self._hands)
        self._hands.refused.clear()
        done: list[str] = []
        let_in(self._clock(), self._hands.settings.admission)
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
                take_step(self._hands, step, now)
            done += [type(action).__name__ for action in (*actions, *steps)]
            if check:
                check, self._check_at = False, time.monotonic() + CHECK_S
            if all(isinstance(action, Wait | Say) for action in (*actions, *steps)):
                break
        return ", ".join(done) or "nothing to do"


@cache
def provisioner() -> Provisioner:
    """This process's Provisioner; its clients are made at the first tick, never before a fork."""
    settings = control_settings()
    return Provisioner(
        Hands(
            settings=settings,
            topics=TopicAdmin(settings.kafka),
            control=ControlTopic(settings.kafka),
            compute=compute_at(settings.cell_master, settings.var, os.environ),
            problems={},
        )
    )


@shared_task(name="provisioner.tick")
def tick() -> str:
    """Make the cells match the rows, one step nearer.

    Safe to run twice, at once, and to be killed anywhere: every step is read off the rows and the control topic, not
    remembered; topics are made if absent and bound to the id they have; a record that was written is found there and
    not written again; rows move by conditional updates. Ticks that overlap skip, by an advisory lock that dies with
    its holder. Nothing waits in here: what is not ready is looked at again by the next tick.
    """
    return provisioner().tick()
