"""Releases made known, and brought out or back: what people and programs ask for. The Deployer finds the rows."""

from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from mgmt.models import Cell, ControlAction, Release, Rollout, RolloutStep, User
from mgmt.services.control import note
from mgmt.services.errors import InvalidValue, NothingToRollOut, RolloutOpen, WireTooFar

LONGEST: Final = 200
log = structlog.get_logger(__name__)


def register_release(*, release: str, wire: int, about: str, now: datetime) -> Release:
    """Make a build known. It changes no cell but those that have none: nothing runs there yet."""
    if len(about) > LONGEST:
        raise InvalidValue("note", f"needs at most {LONGEST} characters, got {len(about)}")
    with transaction.atomic():
        row, made = Release.objects.get_or_create(
            id=release, defaults={"wire": wire, "note": about, "registered_at": now}
        )
        first = Cell.objects.filter(release=None).update(release=row)
    if made or first:
        log.info("release registered", release=release, wire=wire, given_to=first)
    return row


def request_rollout(*, release: Release, author: User | None, now: datetime) -> Rollout:
    """Ask for a release on every cell that has another one, the one with the fewest pipes first.

    Raises NothingToRollOut, WireTooFar, and RolloutOpen while another one is under way.
    """
    cells = list(_cells_of_another(release).select_related("release"))
    if not cells:
        raise NothingToRollOut(f"Every cell has release {release.id} already.")
    for cell in cells:
        _check_wire(release, cell)
    try:
        with transaction.atomic():
            rollout = _store(release, author, now)
    except IntegrityError as exc:
        raise RolloutOpen("Another rollout is under way. Wait for its end, or roll it back.") from exc
    log.info("rollout requested", release=release.id, by=author.username if author else "")
    return rollout


def roll_back(*, rollout: Rollout, why: str, author: User | None, now: datetime) -> bool:
    """Turn a running rollout: every cell it touched gets back what it had. False if it does not run any more."""
    with transaction.atomic():
        running = Rollout.objects.filter(id=rollout.id, state=Rollout.State.RUNNING)
        if not running.update(state=Rollout.State.ROLLING_BACK, why=why[:300]):
            return False
        _audit("roll-back", rollout.release_id, author, now, why)
    log.warning("rollout turned back", release=rollout.release_id, why=why)
    return True


def _cells_of_another(release: Release) -> QuerySet[Cell]:
    """In the order in which it comes to them."""
    cells = Cell.objects.exclude(release=release).exclude(release=None)
    return cells.annotate(size=Count("pipes")).order_by("size", "id")


def _check_wire(release: Release, cell: Cell) -> None:
    """Applications of two releases run beside each other while one is rolled out."""
    if cell.release is not None and abs(cell.release.wire - release.wire) > 1:
        raise WireTooFar(
            f"Cell {cell.id} speaks wire version {cell.release.wire}, release {release.id} speaks {release.wire}. "
            "Roll out a release of the version between them first."
        )


def _store(release: Release, author: User | None, now: datetime) -> Rollout:
    rollout = Rollout.objects.create(release=release, author=author, created_at=now)
    for number, cell in enumerate(_cells_of_another(release), start=1):
        RolloutStep.objects.create(rollout=rollout, number=number, cell=cell, came_from_id=str(cell.release_id))
    _audit("roll-out", release.id, author, now, "")
    return rollout


def _audit(action: str, release: str, author: User | None, now: datetime, why: str) -> None:
    who = ControlAction.PERSON if author else "deploy"
    note(who, action, outcome="done", at=now, reason=why, author=author, detail={"release": release})
