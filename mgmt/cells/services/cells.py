"""Services of cells: add a cell, dedicate it to one tenant, let it sleep."""

import re
from collections import Counter
from datetime import datetime
from typing import Final

import structlog
from django.db import IntegrityError, transaction

from mgmt.audit.services import record
from mgmt.cells.models.cells import MOST_PARTITIONS
from mgmt.cells.services.control import note
from mgmt.errors import InvalidValue
from mgmt.models import Cell, ControlAction, Pipe, Tenant, User

NAME: Final = re.compile(r"[a-z][a-z0-9]{0,15}")  # part of the names of topics, groups and pods
SOONEST_S: Final = 60
LATEST_S: Final = 3_600  # the Autoscaler's samples reach back for two hours
log = structlog.get_logger(__name__)


def add_cell(*, name: str, by: User | None, now: datetime, why: str = "", partitions: int | None = None) -> Cell:
    """Add a cell with one lane of each kind and the release that most cells have; the Provisioner starts it.

    `partitions`: of its topics, fixed from then on; None for the installation's default.
    Raises InvalidValue for a bad or existing name, or a number of partitions that is out of range.
    """
    if not NAME.fullmatch(name):
        raise InvalidValue("name", "needs 1 to 16 lower-case letters and digits, a letter first")
    if partitions is not None and not 1 <= partitions <= MOST_PARTITIONS:
        raise InvalidValue("partitions", f"needs 1 to {MOST_PARTITIONS}, or nothing for the default")
    releases = Counter(Cell.objects.exclude(release=None).values_list("release", flat=True))
    release = max(releases, key=releases.__getitem__, default=None)
    try:
        with transaction.atomic():
            cell = Cell.objects.create(id=name, release_id=release, partitions=partitions)
            _note(cell, "add-cell", by, now, why)
    except IntegrityError as exc:
        raise InvalidValue("name", f"a cell named {name} already exists") from exc
    return cell


@transaction.atomic
def keep_cell_for(*, cell: Cell, tenant: Tenant | None, sleeps_after_s: int | None, by: User, now: datetime) -> Cell:
    """Dedicate the cell to one tenant, whose new pipes are then placed only on its own cells; None opens it to all.

    `sleeps_after_s`: seconds without work after which it sleeps; None for never. Pipes that are placed already stay on
    their cells. Raises InvalidValue, also while another tenant has an open pipe on the cell.
    """
    if sleeps_after_s is not None and tenant is None:
        raise InvalidValue("sleep", "only a cell that is dedicated to one tenant may sleep: choose the tenant as well")
    if sleeps_after_s is not None and not SOONEST_S <= sleeps_after_s <= LATEST_S:
        raise InvalidValue("sleep", f"needs {SOONEST_S // 60} to {LATEST_S // 60} minutes")
    row = Cell.objects.select_for_update(no_key=True).get(id=cell.id)
    others = Pipe.objects.filter(cell=row).exclude(state=Pipe.State.CLOSED).exclude(tenant=tenant)
    if tenant is not None and (foreign := others.select_related("tenant").first()):
        raise InvalidValue(
            "tenant", f"pipe {foreign.name} of {foreign.tenant.name} is on this cell: migrate it to another cell first"
        )
    if row.dedicated_to and row.dedicated_to != tenant:
        record(tenant=row.dedicated_to, by=by, action="cell.released", target=row)
    if tenant and row.dedicated_to != tenant:
        record(tenant=tenant, by=by, action="cell.dedicated", target=row)
    row.dedicated_to, row.sleeps_after_s = tenant, sleeps_after_s
    row.save(update_fields=["dedicated_to", "sleeps_after_s"])
    sleep = f", and sleeps after {sleeps_after_s // 60} idle minutes" if sleeps_after_s else ""
    _note(row, "keep-cell", by, now, f"dedicated to {tenant.name}{sleep}" if tenant else "open to all tenants")
    return row


def _note(cell: Cell, action: str, by: User | None, now: datetime, why: str) -> None:
    controller = ControlAction.PERSON if by else "scale"
    note(controller, action, outcome=ControlAction.Outcome.DONE, at=now, cell=cell.id, reason=why, author=by)
    log.info("cell changed", cell=cell.id, action=action, by=by.username if by else "", why=why)
