"""Random walk of the four controllers: each ticks as its task does, on real Postgres, while people send requests,
cells fail, and time passes. Ticks are killed at any statement, and run concurrently.

Triggers within Postgres check the invariants (tests.support.audit_trigger): a rollback is never prevented, and
once faults are no longer injected, every request completes.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from django.core.management import call_command
from django.db import Error, transaction

from controlplane import interlocks, leases
from controlplane.autoscaler import act as scale_act
from controlplane.deployer import act, snapshot_queries
from controlplane.interlocks import CellState, Refusal
from controlplane.provisioner import cell_change, decide
from mgmt.models import ControlAction
from tests.db.cast import MakeSpec
from tests.db.controlplane.walking import World
from tests.support import audit_trigger
from tests.support.controllers import NAMES
from tests.support.sizes import TICKS_STEPS
from tests.support.statements import hang_up

pytestmark = pytest.mark.django_db(transaction=True)
log = logging.getLogger(__name__)
A_WORLD: Final = 1_000  # steps; then a new world, because the rows grow
LONG_WALKS: Final = 2  # each with its own seed
MORE_WORLDS: Final = 20
RARE: Final = (
    "deploy return-release: done",
    "provision roll-back: rolled back",
    "provision switch-pipe: done",
    "scale scale-out: done",
    "scale scale-in: done",
)


@pytest.fixture
def _audit_triggers() -> Iterator[None]:
    audit_trigger.call()
    yield
    hang_up()  # a failed test may have left its connection in a transaction
    audit_trigger.dismiss()


def walk(steps: int, seed: int, spec: MakeSpec) -> Counter[str]:
    """Run this many random steps, one world after another; return how often each event happened."""
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
        audit_trigger.forget()
    return happened


@pytest.mark.timeout(1_800)  # it works all the time, and a busy machine gives it little of that
@pytest.mark.usefixtures("_audit_triggers")
def test_four_controllers_keep_their_interlocks_under_faults_and_crashes(a_spec: MakeSpec):
    happened = walk(150, seed=7, spec=a_spec)
    for what in (*(f"{name}: whole" for name in NAMES), "provision go-live: done"):
        assert happened[what], happened


@pytest.mark.long
@pytest.mark.timeout(8 * 3600)
@pytest.mark.parametrize("number", range(LONG_WALKS))
@pytest.mark.usefixtures("_audit_triggers")
def test_controllers_keep_their_interlocks_for_a_long_time(number: int, a_spec: MakeSpec):
    seed = random.randrange(2**32)
    log.info("walk %d begins with seed %d", number, seed)
    happened = walk(TICKS_STEPS // LONG_WALKS, seed=seed, spec=a_spec)
    for world in range(1, MORE_WORLDS + 1):  # a short walk may end before each of them has happened
        if all(happened[what] for what in RARE):
            break
        happened += walk(A_WORLD, seed=seed + world, spec=a_spec)
    log.info("walk %d: %s", number, dict(sorted(happened.items())))
    assert not [what for what in RARE if not happened[what]]


def _nothing(*_: object) -> None:
    """Interlock that never refuses."""


def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "_paused", _nothing)


def _no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "_leased", _nothing)


def _no_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "_unstable", _nothing)


def _no_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (act, scale_act, cell_change):
        monkeypatch.setattr(module, "fenced", lambda _lease: transaction.atomic())


def _pauses_stop_what_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interlocks, "UNDOING", ())


def _verdicts_stop_what_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal_of(
        controller: interlocks.ControllerName, view: CellState, *, protective: bool = False
    ) -> Refusal | None:
        return interlocks.refusal_of(controller, view, protective=protective) or interlocks.refusal_of(controller, view)

    for module in (leases, snapshot_queries, decide):
        monkeypatch.setattr(module, "refusal_of", refusal_of)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.usefixtures("_audit_triggers")
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
def test_broken_interlock_is_detected(
    without: Callable[[pytest.MonkeyPatch], None], found: str, monkeypatch: pytest.MonkeyPatch, a_spec: MakeSpec
):
    without(monkeypatch)
    with pytest.raises((AssertionError, Error), match=found):
        walk(10 * A_WORLD, seed=1, spec=a_spec)
