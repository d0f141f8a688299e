"""Steps of a random walk with the four controllers: time, ticks whole, killed and crossed, and what befalls cells."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from mgmt.models import Cell, Lease, PipeRevision, Ramp, Relocation, Rollout, RolloutStep, ScaleGroup
from mgmt.queries.control import open_pauses
from mgmt.services import InvalidValue, Refused
from tests.db.cast import MakeSpec
from tests.db.controlplane.happenings import BROKEN, OPEN_TO_ALL, Happenings
from tests.rig import witness
from tests.rig.controllers import NAMES, Controllers, Name, Processes
from tests.rig.statements import Killer, before, hang_up

KILLED, CROSSED = 0.06, 0.2  # of the ticks
CALM_S: Final = 1_800
UNDONE: Final = ("starting", "watching", "done")  # a step that was not turned back yet


class World:
    """Three cells and everybody who changes them."""

    def __init__(self, chance: random.Random, spec: MakeSpec, happened: Counter[str]) -> None:
        """`happened`: counts what does."""
        self._chance, self._happened = chance, happened
        self._controllers = Controllers()
        self._processes = Processes(self._controllers, broken={BROKEN})
        self._happenings = Happenings(chance, spec, self._processes)
        self._killer, self._other = Killer(), ThreadPoolExecutor(1)
        self._lengths: Counter[Name] = Counter(dict.fromkeys(NAMES, 20))  # statements of the last tick of each
        ticks = {self._ticks(name): 25 for name in NAMES}
        self._deeds: dict[Callable[[], str], int] = {self.time: 50, **ticks, **self._happenings.deeds}

    @property
    def _now(self) -> datetime:
        return self._happenings.now

    def step(self) -> None:
        """Something happens."""
        (deed,) = self._chance.choices(list(self._deeds), list(self._deeds.values()))
        try:
            said = deed()
        except (Refused, InvalidValue) as exc:
            said = type(exc).__name__
        self._happened[f"{deed.__name__}: {said}"] += 1
        torn = Cell.objects.filter(lease__isnull=False).exclude(fence=F("lease__token"))
        assert not torn.exists(), "the fence stands where the newest token does"

    def close(self) -> None:
        """Everybody goes."""
        self._other.submit(hang_up).result()
        self._other.shutdown()
        self._killer.close()

    # -- time and ticks --------------------------------------------------------------------------------------------

    def time(self) -> str:
        """Some seconds pass; who runs reports at their end."""
        span_s = self._chance.choice((1, 3, 5, 5, 15))
        self._pass(span_s)
        return ""

    def _pass(self, span_s: float) -> None:
        self._happenings.now += timedelta(seconds=span_s)
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
        with CaptureQueriesContext(connection) as sent:
            said = self._tick(name, self._now)
        assert "waiting for" not in said, said
        self._lengths[name] = len(sent)
        assert not (kept := list(self._kept_from_going_back(name))), (name, kept)
        return "whole"

    def _tick(self, name: Name, now: datetime) -> str:
        witness.says(name, now)
        said = self._controllers.tick(name, now)
        witness.says("", now)
        return said

    def _killed(self, name: Name) -> str:
        """Its process dies in the middle of it, and a new one comes."""
        witness.says(name, self._now)
        try:
            with before(self._chance.randrange(self._lengths[name]), self._killer.kill):
                self._controllers.tick(name, self._now)
        except (OperationalError, InterfaceError):
            pass  # it died: a controller whose task does not say so itself
        hang_up()
        if name == "provision":
            self._controllers.start_provisioner()
        return "killed"

    def _crossed(self, name: Name) -> str:
        """It stands still in the middle of it, best just after it took a lease, while lanes and the other controllers
        go on; some times for a minute, until what it took has run out."""
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
        self._happenings.now = at
        return "crossed"

    def _tick_beside(self, name: Name, now: datetime) -> str:
        """On a connection of its own, which does not wait: who stands still may hold what it would wait for.

        A verdict does not turn between the question whether a lease may be taken and the take, as it well may: to the
        witness, that would look like one that turned before.
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
        """What a whole tick has left that nothing may keep it from, but another one's change of the same cell."""
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
                for ramp in Ramp.objects.filter(ended_at=None, revision__in=self._happenings.spoiled).select_related(
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
        """Nobody asks for anything any more, and all is well: everything comes to its end."""
        self._happenings.calm_down()
        calm_at = self._now
        while left := self._left():
            assert self._now - calm_at < timedelta(seconds=CALM_S), left
            self._pass(5)
            for name in NAMES:
                self._whole(name)

    def _left(self) -> list[object]:
        """What was asked for and has not come to its end, and who still holds a cell."""
        return [
            *Rollout.objects.filter(state__in=Rollout.OPEN),
            *PipeRevision.objects.filter(state__in=("requested", "ramping")),
            *Relocation.objects.filter(state__in=Relocation.UNDER_WAY),
            *Lease.objects.filter(until__gt=self._now).exclude(holder=""),
        ]
