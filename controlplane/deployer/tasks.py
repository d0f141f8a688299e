"""The Deployer's Celery task: take a snapshot, decide, act, until only waiting is left."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from celery import shared_task

from controlplane.deployer.act import act, remember
from controlplane.deployer.decide import AnnotateStep, decide
from controlplane.deployer.snapshot import LONG_AGO, RolloutPolicy
from controlplane.deployer.snapshot_queries import take_snapshot
from controlplane.locks import alone
from controlplane.settings import control_settings
from mgmt.models import Rollout, RolloutStep

ROUNDS: Final = 8  # a rollout takes two steps at most between two waits: more would be a flapping decision
LOCK: Final = "deployer.tick"
STARTED_AT: Final = datetime.now(UTC)
UNDER_WAY: Final = (RolloutStep.State.STARTING, RolloutStep.State.WATCHING, RolloutStep.State.RETURNING)


@shared_task(name="deployer.tick")
def tick() -> str:
    """Bring the open rollout one step closer to its end.

    Safe to run twice, at once, and to be killed anywhere: every step is derived from the rows and changed by
    conditional updates, in one transaction with the cell's release and its lease. An overlapping tick skips, by an
    advisory lock that Postgres releases when its holder exits. A tick never waits for a cell: the next tick checks
    again.
    """
    return alone(LOCK, _run)


def _run() -> str:
    return ", ".join(rounds(_policy(), datetime.now(UTC), STARTED_AT))


def _policy() -> RolloutPolicy:
    settings = control_settings()
    return RolloutPolicy(up_s=settings.rollout_up_s, watch_s=settings.rollout_watch_s)


def rounds(policy: RolloutPolicy, now: datetime, since: datetime = LONG_AGO) -> Iterator[str]:
    """Act on the open rollout until only waiting is left; yield the name of each action.

    `since`: when this control plane started (controlplane.deployer.snapshot).
    """
    for _ in range(ROUNDS):
        rollout = Rollout.objects.filter(state__in=Rollout.OPEN).first()
        if rollout is None:
            return
        for step in rollout.steps.select_related("cell").filter(state__in=UNDER_WAY):
            remember(step, now)
        actions = decide(take_snapshot(rollout, now, policy, since))
        for action in actions:
            act(action, now)
            yield type(action).__name__
        if all(isinstance(action, AnnotateStep) for action in actions):
            return
