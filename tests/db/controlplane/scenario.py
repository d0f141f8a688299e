"""Scenario of the controllers' walk: requests of customers and admins, and failures, on three cells."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from dataplane.names import ramp_node
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Cell, FactRow, Pause, Pipe, Ramp, Rollout, ScaleGroup, User
from mgmt.services import (
    create_pipe,
    create_tenant,
    keep_cell_for,
    pause_controller,
    publish_revision,
    register_release,
    request_migration,
    request_rollout,
    resume_controller,
    roll_back,
    roll_back_ramp,
    set_scale_policy,
)
from tests.db.cast import MakeSpec
from tests.db.console.truth import Truth
from tests.support.controllers import MOST_LANES, Processes

BEGIN: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD, NEW, BROKEN = (str(number) * 16 for number in range(3))
OPEN_TO_ALL: Final = ("c1", "c2")
KEPT: Final = "c3"
TAKEN: Final = 100_000  # messages of each pipe in the last day, enough for its revisions to ramp


class Scenario:
    """Two shared cells and one that sleeps, their pipes, and the actions on them.

    Each action returns its result as a short text; refusals of the services are raised.
    """

    def __init__(self, chance: random.Random, spec: MakeSpec, processes: Processes) -> None:
        self.now, self._chance, self._spec, self._processes = BEGIN, chance, spec, processes
        self.spoiled: set[int] = set()  # revisions that perform worse than their predecessors
        self._positions = 0
        self._settle()

    @property
    def actions(self) -> dict[Callable[[], str], int]:
        """Actions with their relative frequency."""
        return {
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

    def calm_down(self) -> None:
        """End all pauses, silences and overloads."""
        self._processes.silent.clear()
        self._processes.busy.clear()
        for pause in Pause.objects.filter(ended_at=None):
            resume_controller(pause=pause, by=self.admin, now=self.now)

    def _settle(self) -> None:
        self.admin, alice = User.objects.create_user("admin"), User.objects.create_user("alice")
        for release in (OLD, NEW, BROKEN):
            register_release(release=release, wire=1, about="", now=self.now)
        for cell in (*OPEN_TO_ALL, KEPT):
            Cell.objects.create(id=cell, release_id=OLD)
        tenant, sleeper = create_tenant(name="Alice's", owner=alice), create_tenant(name="Sleepy", owner=alice)
        keep_cell_for(cell=Cell.objects.get(id=KEPT), tenant=sleeper, sleeps_after_s=60, by=self.admin, now=self.now)
        for number, owner in enumerate((tenant, tenant, sleeper)):
            pipe = create_pipe(tenant=owner, name=f"pipe {number}", spec=self._spec(), author=alice)
            Truth(pipe).fact(bucket_at(self.now) - 5, "ingest", "sent", list(range(TAKEN)), "acked")

    # -- what people do --------------------------------------------------------------------------------------------

    def pause(self) -> str:
        """Pause a controller for one cell or for all, some pauses with an end."""
        controller = self._chance.choice(("provision", "deploy", "scale"))
        cell = self._chance.choice((None, *Cell.objects.filter(id__in=OPEN_TO_ALL)))
        until = self._chance.choice((None, self.now + timedelta(seconds=60)))
        pause_controller(controller=controller, cell=cell, reason="x", until=until, by=self.admin, now=self.now)
        return controller

    def resume(self) -> str:
        """End a pause."""
        pauses = list(Pause.objects.filter(ended_at=None))
        return str(bool(pauses) and resume_controller(pause=self._chance.choice(pauses), by=self.admin, now=self.now))

    def publish(self) -> str:
        """Publish the next revision of a pipe, as a customer."""
        pipe = self._chance.choice(list(Pipe.objects.all()))
        latest = pipe.revisions.latest("number").number
        spec = self._spec(crm=f"https://crm.example.com/{latest}")
        publish_revision(pipe=pipe, spec=spec, based_on=latest, author=self.admin)
        return ""

    def take_back(self) -> str:
        """Roll back a ramping revision, as a customer."""
        ramp = Ramp.objects.filter(ended_at=None).first()
        if ramp is None:
            return "none"
        roll_back_ramp(ramp=ramp, reason="x", by=self.admin, now=self.now)
        return ""

    def roll_out(self) -> str:
        """Request the rollout of a release, as an admin."""
        release = self._chance.choice((OLD, NEW, BROKEN))
        request_rollout(
            release=register_release(release=release, wire=1, about="", now=self.now), author=None, now=self.now
        )
        return ""

    def turn_rollout(self) -> str:
        """Roll back the running rollout, as an admin."""
        rollout = Rollout.objects.filter(state="running").first()
        return str(rollout is not None and roll_back(rollout=rollout, why="x", author=self.admin, now=self.now))

    def move(self) -> str:
        """Request the migration of a pipe, as an admin."""
        pipe = self._chance.choice(list(Pipe.objects.exclude(cell=KEPT)))
        target = Cell.objects.get(id=self._chance.choice(OPEN_TO_ALL))
        request_migration(pipe=pipe, target=target, reason="x", by=self.admin, now=self.now)
        return ""

    def set_policy(self) -> str:
        """Set the lane count's limits, as an admin."""
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
        """Silence a cell: it reports no more."""
        self._processes.silent.add(self._chance.choice((*OPEN_TO_ALL, KEPT)))
        return ""

    def heal(self) -> str:
        """End the silence of one cell."""
        return str(bool(self._processes.silent) and self._processes.silent.pop())

    def be_busy(self) -> str:
        """Overload a cell."""
        self._processes.busy.add(self._chance.choice((*OPEN_TO_ALL, KEPT)))
        return ""

    def be_idle(self) -> str:
        """End the overload of one cell."""
        return str(bool(self._processes.busy) and self._processes.busy.pop())

    def spoil(self) -> str:
        """Dead-letter all recent messages of a ramping revision."""
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
        self.spoiled.add(ramp.revision_id)
        return ""
