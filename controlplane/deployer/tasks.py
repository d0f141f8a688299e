"""The Deployer's Celery task: look, decide, act, until nothing but waiting is left."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from celery import shared_task

from controlplane.deployer.act import act, remember
from controlplane.deployer.decide import Say, decide
from controlplane.deployer.look import take_snapshot
from controlplane.deployer.snapshot import Policy
from controlplane.locks import alone
from controlplane.settings import control_settings
from mgmt.models import Rollout, RolloutStep

ROUNDS: Final = 8  # between two waits a rollout takes two steps at most: more would be a decision that flaps
LOCK: Final = "deployer.tick"
UNDER_WAY: Final = (RolloutStep.State.STARTING, RolloutStep.State.WATCHING, RolloutStep.State.RETURNING)


@shared_task(name="deployer.tick")
def tick() -> str:
    """Bring the open rollout one step nearer to its end.

    Safe to run twice, at once, and to be killed anywhere: every step is read off the rows, and moved by conditional
    updates, in one transaction with the cell's release and its lease. Ticks that overlap skip, by an advisory lock
    that dies with its holder. Nothing waits in here: what is not ready is looked at again by the next tick.
    """
    return alone(LOCK, _run)


def _run() -> str:
    return ", ".join(rounds(_policy(), datetime.now(UTC))) or "nothing to do"


def _policy() -> Policy:
    settings = control_settings()
    return Policy(up_s=settings.rollout_up_s, watch_s=settings.rollout_watch_s)


def rounds(policy: Policy, now: datetime) -> Iterator[str]:
    """Act on the open rollout until only waiting is left; what was done, in words."""
    for _ in range(ROUNDS):
        rollout = Rollout.objects.filter(state__in=Rollout.OPEN).first()
        if rollout is None:
            return
        for step in rollout.steps.select_related("cell").filter(state__in=UNDER_WAY):
            remember(step, now)
        actions = decide(take_snapshot(rollout, now, policy))
        for action in actions:
            act(action, now)
            yield type(action).__name__
        if all(isinstance(action, Say) for action in actions):
            return
