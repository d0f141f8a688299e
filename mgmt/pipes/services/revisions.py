"""Services of revisions: publish one, and adopt its spec when it becomes live."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from dataplane.causes import Cause
from dataplane.plan.field_check import check_fields
from dataplane.plan.outbound import address_of
from dataplane.spec import PipeSpec, RemoteDestination, parse_pipe_spec, spec_to_builtins
from dataplane.tables.sealed import signing_place
from mgmt.audit.services import record
from mgmt.deliveries.services.destinations import (
    change_destination_state,
    check_credential,
    needed_credential,
    store_credential,
)
from mgmt.errors import (
    CredentialNeededError,
    InvalidValue,
    NeededCredential,
    PipeClosedError,
    RevisionConflictError,
    UnchangedError,
)
from mgmt.event_types.queries import event_shapes_of
from mgmt.lookups.services import check_table_loops, check_tables
from mgmt.models import Destination, Pipe, PipeRevision, PortalLink, Source, User
from mgmt.operational_events.services import (
    check_author_of_penstock_source,
    check_penstock_sources,
    emit_event,
    penstock_sources,
)
from mgmt.operational_events.types import REVISION_LIVE
from mgmt.pipes.services.publishing import republish_pipe
from mgmt.pipes.spec_check import check_encodings, check_sources, checked_spec
from mgmt.quotas.services import check_spec_within_quota, hold_tenant
from mgmt.replays.services.backfills import request_backfills
from mgmt.tenancy.secrets import encrypt, new_signing_secret

RevisionState = PipeRevision.State
log = structlog.get_logger(__name__)


Credentials = Mapping[str, Mapping[str, str]]  # by destination, the fields of its auth's secret
_NONE_GIVEN: Final[Credentials] = {}


def publish_revision(
    *,
    pipe: Pipe,
    spec: Mapping[str, Any],
    based_on: int,
    author: User,
    credentials: Credentials = _NONE_GIVEN,
    at_once: bool | None = None,
    must_change: bool = False,
    action: str = "revision.published",
) -> PipeRevision:
    """Store `spec` as the revision after `based_on`, and credentials for its addresses.

    Nothing is deployed here: the Provisioner finds the requested row. Of two people who edit the same revision, the
    later one violates the unique constraint and gets RevisionConflictError instead of overwriting the earlier.
    `at_once`: take all keys at once instead of ramping; by default, if the live revision is failing.
    `must_change`: refuse the spec that is live already, or about to be. `action`: that of the audit entry.
    Raises SpecError, PipeClosedError, RevisionConflictError, UnchangedError, PipeRevision.DoesNotExist (no such
    `based_on`);
    CredentialNeededError if a destination's endpoint changes and no credential for the new one is stored or given;
    InvalidValue for a given credential that does not fit.
    """
    checked = checked_spec(spec, owner=pipe.tenant_id)
    check_fields(checked, event_shapes_of(pipe.id))  # before the transaction: others wait for its locks
    base = pipe.revisions.get(number=based_on)
    check_author_of_penstock_source(author, checked, base.spec)
    try:
        with transaction.atomic():
            # First the tenant's lock, then the pipe's: `reopen_pipe` takes them in the same order.
            check_for_tenant(pipe.tenant_id, checked, pipe.id)
            # The conditional update also locks the row, so that the pipe cannot be closed in between.
            if not Pipe.objects.filter(id=pipe.id).exclude(state=Pipe.State.CLOSED).update(version=F("version") + 1):
                raise PipeClosedError(f"{pipe.name} is closed. Open it again before you publish a revision.")
            _check_credentials(checked, credentials)
            if needed := [one for one in needed_credentials(pipe, checked) if one.destination not in credentials]:
                raise CredentialNeededError(needed)
            if must_change and not credentials:
                _refuse_unchanged(pipe, based_on, checked)
            at_once = is_live_failing(pipe) if at_once is None else at_once
            revision = store_revision(pipe=pipe, number=based_on + 1, spec=checked, author=author, at_once=at_once)
            _store_credentials(revision, credentials)
            given = {"credentials_for": sorted(credentials)} if credentials else {}
            made = {"based_on": based_on, "at_once": at_once, **given}
            record(pipe=pipe, by=author, action=action, target=revision, after=made)
    except IntegrityError as exc:
        raise RevisionConflictError(
            f"{pipe.name} has a newer revision than {based_on}. Read the newest one and apply your change to it."
        ) from exc
    log.info("revision published", tenant=pipe.tenant_id, pipe=pipe.id, revision=revision.number, by=author.username)
    return revision


def is_live_failing(pipe: Pipe) -> bool:
    """Return True if Penstock paused the pipe because too many messages fail in the live revision's steps.

    A ramp would then leave most keys to the revision that fails, and their messages would die.
    """
    return Pipe.objects.filter(id=pipe.id, state=Pipe.State.PAUSED, state_cause=Cause.DEAD_RATE).exists()


def current_revision(pipe: Pipe) -> PipeRevision:
    """Return the newest revision if it is live or about to be; else, as after a rollback, the live one if there is one.

    This is the revision that the next change starts from.
    """
    newest = pipe.revisions.latest("number")
    if newest.state in PipeRevision.IN_USE:
        return newest
    return pipe.revisions.filter(state=RevisionState.LIVE).first() or newest


def earlier_live_revision(pipe: Pipe) -> PipeRevision | None:
    """Return the newest revision that was live before the current one, None if there is none."""
    current = current_revision(pipe).number
    return pipe.revisions.filter(live_at__isnull=False, number__lt=current).order_by("-number").first()


def _refuse_unchanged(pipe: Pipe, based_on: int, checked: PipeSpec) -> None:
    current = current_revision(pipe)
    is_newest = not pipe.revisions.filter(number__gt=based_on).exists()
    if is_newest and current.state != RevisionState.FAILED and parse_pipe_spec(current.spec) == checked:
        raise UnchangedError(
            f"Nothing changed: this is the spec of revision {current.number}, which is {current.state}. "
            "Change something, then publish."
        )


def needed_credentials(pipe: Pipe, spec: PipeSpec) -> list[NeededCredential]:
    """Return the destinations with a stored credential whose new endpoint has no credential yet."""
    found = []
    for row in pipe.destinations.exclude(credentials=[]).order_by("name"):
        to = spec.destinations.get(row.name)
        if not isinstance(to, RemoteDestination):
            continue
        config = msgspec.to_builtins(to)
        if (fields := needed_credential(config)) and not row.credential_for(config):
            found.append(NeededCredential(row.name, fields, to.url or address_of(to)))
    return found


def _check_credentials(spec: PipeSpec, credentials: Credentials) -> None:
    for name, credential in credentials.items():
        to = spec.destinations.get(name)
        if to is None or not needed_credential(config := msgspec.to_builtins(to)):
            raise InvalidValue(
                "credentials", f"{name}: there is no destination of this name whose auth needs a credential"
            )
        try:
            check_credential(config, credential)
        except InvalidValue as exc:
            raise InvalidValue("credentials", f"{name}: {exc.field} {exc.reason}") from exc


def _store_credentials(revision: PipeRevision, credentials: Credentials) -> None:
    rows = dict(revision.pipe.destinations.filter(name__in=credentials).values_list("name", "id"))
    for name, credential in credentials.items():
        store_credential(row_id=rows[name], config=revision.spec["destinations"][name], credential=credential)


def check_revision(*, pipe: Pipe, spec: Mapping[str, Any]) -> PipeSpec:
    """Return the checked spec of a revision that could be published now. Stores nothing; raises SpecError."""
    checked = checked_spec(spec, owner=pipe.tenant_id)
    check_fields(checked, event_shapes_of(pipe.id))
    check_for_tenant(pipe.tenant_id, checked, pipe.id)
    return checked


@transaction.atomic
def check_for_tenant(tenant_id: str, spec: PipeSpec, pipe_id: str = "") -> None:
    """Raise SpecError for a table, topic or schema that the tenant does not have, or for more than its quota allows.

    The tenant stays locked until the transaction ends, and so do the tables. Always in this order: services that hold
    the tenant lock tables, too. `pipe_id`: the pipe whose next revision it is.
    """
    hold_tenant(tenant_id)
    check_table_loops(tenant_id, spec, pipe_id)
    check_tables(tenant_id, spec)
    check_sources(tenant_id, spec)
    check_penstock_sources(tenant_id, spec, pipe_id)
    check_encodings(tenant_id, spec)
    check_spec_within_quota(tenant_id, spec, pipe_id)


@transaction.atomic
def store_revision(*, pipe: Pipe, number: int, spec: PipeSpec, author: User, at_once: bool = False) -> PipeRevision:
    """Create the revision's row, and rows for sources and destinations that the pipe names for the first time."""
    document = spec_to_builtins(spec)
    revision = PipeRevision.objects.create(
        pipe=pipe,
        number=number,
        spec=document,
        author=author,
        at_once=at_once,
        has_penstock_source=bool(penstock_sources(spec)),
    )
    Source.objects.bulk_create([Source(pipe=pipe, name=name) for name in spec.sources], ignore_conflicts=True)
    known = set(pipe.destinations.values_list("name", flat=True))
    Destination.objects.bulk_create(
        [
            Destination(
                pipe=pipe,
                name=name,
                config=config,
                secrets=[encrypt(new_signing_secret(), signing_place(pipe.id, name))],
            )
            for name, config in document["destinations"].items()
            if name not in known
        ],
        ignore_conflicts=True,
    )
    activate_removed(pipe.id, document["destinations"])
    return revision


@transaction.atomic
def adopt_live_spec(*, revision: PipeRevision, now: datetime | None = None) -> bool:
    """Make a ramping revision its pipe's live one; destinations adopt its addresses. Called by the Provisioner.

    Safe to repeat: states change by conditional update, and a destination that has its config already keeps its
    version. Returns False, without any change, if the revision was neither ramping nor live.
    """
    others = PipeRevision.objects.filter(pipe_id=revision.pipe_id, state=RevisionState.LIVE).exclude(id=revision.id)
    mine = PipeRevision.objects.filter(id=revision.id)
    if not mine.filter(state__in=[RevisionState.RAMPING, RevisionState.LIVE]).exists():
        return False
    before, now = others.first(), now or timezone.now()
    others.update(state=RevisionState.RETIRED)
    became_live = mine.filter(state=RevisionState.RAMPING).update(
        state=RevisionState.LIVE, state_reason="", live_at=now
    )
    if became_live:
        request_backfills(revision=revision, before=before, now=now)
        emit_event(type_=REVISION_LIVE, pipe=revision.pipe, data={"revision": revision.number})
    republish_pipe(pipe_id=revision.pipe_id)
    take_over(revision.pipe_id, revision.spec["destinations"])
    revision.refresh_from_db()
    return True


def activate_removed(pipe_id: str, wanted: Mapping[str, Any]) -> None:
    """Activate the removed destinations that a revision names again, before it takes any key.

    Lanes cancel messages to a removed destination. Portal links of a removed one open no later one with its name.
    """
    for row in Destination.objects.filter(pipe_id=pipe_id, name__in=wanted, state=Destination.State.REMOVED):
        Destination.objects.filter(id=row.id).update(config=wanted[row.name])
        PortalLink.objects.filter(destination=row, revoked_at=None).update(revoked_at=timezone.now())
        change_destination_state(row=row, was=[Destination.State.REMOVED], becomes=Destination.State.ACTIVE)


def take_over(pipe_id: str, wanted: Mapping[str, Any], *, remove: bool = True) -> None:
    """Set the configs of the pipe's destinations; destinations that `wanted` lacks are removed if `remove` is true.

    A paused or suspended destination keeps its state: a person who corrects its address still decides when to resume.
    """
    active, removed = Destination.State.ACTIVE, Destination.State.REMOVED
    for row in Destination.objects.filter(pipe_id=pipe_id):
        if row.name not in wanted and not remove:
            continue
        config = wanted.get(row.name, row.config)
        state = removed if row.name not in wanted else active if row.state == removed else row.state
        if moved := row.state != state:
            change_destination_state(row=row, was=[row.state], becomes=state)
        if row.config != config:
            Destination.objects.filter(id=row.id).update(config=config, version=F("version") + (0 if moved else 1))
