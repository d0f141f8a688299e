"""Cells: made, kept for one tenant, and allowed to sleep."""

import re
from collections import Counter
from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction

from mgmt.models import Cell, ControlAction, Pipe, Tenant, User
from mgmt.services.control import note
from mgmt.services.errors import InvalidValue

NAME: Final = re.compile(r"[a-z][a-z0-9]{0,15}")  # it becomes part of names of topics, groups and pods
SOONEST_S: Final = 60
LATEST_S: Final = 3_600  # the Autoscaler's samples reach back for two hours
log = structlog.get_logger(__name__)


def add_cell(*, name: str, by: User | None, now: datetime, why: str = "") -> Cell:
    """A cell with one lane of each kind and the release that most cells have; the Provisioner makes and starts it.

    Raises InvalidValue.
    """
    if not NAME.fullmatch(name):
        raise InvalidValue("name", "needs 1 to 16 lower-case letters and digits, a letter first")
    releases = Counter(Cell.objects.exclude(release=None).values_list("release", flat=True))
    release = max(releases, key=releases.__getitem__, default=None)
    try:
        with transaction.atomic():
            cell = Cell.objects.create(id=name, release_id=release)
            _note(cell, "add-cell", by, now, why)
    except IntegrityError as exc:
        raise InvalidValue("name", f"there is a cell {name} already") from exc
    return cell


@transaction.atomic
def keep_cell_for(*, cell: Cell, tenant: Tenant | None, sleeps_after_s: int | None, by: User, now: datetime) -> Cell:
    """Keep the cell for one tenant, whose new pipes go there and nowhere else; None gives it back to all.

    `sleeps_after_s`: without anything to do, None for never. Pipes that are placed already stay where they are. Raises
    InvalidValue.
    """
    if sleeps_after_s is not None and tenant is None:
        raise InvalidValue("sleep", "only a cell that is kept for one tenant may sleep: choose the tenant as well")
    if sleeps_after_s is not None and not SOONEST_S <= sleeps_after_s <= LATEST_S:
        raise InvalidValue("sleep", f"needs {SOONEST_S // 60} to {LATEST_S // 60} minutes")
    row = Cell.objects.select_for_update(no_key=True).get(id=cell.id)
    others = Pipe.objects.filter(cell=row).exclude(state=Pipe.State.CLOSED).exclude(tenant=tenant)
    if tenant is not None and (stranger := others.select_related("tenant").first()):
        raise InvalidValue("tenant", f"pipe {stranger.name} of {stranger.tenant.name} is on it: move it away first")
    row.dedicated_to, row.sleeps_after_s = tenant, sleeps_after_s
    row.save(update_fields=["dedicated_to", "sleeps_after_s"])
    sleep = f", and sleeps after {sleeps_after_s // 60} min without anything to do" if sleeps_after_s else ""
    _note(row, "keep-cell", by, now, f"kept for {tenant.name}{sleep}" if tenant else "open to all tenants")
    return row


def _note(cell: Cell, action: str, by: User | None, now: datetime, why: str) -> None:
    controller = ControlAction.PERSON if by else "scale"
    note(controller, action, outcome="done", at=now, cell=cell.id, reason=why, author=by)
    log.info("cell changed", cell=cell.id, action=action, by=by.username if by else "", why=why)
