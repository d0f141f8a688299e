"""Making, naming, closing and opening pipes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from dataplane.names import WHOLE
from dataplane.spec import PipeSpec
from dataplane.tables.records import DEPENDENCY_MISSING
from mgmt.models import Admission, LaneSignal, Pipe, Tenant, User
from mgmt.provisioning.admission import first_admitted
from mgmt.provisioning.settings import admission_policy
from mgmt.services.errors import NameTaken, PipeClosed
from mgmt.services.names import checked_name
from mgmt.services.quotas import check_room_for_pipe, hold_tenant
from mgmt.services.revisions import check_for_tenant, checked_spec, store_revision

log = structlog.get_logger(__name__)

LACKING_FOR: Final = timedelta(seconds=30)  # lanes that lack something repeat it every ten


def create_pipe(*, tenant: Tenant, name: str, spec: Mapping[str, Any], author: User, expected_per_s: int = 0) -> Pipe:
    """A new pipe with revision 1, its sources and its destinations, each with a fresh signing secret.

    `expected_per_s`: events a second that its maker expects, 0 if they say nothing. Many are let in by shares.
    Raises SpecError if the spec cannot run, InvalidValue for the name, NameTaken if the tenant has a pipe so named,
    QuotaExceeded.
    """
    checked, name = checked_spec(spec, owner=tenant.id), checked_name("name", name)
    with transaction.atomic():
        hold_tenant(tenant.id)
        check_room_for_pipe(tenant.id)
        check_for_tenant(tenant.id, checked)
        try:
            with transaction.atomic():
                pipe = Pipe.objects.create(tenant=tenant, name=name)
        except IntegrityError as exc:
            raise _taken(name) from exc
        store_revision(pipe=pipe, number=1, spec=checked, author=author)
        if (share := first_admitted(admission_policy(), expected_per_s)) < WHOLE:
            Admission.objects.create(pipe=pipe, share=share, expected_per_s=expected_per_s)
    log.info("pipe made", tenant=tenant.id, pipe=pipe.id, revision=1, by=author.username)
    return pipe


def check_new_pipe(*, tenant: Tenant, name: str, spec: Mapping[str, Any]) -> PipeSpec:
    """The spec of a pipe that could be made now. Stores nothing; raises as `create_pipe` does."""
    checked, name = checked_spec(spec, owner=tenant.id), checked_name("name", name)
    check_room_for_pipe(tenant.id)
    check_for_tenant(tenant.id, checked)
    if Pipe.objects.filter(tenant=tenant, name=name).exists():
        raise _taken(name)
    return checked


def rename_pipe(*, pipe: Pipe, name: str) -> Pipe:
    """Give the pipe another name. Raises InvalidValue, NameTaken."""
    name = checked_name("name", name)
    try:
        with transaction.atomic():
            Pipe.objects.filter(id=pipe.id).update(name=name, version=F("version") + 1)
    except IntegrityError as exc:
        raise _taken(name) from exc
    pipe.refresh_from_db()
    return pipe


def close_pipe(*, pipe: Pipe) -> bool:
    """Take no more events; what was ACKed is still delivered. False if it was closed already."""
    return _move(pipe, [Pipe.State.ACTIVE, Pipe.State.PAUSED], Pipe.State.CLOSED)


@transaction.atomic
def reopen_pipe(*, pipe: Pipe) -> bool:
    """Take events again. False if it was open already. Raises QuotaExceeded."""
    hold_tenant(pipe.tenant_id)
    if Pipe.objects.filter(id=pipe.id, state=Pipe.State.CLOSED).exists():
        check_room_for_pipe(pipe.tenant_id)
    return _move(pipe, [Pipe.State.CLOSED], Pipe.State.ACTIVE)


def pause_pipe(*, pipe: Pipe) -> bool:
    """Go on accepting, hold everything. False if it was paused already. Raises PipeClosed."""
    if _move(pipe, [Pipe.State.ACTIVE], Pipe.State.PAUSED):
        return True
    if pipe.state == Pipe.State.CLOSED:
        raise PipeClosed(f"{pipe.name} is closed and takes nothing. Open it again before you pause it.")
    return False


def resume_pipe(*, pipe: Pipe) -> bool:
    """Deliver again; what was held follows by itself, in order. False if it was not paused. Raises PipeClosed."""
    if _move(pipe, [Pipe.State.PAUSED], Pipe.State.ACTIVE):
        return True
    if pipe.state == Pipe.State.CLOSED:
        raise PipeClosed(f"{pipe.name} is closed, not paused. Open it again.")
    return False


def hold_pipe(*, pipe_id: str, of_version: int, cause: str, reason: str) -> bool:
    """Pause it for what a lane saw. False if the row has moved on since the lane read it: the lane looks again.

    `of_version`: of the pipe's record that the lane has; 0 if it has none.
    """
    rows = Pipe.objects.filter(id=pipe_id)
    pipe = (rows.filter(version=of_version) if of_version else rows).first()
    return pipe is not None and _move(pipe, [Pipe.State.ACTIVE], Pipe.State.PAUSED, cause=cause, reason=reason)


def resume_complete_pipes(*, now: datetime) -> int:
    """Resume pipes that were paused because a lane lacked something, when no lane has said so lately; how many."""
    lacking = LaneSignal.objects.filter(
        pipe_id=OuterRef("id"), destination="", breaker="open", at__gte=now - LACKING_FOR
    )
    held = Pipe.objects.filter(~Exists(lacking), state=Pipe.State.PAUSED, state_cause=DEPENDENCY_MISSING)
    return sum(_move(pipe, [Pipe.State.PAUSED], Pipe.State.ACTIVE) for pipe in held)


def _move(pipe: Pipe, was: list[Pipe.State], becomes: Pipe.State, *, cause: str = "", reason: str = "") -> bool:
    moved = Pipe.objects.filter(id=pipe.id, state__in=was).update(
        state=becomes,
        state_cause=cause[:40],
        state_reason=reason[:200],
        state_since=timezone.now(),
        version=F("version") + 1,
    )
    pipe.refresh_from_db()
    if moved:
        log.info("pipe moved", tenant=pipe.tenant_id, pipe=pipe.id, state=becomes.value, cause=cause)
    return moved == 1


def _taken(name: str) -> NameTaken:
    return NameTaken(f"A pipe named {name!r} exists in this tenant. Choose another name.")
