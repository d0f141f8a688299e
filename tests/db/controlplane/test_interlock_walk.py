"""Random walk over the real leases on real Postgres: they always behave as the model does.

Sometimes the connection is killed at a random statement of an action, as if its process had died there: then the
action is complete or has no effect, and its process remembers nothing.
"""

import logging
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Final

import pytest
from django.db import InterfaceError, OperationalError, connection

from controlplane.leases import LASTS, LeaseLostError, acquire, fenced, release, renew
from mgmt.models import Cell, CellVerdict, Lease, Pause, User
from mgmt.services import pause_controller, resume_controller
from tests.support.interlock_model import IDLE, PROCESSES, Action, Rules, World, actions, forgotten, happen, wrong
from tests.support.interlock_model import LASTS as TURNS
from tests.support.sizes import WALK_STEPS
from tests.support.statements import Killer, before

pytestmark = pytest.mark.django_db(transaction=True)
log = logging.getLogger(__name__)
TURN: Final = LASTS / TURNS
KILLED: Final = 0.05  # of the actions
LONG_WALKS: Final = 4  # each with its own seed


class Rows:
    """One cell and its controllers, driven through the controllers' own code."""

    def __init__(self, by: User) -> None:
        self.now = datetime(2026, 11, 21, tzinfo=UTC)
        self.by = by
        self.leases: dict[int, Lease] = {}
        self.writes = 0
        Cell.objects.create(id="c1")
        CellVerdict.objects.create(cell_id="c1", state="stable", since=self.now, at=self.now)

    def happen(self, action: Action) -> bool:
        """Perform the action; return True if it was granted."""
        return bool(getattr(self, "_" + action.kind.replace(" ", "_"))(action))

    def seen(self) -> tuple[str, frozenset[str], str, int, int, int]:
        """Return the rows in the form of a world: verdict, pauses, holder, turns left, token and fence."""
        fields = ("verdict__state", "lease__holder", "lease__until", "lease__token", "fence")
        verdict, holder, until, token, fence = Cell.objects.values_list(*fields).get()
        paused = frozenset(Pause.objects.filter(ended_at=None).values_list("controller", flat=True))
        left = max(0, (until - self.now) // TURN) if until else 0
        return verdict, paused, holder or "", left, token or 0, fence

    def _tick(self, _action: Action) -> bool:
        self.now += TURN
        return bool(CellVerdict.objects.update(at=self.now))

    def _verdict(self, action: Action) -> bool:
        return bool(CellVerdict.objects.update(state=action.to))

    def _pause(self, action: Action) -> bool:
        where, by = action.to, self.by
        return bool(pause_controller(controller=where, cell=None, reason="walk", until=None, by=by, now=self.now))

    def _resume(self, action: Action) -> bool:
        return resume_controller(pause=Pause.objects.get(controller=action.to, ended_at=None), by=self.by, now=self.now)

    def _take(self, action: Action, *, protective: bool = False) -> bool:
        got = acquire("c1", PROCESSES[action.process], "walk", self.now, protective=protective)
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
        return renew(self.leases[action.process], self.now)

    def _give_back(self, action: Action) -> bool:
        return release(self.leases.pop(action.process))

    def _crash(self, action: Action) -> bool:
        return bool(self.leases.pop(action.process))


def rows_of(world: World) -> tuple[str, frozenset[str], str, int, int, int]:
    """Return the expected state of the rows."""
    return (world.verdict, world.paused, world.holder, world.left, world.token, world.fence)


def walk(steps: int, seed: int) -> Counter[str]:
    """Run this many random steps; return how often each event happened."""
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
    """Return the world after the process died during its action, which it may have completed before."""
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


def test_leases_follow_the_model_under_faults_and_crashes():
    happened = walk(150, seed=11)
    for what in ("killed", "take: refused", "protect: granted", "write: granted"):
        assert happened[what] > 1, what


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("number", range(LONG_WALKS))
def test_leases_follow_the_model_for_a_long_time(number: int):
    seed = random.randrange(2**32)
    happened = walk(WALK_STEPS // LONG_WALKS, seed=seed)
    log.info("walk %d, seed %d: %s", number, seed, dict(happened))
    assert happened.total() >= WALK_STEPS // LONG_WALKS
