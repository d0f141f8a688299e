"""A random walk over the real leases on real Postgres: whatever happens, they do what the model says.

Sometimes the connection is killed at a random statement of a deed, as if its process had died there: then all of the
deed is done or nothing, and its process remembers nothing.
"""

import logging
import os
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Final

import pytest
from django.db import InterfaceError, OperationalError, connection

from controlplane.leases import LASTS, LeaseLostError, fenced, give_back, keep, take
from mgmt.models import Cell, Lease, Pause, User, Verdict
from mgmt.services import end_pause, pause_controller
from tests.rig.interlock_model import IDLE, PROCESSES, Action, Rules, World, actions, forgotten, happen, wrong
from tests.rig.interlock_model import LASTS as TURNS
from tests.rig.statements import Killer, before

pytestmark = pytest.mark.django_db(transaction=True)
log = logging.getLogger(__name__)
TURN: Final = LASTS / TURNS
KILLED: Final = 0.05  # of the deeds
LONG_STEPS: Final = int(os.environ.get("PENSTOCK_WALK_STEPS", "1000000"))
LONG_WALKS: Final = 4  # beside each other, as far as there are workers


class Rows:
    """One cell and its controllers, driven through the code that they use."""

    def __init__(self, by: User) -> None:
        self.now = datetime(2026, 11, 21, tzinfo=UTC)
        self.by = by
        self.leases: dict[int, Lease] = {}
        self.writes = 0
        Cell.objects.create(id="c1")
        Verdict.objects.create(cell_id="c1", state="stable", since=self.now, at=self.now)

    def happen(self, action: Action) -> bool:
        """Do it; whether it was granted."""
        return bool(getattr(self, "_" + action.kind.replace(" ", "_"))(action))

    def seen(self) -> tuple[str, frozenset[str], str, int, int, int]:
        """The rows as a world has them: verdict, pauses, holder, turns left, token and fence."""
        told = ("verdict__state", "lease__holder", "lease__until", "lease__token", "fence")
        verdict, holder, until, token, fence = Cell.objects.values_list(*told).get()
        paused = frozenset(Pause.objects.filter(ended_at=None).values_list("controller", flat=True))
        left = max(0, (until - self.now) // TURN) if until else 0
        return verdict, paused, holder or "", left, token or 0, fence

    def _tick(self, _action: Action) -> bool:
        self.now += TURN
        return bool(Verdict.objects.update(at=self.now))

    def _verdict(self, action: Action) -> bool:
        return bool(Verdict.objects.update(state=action.to))

    def _pause(self, action: Action) -> bool:
        where, by = action.to, self.by
        return bool(pause_controller(controller=where, cell=None, reason="walk", until=None, by=by, now=self.now))

    def _resume(self, action: Action) -> bool:
        return end_pause(pause=Pause.objects.get(controller=action.to, ended_at=None), by=self.by, now=self.now)

    def _take(self, action: Action, *, protective: bool = False) -> bool:
        got = take("c1", PROCESSES[action.process], "walk", self.now, protective=protective)
        if isinstance(got, Lease):
            self.leases[action.process] = got
        return isinstance(got, Lease)

    def _protect(self, action: Action) -> bool:
        return self._take(action, protective=True)

    def _write(self, action: Action) -> bool:
        try:
            with fenced(self.leases[action.process]):
                Cell.objects.filter(id="c1").update(epoch=self.writes + 1)
        except LeaseLostError:
            return False
        self.writes += 1
        return True

    def _keep(self, action: Action) -> bool:
        return keep(self.leases[action.process], self.now)

    def _give_back(self, action: Action) -> bool:
        return give_back(self.leases.pop(action.process))

    def _crash(self, action: Action) -> bool:
        return bool(self.leases.pop(action.process))


def rows_of(world: World) -> tuple[str, frozenset[str], str, int, int, int]:
    """What the rows should say."""
    return (world.verdict, world.paused, world.holder, world.left, world.token, world.fence)


def walk(steps: int, seed: int) -> Counter[str]:
    """So many random steps; what happened how often."""
    chance, rules, world, killer = random.Random(seed), Rules(), World(), Killer()
    rows, happened = Rows(User.objects.create_user(f"walker-{seed}")), Counter[str]()
    for number in range(steps):
        action = chance.choice(list(actions(world)))
        granted, after = happen(rules, world, action)
        assert not wrong(world, action, granted, after), (seed, number, action)
        if action.process != IDLE and action.kind != "crash" and chance.random() < KILLED:
            after = _killed(rows, killer, world, after, action, chance.randrange(8))
            happened["killed"] += 1
        else:
            assert rows.happen(action) is granted, (seed, number, action, world)
        assert rows.seen() == rows_of(after), (seed, number, action, world)
        happened[f"{action.kind}: {'granted' if granted else 'refused'}"] += 1
        world = after
    killer.close()
    return happened


def _killed(rows: Rows, killer: Killer, world: World, after: World, action: Action, statement: int) -> World:
    """Which of the two worlds it is when the process died over its deed; it may also have ended it before."""
    try:
        with before(statement, killer.kill):
            rows.happen(action)
    except (OperationalError, InterfaceError):
        connection.close()
    rows.leases.pop(action.process, None)
    real = rows.seen()
    assert real in (rows_of(world), rows_of(after)), (action, world, real)
    left = world if real == rows_of(world) else after
    return forgotten(left, action.process)


def test_the_leases_do_what_the_model_says_whatever_happens_and_dies():
    happened = walk(150, seed=11)
    for what in ("killed", "take: refused", "protect: granted", "write: granted"):
        assert happened[what] > 1, what


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("number", range(LONG_WALKS))
def test_a_million_steps(number: int):
    seed = random.randrange(2**32)
    happened = walk(LONG_STEPS // LONG_WALKS, seed=seed)
    log.info("walk %d, seed %d: %s", number, seed, dict(happened))
    assert happened.total() >= LONG_STEPS // LONG_WALKS
