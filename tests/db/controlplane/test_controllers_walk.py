"""A random walk with the four controllers: each ticks as its task does, on real Postgres, while people ask for things,
cells fall ill, and time passes. Ticks are killed at any statement, and cross each other.

What must hold is seen by a witness within Postgres (tests.rig.witness); what goes back is never kept from it; and when
calm comes back, everything that was asked for comes to its end.
"""

import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from django.core.management import call_command
from django.db import Error, InterfaceError, OperationalError, connection, transaction
from django.db.models import F

from controlplane import interlocks, leases
from controlplane.autoscaler import act as scale_act
from controlplane.deployer import act, look
from controlplane.interlocks import CellState, Refusal
from controlplane.provisioner import changing, decide
from dataplane.names import ramp_node
from mgmt.models import (
    Cell,
    ControlAction,
    FactRow,
    Lease,
    Pause,
    Pipe,
    PipeRevision,
    Ramp,
    Relocation,
    Rollout,
    RolloutStep,
    ScaleGroup,
    User,
)
from mgmt.queries.control import open_pauses
from mgmt.queries.span import bucket_at
from mgmt.services import (
    InvalidValue,
    Refused,
    create_pipe,
    create_tenant,
    end_pause,
    keep_cell_for,
    pause_controller,
    publish_revision,
    register_release,
    request_relocation,
    request_rollout,
    roll_back,
    roll_back_ramp,
    set_scale_policy,
)
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth
from tests.rig import witness
from tests.rig.controllers import MOST_LANES, NAMES, Controllers, Name, Processes
from tests.rig.statements import Killer, before, counted, hang_up

pytestmark = pytest.mark.django_db(transaction=True)
log = logging.getLogger(__name__)
BEGIN: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD, NEW, BROKEN = (str(number) * 16 for number in range(3))
OPEN_TO_ALL: Final = ("c1", "c2")
KEPT: Final = "c3"
KILLED, CROSSED = 0.06, 0.15  # of the ticks
TAKEN: Final = 100_000  # messages of each pipe in the last day: enough for its revisions to ramp
A_WORLD: Final = 1_000  # steps; then another one, for rows grow
CALM_S: Final = 1_800
LONG_STEPS: Final = int(os.environ.get("PENSTOCK_TICKS_STEPS", "100000"))
LONG_WALKS: Final = 4  # beside each other, as far as there are workers
UNDONE: Final = ("starting", "watching", "done")  # a step that was not turned back yet


class World:
    """Two cells that are open to all and one that sleeps, their pipes, and everybody who changes them."""

    def __init__(self, chance: random.Random, spec: MakeSpec, happened: Counter[str]) -> None:
        self.now, self._chance, self._spec, self._happened = BEGIN, chance, spec, happened
        self._controllers = Controllers()
        self._processes = Processes(self._controllers)
        self._killer, self._other = Killer(), ThreadPoolExecutor(1)
        self._lengths: Counter[Name] = Counter(dict.fromkeys(NAMES, 20))  # statements of the last tick of each
        self._spoiled: set[int] = set()  # revisions that do worse than those before them
        self._positions = 0
        self._people()
        self._deeds: dict[Callable[[], object], int] = {
            self.time: 50,
            **{self._ticks(name): 25 for name in NAMES},
            self.pause: 2,
            self.resume: 4,
            self.fall_ill: 2,
            self.heal: 4,
            self.be_busy: 1,
            self.be_idle: 2,
            self.publish: 6,
            self.spoil: 5,
            self.take_back: 1,
            self.roll_out: 4,
            self.turn_rollout: 1,
            self.move: 3,
            self.set_policy: 3,
        }

    def _people(self) -> None:
        self.admin, alice = User.objects.create_user("admin"), User.objects.create_user("alice")
        for release in (OLD, NEW, BROKEN):
            register_release(release=release, wire=1, about="", now=self.now)
        self._processes.broken = {BROKEN}
        for cell in (*OPEN_TO_ALL, KEPT):
            Cell.objects.create(id=cell, release_id=OLD)
        tenant, sleeper = create_tenant(name="Alice's", owner=alice), create_tenant(name="Sleepy", owner=alice)
        keep_cell_for(cell=Cell.objects.get(id=KEPT), tenant=sleeper, sleeps_after_s=60, by=self.admin, now=self.now)
        for number, owner in enumerate((tenant, tenant, sleeper)):
            pipe = create_pipe(tenant=owner, name=f"pipe {number}", spec=self._spec(), author=alice)
            Truth(pipe).fact(bucket_at(self.now) - 5, "ingest", "sent", list(range(TAKEN)), "acked")

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
        self.now += timedelta(seconds=span_s)
        self._processes.run(span_s, self.now)

    def _ticks(self, name: Name) -> Callable[[], str]:
        def tick() -> str:
            fate = self._chance.random()
            if fate < KILLED:
                return self._killed(name)
            return self._crossed(name) if fate < KILLED + CROSSED else self._whole(name)

        tick.__name__ = name
        return tick

    def _whole(self, name: Name) -> str:
        with counted() as sent:
            said = self._tick(name, self.now)
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
        witness.says(name, self.now)
        try:
            with before(self._chance.randrange(self._lengths[name]), self._killer.kill):
                self._controllers.tick(name, self.now)
        except (OperationalError, InterfaceError):
            pass  # it died: a controller whose task does not say so itself
        hang_up()
        if name == "provision":
            self._controllers.start_provisioner()
        return "killed"

    def _crossed(self, name: Name) -> str:
        """It stands still in the middle of it, and another one's tick runs there; seldom a minute later."""
        other = self._chance.choice([one for one in NAMES if one != name])
        stood_s = self._chance.choice((0, 0, 70))
        crossed: list[str] = []

        def meanwhile() -> None:
            at = self.now + timedelta(seconds=stood_s)
            crossed.append(self._other.submit(self._tick_beside, other, at).result())

        taken = self._chance.random() < 0.7
        at = self._chance.randrange(12 if taken else self._lengths[name])
        with before(at, meanwhile, after="mgmt_lease" if taken else ""):
            self._tick(name, self.now)
        if not crossed:
            return "whole"
        self._pass(stood_s)
        return f"crossed by {other}"

    def _tick_beside(self, name: Name, now: datetime) -> str:
        """On a connection of its own, which does not wait: who stands still may hold what it would wait for."""
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '30ms'")
            return self._tick(name, now)
        except OperationalError:
            hang_up()
            return "did not wait"

    def _kept_from_going_back(self, name: Name) -> Iterator[str]:
        """What a whole tick has left that nothing may keep it from, but another one's change of the same cell."""
        changing = set(Lease.objects.filter(until__gt=self.now).exclude(holder="").values_list("cell", "holder"))
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
                for ramp in Ramp.objects.filter(ended_at=None, revision__in=self._spoiled).select_related(
                    "revision__pipe"
                ):
                    if ramp.revision.pipe.cell_id not in held:
                        yield f"revision {ramp.revision_id} stays at {ramp.share} %"
            case "scale":
                paused = {pause.cell_id for pause in open_pauses(self.now) if pause.controller == "scale"}
                for group in ScaleGroup.objects.filter(cell__in=OPEN_TO_ALL).select_related("cell"):
                    is_free = group.cell_id not in held and not paused & {None, group.cell_id}
                    if is_free and group.cell.lanes[group.kind] < group.minimum:
                        yield f"{group} has too few lanes"

    # -- what people do --------------------------------------------------------------------------------------------

    def pause(self) -> str:
        """Somebody keeps a controller from changing a cell, or any; sometimes for a while only."""
        controller = self._chance.choice(("provision", "deploy", "scale"))
        cell = self._chance.choice((None, *Cell.objects.filter(id__in=OPEN_TO_ALL)))
        until = self._chance.choice((None, self.now + timedelta(seconds=60)))
        pause_controller(controller=controller, cell=cell, reason="x", until=until, by=self.admin, now=self.now)
        return controller

    def resume(self) -> str:
        """A pause is ended."""
        pauses = list(Pause.objects.filter(ended_at=None))
        return str(bool(pauses) and end_pause(pause=self._chance.choice(pauses), by=self.admin, now=self.now))

    def publish(self) -> str:
        """A customer publishes the next revision of a pipe."""
        pipe = self._chance.choice(list(Pipe.objects.all()))
        latest = pipe.revisions.latest("number").number
        spec = self._spec(crm=f"https://crm.example.com/{latest}")
        publish_revision(pipe=pipe, spec=spec, based_on=latest, author=self.admin)
        return ""

    def take_back(self) -> str:
        """A customer takes a revision back that ramps."""
        ramp = Ramp.objects.filter(ended_at=None).first()
        if ramp is None:
            return "none"
        roll_back_ramp(ramp=ramp, reason="x", by=self.admin, now=self.now)
        return ""

    def roll_out(self) -> str:
        """An admin rolls out a release."""
        release = self._chance.choice((OLD, NEW, BROKEN))
        request_rollout(
            release=register_release(release=release, wire=1, about="", now=self.now), author=None, now=self.now
        )
        return ""

    def turn_rollout(self) -> str:
        """An admin turns a rollout."""
        rollout = Rollout.objects.filter(state="running").first()
        return str(rollout is not None and roll_back(rollout=rollout, why="x", author=self.admin, now=self.now))

    def move(self) -> str:
        """An admin moves a pipe."""
        pipe = self._chance.choice(list(Pipe.objects.exclude(cell=KEPT)))
        target = Cell.objects.get(id=self._chance.choice(OPEN_TO_ALL))
        request_relocation(pipe=pipe, target=target, reason="x", by=self.admin, now=self.now)
        return ""

    def set_policy(self) -> str:
        """An admin says how many lanes there should be."""
        group = ScaleGroup.objects.filter(cell=self._chance.choice(OPEN_TO_ALL), kind="process").first()
        if group is None:
            return "none"
        least = self._chance.choice((1, 1, 2, 3))
        set_scale_policy(
            group=group, minimum=least, maximum=MOST_LANES, target=0.75, goal_s=5, by=self.admin, now=self.now
        )
        return ""

    # -- what befalls cells and revisions --------------------------------------------------------------------------

    def fall_ill(self) -> str:
        """Nothing is heard of a cell any more."""
        self._processes.silent.add(self._chance.choice((*OPEN_TO_ALL, KEPT)))
        return ""

    def heal(self) -> str:
        """One is heard of again."""
        return str(bool(self._processes.silent) and self._processes.silent.pop())

    def be_busy(self) -> str:
        """More comes to a cell than it can do."""
        self._processes.busy.add(self._chance.choice((*OPEN_TO_ALL, KEPT)))
        return ""

    def be_idle(self) -> str:
        """Nothing more comes there."""
        return str(bool(self._processes.busy) and self._processes.busy.pop())

    def spoil(self) -> str:
        """All that a ramping revision took of late has died."""
        ramp = Ramp.objects.filter(ended_at=None).select_related("revision__pipe").order_by("?").first()
        minute = bucket_at(self.now)
        if ramp is None or FactRow.objects.filter(pipe_id=ramp.revision.pipe_id, bucket=minute).exists():
            return "none"
        truth, taken = Truth(ramp.revision.pipe), list(range(self._positions, self._positions + 10))
        self._positions += 10
        for detail in ("acked", "seen"):
            truth.fact(minute, "ingest", "sent", taken, detail)
        truth.fact(minute, ramp_node(ramp.share, ramp.revision.number), "sent", taken)
        truth.fact(minute, "normalize", "dead", taken, "step")
        self._spoiled.add(ramp.revision_id)
        return ""

    # -- in the end ------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Nobody asks for anything any more, and all is well: everything comes to its end."""
        self._processes.silent.clear()
        self._processes.busy.clear()
        for pause in Pause.objects.filter(ended_at=None):
            end_pause(pause=pause, by=self.admin, now=self.now)
        calm_at = self.now
        while left := self._left():
            assert self.now - calm_at < timedelta(seconds=CALM_S), left
            self._pass(5)
            for name in NAMES:
                self._whole(name)

    def _left(self) -> list[object]:
        """What was asked for and has not come to its end, and who still holds a cell."""
        return [
            *Rollout.objects.filter(state__in=Rollout.OPEN),
            *PipeRevision.objects.filter(state__in=("requested", "ramping")),
            *Relocation.objects.filter(state__in=Relocation.UNDER_WAY),
            *Lease.objects.filter(until__gt=self.now).exclude(holder=""),
        ]


@pytest.fixture
def _witness() -> Iterator[None]:
    witness.call()
    yield
    hang_up()  # a test that failed may have left it in the middle of something
    witness.dismiss()


def walk(steps: int, seed: int, spec: MakeSpec) -> Counter[str]:
    """So many random steps, a world after the other; what happened how often."""
    happened = Counter[str]()
    for number, first in enumerate(range(0, steps, A_WORLD)):
        world = World(random.Random(f"{seed}/{number}"), spec, happened)
        try:
            for _ in range(min(A_WORLD, steps - first)):
                world.step()
            world.calm()
        finally:
            world.close()
        happened.update(f"{row.controller} {row.action}: {row.outcome}" for row in ControlAction.objects.all())
        call_command("flush", interactive=False, inhibit_post_migrate=True, verbosity=0)
        witness.forget()
    return happened


@pytest.mark.usefixtures("_witness")
def test_the_four_controllers_keep_their_interlocks_whatever_happens_and_dies(a_spec: MakeSpec):
    happened = walk(150, seed=7, spec=a_spec)
    for what in (*(f"{name}: whole" for name in NAMES), "provision go-live: done"):
        assert happened[what], happened


@pytest.mark.long
@pytest.mark.timeout(8 * 3600)
@pytest.mark.parametrize("number", range(LONG_WALKS))
@pytest.mark.usefixtures("_witness")
def test_a_hundred_thousand_steps(number: int, a_spec: MakeSpec):
    seed = random.randrange(2**32)
    log.info("walk %d begins with seed %d", number, seed)
    happened = walk(LONG_STEPS // LONG_WALKS, seed=seed, spec=a_spec)
    log.info("walk %d: %s", number, dict(sorted(happened.items())))
    for what in ("deploy return-release: done", "provision roll-back: rolled back", "provision switch-pipe: done"):
        assert happened[what], what
    for what in ("scale scale-out: done", "scale scale-in: done"):
        assert happened[what], what


def _nothing(*_: object) -> None:
    """What an interlock says that is not there."""


def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "_paused", _nothing)


def _no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "_leased", _nothing)


def _no_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "_unwell", _nothing)


def _no_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (act, scale_act, changing):
        monkeypatch.setattr(module, "fenced", lambda _lease: transaction.atomic())


def _pauses_stop_what_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "UNDOING", ())


def _verdicts_stop_what_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def why_not(controller: interlocks.Controller, view: CellState, *, protective: bool = False) -> Refusal | None:
        return interlocks.why_not(controller, view, protective=protective) or interlocks.why_not(controller, view)

    for module in (leases, look, decide):
        monkeypatch.setattr(module, "why_not", why_not)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.usefixtures("_witness")
@pytest.mark.parametrize(
    ("without", "found"),
    [
        (_no_pauses, "although that was paused"),
        (_no_leases, "while deploy holds it"),
        (_no_verdicts, "although it was not stable"),
        (_no_fences, "while the lease is of"),
        (_pauses_stop_what_goes_back, "stays"),
        (_verdicts_stop_what_goes_back, "stays|too few lanes"),
    ],
)
def test_a_broken_interlock_is_found(
    without: Callable[[pytest.MonkeyPatch], None], found: str, monkeypatch: pytest.MonkeyPatch, a_spec: MakeSpec
):
    without(monkeypatch)
    with pytest.raises((AssertionError, Error), match=found):
        walk(10 * A_WORLD, seed=1, spec=a_spec)
