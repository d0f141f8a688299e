"""Random walk of the four controllers: time, ticks that complete, die or interleave, and changes of cells."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from mgmt.cells.queries.control import open_pauses
from mgmt.models import Cell, Lease, PipeMigration, PipeRevision, Ramp, Rollout, RolloutStep, ScaleGroup
from mgmt.services import InvalidValue, ServiceError
from tests.db.cast import MakeSpec
from tests.db.controlplane.scenario import BROKEN, OPEN_TO_ALL, Scenario
from tests.support import audit_trigger
from tests.support.controllers import NAMES, Controllers, Name, Processes
from tests.support.statements import Killer, before, hang_up

KILLED, CROSSED = 0.06, 0.2  # shares of all ticks
CALM_S: Final = 1_800
UNDONE: Final = ("starting", "watching", "done")  # a step that is not rolled back yet


class World:
    """Three cells and all actors that change them."""

    def __init__(self, chance: random.Random, spec: MakeSpec, happened: Counter[str]) -> None:
        """`happened`: counter of the actions and their results."""
        self._chance, self._happened = chance, happened
        self._controllers = Controllers()
        self._processes = Processes(self._controllers, broken={BROKEN})
        self._scenario = Scenario(chance, spec, self._processes)
        self._killer, self._other = Killer(), ThreadPoolExecutor(1)
        self._lengths: Counter[Name] = Counter(dict.fromkeys(NAMES, 20))  # statements in each one's last tick
        ticks = {self._ticks(name): 25 for name in NAMES}
        self._actions: dict[Callable[[], str], int] = {self.time: 50, **ticks, **self._scenario.actions}

    @property
    def _now(self) -> datetime:
        return self._scenario.now

    def step(self) -> None:
        """Perform one random action and check the fences."""
        (action,) = self._chance.choices(list(self._actions), list(self._actions.values()))
        try:
            said = action()
        except (ServiceError, InvalidValue) as exc:
            said = type(exc).__name__
        self._happened[f"{action.__name__}: {said}"] += 1
        torn = Cell.objects.filter(lease__isnull=False).exclude(fence=F("lease__token"))
        assert not torn.exists(), "each cell's fence equals its newest lease number"

    def close(self) -> None:
        """Close all connections."""
        self._other.submit(hang_up).result()
        self._other.shutdown()
        self._killer.close()

    # -- time and ticks --------------------------------------------------------------------------------------------

    def time(self) -> str:
        """Advance the clock by some seconds, after which the running processes report."""
        span_s = self._chance.choice((1, 3, 5, 5, 15))
        self._pass(span_s)
        return ""

    def _pass(self, span_s: float) -> None:
        self._scenario.now += timedelta(seconds=span_s)
        self._processes.run(span_s, self._now)

    def _ticks(self, name: Name) -> Callable[[], str]:
        def tick() -> str:
            fate = self._chance.random()
            if fate < KILLED:
                return self._killed(name)
            return self._crossed(name) if fate < KILLED + CROSSED else self._whole(name)

        tick.__name__ = name
        return tick

    def _whole(self, name: Name) -> str:
        connection.queries_log.clear()  # it has a limit, which a long walk exceeds
        with CaptureQueriesContext(connection) as sent:
            said = self._tick(name, self._now)
        assert "waiting for" not in said, said
        self._lengths[name] = len(sent)
        assert not (kept := list(self._kept_from_going_back(name))), (name, kept)
        return "whole"

    def _tick(self, name: Name, now: datetime) -> str:
        audit_trigger.says(name, now)
        said = self._controllers.tick(name, now)
        audit_trigger.says("", now)
        return said

    def _killed(self, name: Name) -> str:
        """Kill the controller's process in the middle of a tick and start a new one."""
        audit_trigger.says(name, self._now)
        try:
            with before(self._chance.randrange(self._lengths[name]), self._killer.kill):
                self._controllers.tick(name, self._now)
        except (OperationalError, InterfaceError):
            pass  # the kill; some controllers' tasks do not catch it
        hang_up()
        if name == "provision":
            self._controllers.start_provisioner()
        return "killed"

    def _crossed(self, name: Name) -> str:
        """Stop the tick midway, preferably just after it took a lease, while lanes and the other controllers
        continue; sometimes for over a minute, until the lease has expired."""
        others = [one for one in NAMES if one != name]
        at = self._now + timedelta(seconds=self._chance.choice((0, 70)))
        said: list[str] = []

        def meanwhile() -> None:
            self._other.submit(self._processes.run, (at - self._now).total_seconds(), at).result()
            said.extend(self._other.submit(self._tick_beside, other, at).result() for other in others)

        took = self._chance.random() < 0.7
        statement = self._chance.randrange(4 if took else self._lengths[name])
        with before(statement, meanwhile, after="mgmt_lease" if took else ""):
            self._tick(name, self._now)
        if not said:
            return "whole"
        self._scenario.now = at
        return "crossed"

    def _tick_beside(self, name: Name, now: datetime) -> str:
        """Run a tick on a connection that does not wait for locks, because the stopped tick may hold them.

        The verdict stays the same between the lease check and the lease, although it may change there in reality:
        the audit trigger could not distinguish that from a verdict that changed before the check.
        """
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '30ms'")
            if name != "observe":
                return self._tick(name, now)
            with transaction.atomic():
                list(Cell.objects.select_for_update(no_key=True))
                return self._tick(name, now)
        except OperationalError:
            hang_up()
            return "did not wait"

    def _kept_from_going_back(self, name: Name) -> Iterator[str]:
        """Yield the due changes that a whole tick left undone though no other controller is changing the cell."""
        changing = set(Lease.objects.filter(until__gt=self._now).exclude(holder="").values_list("cell", "holder"))
        held = {cell for cell, _ in changing}
        match name:
            case "deploy":
                steps = RolloutStep.objects.filter(rollout__state="rolling back").exclude(
                    state__in=("waiting", "returned")
                )
                last = steps.order_by("-number").first()
                if last is not None and last.state in UNDONE and last.cell_id not in held:
                    yield f"release {last.rollout_id} stays on {last.cell_id}"
            case "provision":
                for ramp in Ramp.objects.filter(ended_at=None, revision__in=self._scenario.spoiled).select_related(
                    "revision__pipe"
                ):
                    if ramp.revision.pipe.cell_id not in held:
                        yield f"revision {ramp.revision_id} stays at {ramp.share} %"
            case "scale":
                paused = {pause.cell_id for pause in open_pauses(self._now) if pause.controller == "scale"}
                for group in ScaleGroup.objects.filter(cell__in=OPEN_TO_ALL).select_related("cell"):
                    is_free = group.cell_id not in held and not paused & {None, group.cell_id}
                    if is_free and group.cell.lanes[group.kind] < group.minimum:
                        yield f"{group} has too few lanes"

    # -- in the end ------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Stop all requests, make everything healthy and wait until all work has ended."""
        self._scenario.calm_down()
        calm_at = self._now
        while left := self._left():
            assert self._now - calm_at < timedelta(seconds=CALM_S), left
            self._pass(5)
            for name in NAMES:
                self._whole(name)

    def _left(self) -> list[object]:
        """Return the requests that have not ended and the leases that are still held."""
        return [
            *Rollout.objects.filter(state__in=Rollout.OPEN),
            *PipeRevision.objects.filter(state__in=("requested", "ramping")),
            *PipeMigration.objects.filter(state__in=PipeMigration.UNDER_WAY),
            *Lease.objects.filter(until__gt=self._now).exclude(holder=""),
        ]
