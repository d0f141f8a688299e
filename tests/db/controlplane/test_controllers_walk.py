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
from typing import Final

import pytest
from django.core.management import call_command
from django.db import Error, transaction

from controlplane import interlocks, leases
from controlplane.autoscaler import act as scale_act
from controlplane.deployer import act, look
from controlplane.interlocks import CellState, Refusal
from controlplane.provisioner import changing, decide
from mgmt.models import ControlAction
from tests.db.cast import MakeSpec
from tests.db.controlplane.walking import World
from tests.rig import witness
from tests.rig.controllers import NAMES
from tests.rig.statements import hang_up

pytestmark = pytest.mark.django_db(transaction=True)
log = logging.getLogger(__name__)
A_WORLD: Final = 1_000  # steps; then another one, for rows grow
LONG_STEPS: Final = int(os.environ.get("PENSTOCK_TICKS_STEPS", "100000"))
LONG_WALKS: Final = 4  # beside each other, as far as there are workers


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
