"""Services of releases: register one, request its rollout or rollback. The Deployer finds the rows."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet

from dataplane.names import INGEST_GROUP
from mgmt.cells.services.control import note
from mgmt.errors import InvalidValue, NothingToRollOutError, RolloutOpenError, WireIncompatibleError
from mgmt.models import Cell, ControlAction, Release, Rollout, RolloutStep, User

LONGEST: Final = 200
log = structlog.get_logger(__name__)


def register_release(*, release: str, wire: int, about: str, now: datetime, for_ingest: bool = False) -> Release:
    """Register a build. Only cells without a release get it at once, because nothing runs there yet. Safe to repeat.

    `for_ingest`: its ingest replicas report which release they run.
    Raises InvalidValue for a note that is too long.
    """
    if len(about) > LONGEST:
        raise InvalidValue("note", f"needs at most {LONGEST} characters, got {len(about)}")
    with transaction.atomic():
        row, made = Release.objects.get_or_create(
            id=release, defaults={"wire": wire, "note": about, "registered_at": now, "for_ingest": for_ingest}
        )
        first = Cell.objects.filter(release=None).update(release=row)
    if made or first:
        log.info("release registered", release=release, wire=wire, given_to=first)
    return row


@transaction.atomic
def give_to_ingest(*, release: Release, now: datetime) -> None:
    """Give ingest a release without a rollout, and take it out of an open one. Call it while no replica runs."""
    take_ingest_out()
    rows = Cell.with_ingest.filter(id=INGEST_GROUP, release__isnull=False).exclude(release=release, canary=None)
    if rows.update(release=release, canary=None):
        why, detail = "the box starts with newly installed code", {"release": release.id}
        outcome = ControlAction.Outcome.DONE
        note("deploy", "give-release", outcome=outcome, at=now, cell=INGEST_GROUP, reason=why, detail=detail)


def take_ingest_out() -> None:
    """Take ingest out of an open rollout."""
    RolloutStep.objects.filter(cell=INGEST_GROUP, rollout__state__in=Rollout.OPEN).delete()


def request_rollout(*, release: Release, author: User | None, now: datetime, is_repair: bool = False) -> Rollout:
    """Request the rollout of a release to every cell that has another one, the cell with the fewest pipes first.

    Ingest follows after the cells: one replica first, except in a repair, then all. Replicas that others run, as on
    Kubernetes, have no release here.

    is_repair: unstable cells get it too, because their release may be the cause

    Raises NothingToRollOutError, WireIncompatibleError, and RolloutOpenError while another rollout is in progress.
    """
    cells = list(_cells_of_another(release).select_related("release"))
    if not cells:
        raise NothingToRollOutError(f"Every cell, and ingest, already has release {release.id}.")
    for cell in cells:
        _check_wire(release, cell)
    try:
        with transaction.atomic():
            rollout = _store(release, author, now, is_repair=is_repair)
    except IntegrityError as exc:
        raise RolloutOpenError("Another rollout is in progress. Wait until it ends, or roll it back.") from exc
    log.info("rollout requested", release=release.id, by=author.username if author else "")
    return rollout


def roll_back(*, rollout: Rollout, why: str, author: User | None, now: datetime) -> bool:
    """Roll back a rollout: each cell that it changed gets its former release. Returns False if it is not running."""
    with transaction.atomic():
        running = Rollout.objects.filter(id=rollout.id, state=Rollout.State.RUNNING)
        if not running.update(state=Rollout.State.ROLLING_BACK, why=why[:300]):
            return False
        _audit("roll-back", rollout.release_id, author, now, why)
    log.warning("rollout rolling back", release=rollout.release_id, why=why)
    return True


def _cells_of_another(release: Release) -> QuerySet[Cell]:
    """Return the cells with another release, in rollout order; ingest, if it has another, is the last."""
    cells = (Cell.with_ingest if release.for_ingest else Cell.objects).exclude(release=release).exclude(release=None)
    return cells.annotate(size=Count("pipes"), is_ingest=Q(id=INGEST_GROUP)).order_by("is_ingest", "size", "id")


def _check_wire(release: Release, cell: Cell) -> None:
    """Raise WireIncompatibleError: during a rollout, applications of both releases read each other's records."""
    if cell.release is not None and abs(cell.release.wire - release.wire) > 1:
        where = "Ingest" if cell.id == INGEST_GROUP else f"Cell {cell.id}"
        raise WireIncompatibleError(
            f"{where} speaks wire version {cell.release.wire}, release {release.id} speaks {release.wire}. "
            "Roll out a release of the version between them first."
        )


def _store(release: Release, author: User | None, now: datetime, *, is_repair: bool) -> Rollout:
    rollout = Rollout.objects.create(release=release, author=author, created_at=now, is_repair=is_repair)
    for number, (cell, is_canary) in enumerate(_steps(_cells_of_another(release), is_repair=is_repair), start=1):
        came_from = str(cell.release_id)
        RolloutStep.objects.create(
            rollout=rollout, number=number, cell=cell, is_canary=is_canary, came_from_id=came_from
        )
    _audit("roll-out", release.id, author, now, "a repair: unstable cells get it, too" if is_repair else "")
    return rollout


def _steps(cells: Iterable[Cell], *, is_repair: bool) -> Iterator[tuple[Cell, bool]]:
    """Yield the cell of each step, and whether only its first replica gets the release.

    A repair has no canary: the first replica may be the one that runs, and one that is down is replaced at once.
    """
    for cell in cells:
        if cell.id == INGEST_GROUP and not is_repair:
            yield cell, True
        yield cell, False


def _audit(action: str, release: str, author: User | None, now: datetime, why: str) -> None:
    who = ControlAction.PERSON if author else "deploy"
    outcome = ControlAction.Outcome.DONE
    note(who, action, outcome=outcome, at=now, reason=why, author=author, detail={"release": release})
