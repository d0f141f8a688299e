"""Services of pipes: create, rename, close, reopen, pause and resume."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from dataplane.causes import Cause
from dataplane.names import ALL_KEYS_PERCENT
from dataplane.spec import PipeSpec
from mgmt.audit.services import record
from mgmt.cells.policies import admission_policy
from mgmt.errors import NameTakenError, PipeClosedError
from mgmt.models import Admission, LaneSignal, Pipe, Tenant, User
from mgmt.operational_events.services import check_room_for_penstock_source
from mgmt.pipes.services.revisions import check_for_tenant, current_revision, store_revision
from mgmt.pipes.spec_check import checked_spec
from mgmt.quotas.services import check_room_for_pipe, check_room_for_table_sources, hold_tenant
from mgmt.ramps.admission_schedule import first_admitted
from mgmt.tenancy.names import checked_name

log = structlog.get_logger(__name__)

MOST_SAMPLE_CHARS: Final = 4_000
_ACTIONS: Final = {
    Pipe.State.ACTIVE: "pipe.resumed",
    Pipe.State.PAUSED: "pipe.paused",
    Pipe.State.CLOSED: "pipe.closed",
}
LACKING_FOR: Final = timedelta(seconds=30)  # a lane that lacks a dependency repeats its signal every 10 s


def create_pipe(
    *, tenant: Tenant, name: str, spec: Mapping[str, Any], author: User, expected_per_s: int = 0, sample: str = ""
) -> Pipe:
    """Create a pipe with revision 1, its sources and its destinations, each with a new signing secret.

    `expected_per_s`: events per second that the author expects, 0 if unknown. A high rate starts an admission.
    `sample`: a sample event as JSON, kept if it is short.
    Raises SpecError if the spec cannot run, InvalidValue for the name, NameTakenError if the tenant has a pipe so
    named, QuotaExceededError.
    """
    checked, name = checked_spec(spec, owner=tenant.id), checked_name("name", name)
    with transaction.atomic():
        hold_tenant(tenant.id)
        check_room_for_pipe(tenant.id)
        check_for_tenant(tenant.id, checked)
        try:
            with transaction.atomic():
                kept = sample if len(sample) <= MOST_SAMPLE_CHARS else ""
                pipe = Pipe.objects.create(tenant=tenant, name=name, sample=kept)
        except IntegrityError as exc:
            raise _name_taken(name) from exc
        store_revision(pipe=pipe, number=1, spec=checked, author=author)
        expected = {"expected_per_s": expected_per_s} if expected_per_s else {}
        record(pipe=pipe, by=author, action="pipe.created", after={"revision": 1, **expected})
        if (share := first_admitted(admission_policy(), expected_per_s)) < ALL_KEYS_PERCENT:
            Admission.objects.create(pipe=pipe, share=share, expected_per_s=expected_per_s)
    log.info("pipe created", tenant=tenant.id, pipe=pipe.id, revision=1, by=author.username)
    return pipe


def check_new_pipe(*, tenant: Tenant, name: str, spec: Mapping[str, Any]) -> PipeSpec:
    """Return the checked spec of a pipe that could be created now. Stores nothing; raises as `create_pipe` does."""
    checked, name = checked_spec(spec, owner=tenant.id), checked_name("name", name)
    check_room_for_pipe(tenant.id)
    check_for_tenant(tenant.id, checked)
    if Pipe.objects.filter(tenant=tenant, name=name).exists():
        raise _name_taken(name)
    return checked


def rename_pipe(*, pipe: Pipe, name: str, by: User | None = None) -> Pipe:
    """Rename the pipe. Raises InvalidValue, NameTakenError."""
    name = checked_name("name", name)
    try:
        with transaction.atomic():
            before = Pipe.objects.select_for_update(no_key=True).get(id=pipe.id).name
            Pipe.objects.filter(id=pipe.id).update(name=name, version=F("version") + 1)
            pipe.refresh_from_db()
            record(pipe=pipe, by=by, action="pipe.renamed", before={"name": before}, after={"name": name})
    except IntegrityError as exc:
        raise _name_taken(name) from exc
    return pipe


def close_pipe(*, pipe: Pipe, by: User | None = None) -> bool:
    """Close the pipe: it accepts no more events, ACKed ones are still delivered. Returns False if it was closed."""
    return _move(pipe, [Pipe.State.ACTIVE, Pipe.State.PAUSED], Pipe.State.CLOSED, by=by)


@transaction.atomic
def reopen_pipe(*, pipe: Pipe, by: User | None = None) -> bool:
    """Open a closed pipe: it accepts events again. Returns False if it was open. Raises QuotaExceededError."""
    hold_tenant(pipe.tenant_id)
    if Pipe.objects.filter(id=pipe.id, state=Pipe.State.CLOSED).exists():
        check_room_for_pipe(pipe.tenant_id)
        sources = list(current_revision(pipe).spec["sources"].values())
        reading = sum(source.get("type") == "table" for source in sources)
        check_room_for_table_sources(pipe.tenant_id, pipe.id, reading)
        check_room_for_penstock_source(pipe, sources)
    return _move(pipe, [Pipe.State.CLOSED], Pipe.State.ACTIVE, by=by, action="pipe.reopened")


def pause_pipe(*, pipe: Pipe, by: User | None = None) -> bool:
    """Pause the pipe: it accepts events and holds them. Returns False if it was paused. Raises PipeClosedError."""
    if _move(pipe, [Pipe.State.ACTIVE], Pipe.State.PAUSED, by=by):
        return True
    if pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{pipe.name} is closed and accepts no events. Open it again before you pause it.")
    return False


def end_pause(*, pipe: Pipe, by: User | None = None) -> bool:
    """End the pause of a pipe; its held messages are released in order. Returns False if it was not paused.

    Raises PipeClosedError.
    """
    if _move(pipe, [Pipe.State.PAUSED], Pipe.State.ACTIVE, by=by):
        return True
    if pipe.state == Pipe.State.CLOSED:
        raise PipeClosedError(f"{pipe.name} is closed, not paused. Open it again.")
    return False


def hold_pipe(*, pipe_id: str, of_version: int, cause: str, reason: str) -> bool:
    """Pause a pipe for a lane's signal. Returns False if the row has changed since; the lane then checks again.

    `of_version`: version of the pipe's record that the lane has; 0 if it has none.
    """
    rows = Pipe.objects.filter(id=pipe_id)
    pipe = (rows.filter(version=of_version) if of_version else rows).first()
    return pipe is not None and _move(pipe, [Pipe.State.ACTIVE], Pipe.State.PAUSED, cause=cause, reason=reason)


def resume_complete_pipes(*, now: datetime) -> int:
    """Resume pipes paused for a missing dependency that no lane has reported for 30 s; return their number."""
    lacking = LaneSignal.objects.filter(
        pipe_id=OuterRef("id"), destination="", breaker="open", at__gte=now - LACKING_FOR
    )
    held = Pipe.objects.filter(~Exists(lacking), state=Pipe.State.PAUSED, state_cause=Cause.DEPENDENCY_MISSING)
    return sum(_move(pipe, [Pipe.State.PAUSED], Pipe.State.ACTIVE) for pipe in held)


@transaction.atomic
def _move(
    pipe: Pipe,
    was: list[Pipe.State],
    becomes: Pipe.State,
    *,
    by: User | None = None,
    action: str = "",
    cause: str = "",
    reason: str = "",
) -> bool:
    before = pipe.state
    moved = Pipe.objects.filter(id=pipe.id, state__in=was).update(
        state=becomes,
        state_cause=cause[:40],
        state_reason=reason[:200],
        state_since=timezone.now(),
        version=F("version") + 1,
    )
    pipe.refresh_from_db()
    if moved:
        after = {"state": pipe.state} | ({"cause": pipe.state_cause, "reason": pipe.state_reason} if cause else {})
        record(pipe=pipe, by=by, action=action or _ACTIONS[becomes], before={"state": before}, after=after)
        log.info("pipe state changed", tenant=pipe.tenant_id, pipe=pipe.id, state=becomes.value, cause=cause)
    return moved == 1


def _name_taken(name: str) -> NameTakenError:
    return NameTakenError(f"A pipe named {name!r} exists in this tenant. Choose another name.")
