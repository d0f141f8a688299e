"""Publishing revisions, and taking one over when it is live."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from dataplane.spec import HttpDestination, PipeSpec, SpecError, parse_pipe_spec, spec_to_builtins
from dataplane.tables.sealed import signing_place
from mgmt.models import Destination, Pipe, PipeRevision, Source, User
from mgmt.sandbox import checked_spec_of
from mgmt.services.destinations import check_credential, move_destination, needed_credential, store_credential
from mgmt.services.errors import CredentialNeeded, InvalidValue, NeededCredential, PipeClosed, RevisionConflict
from mgmt.services.lookups import check_tables
from mgmt.services.publishing import republish_pipe
from mgmt.services.quotas import check_spec_within_quota
from mgmt.services.reach import check_destinations, check_sources
from mgmt.services.secrets import encrypt, new_signing_secret

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
State = PipeRevision.State
log = structlog.get_logger(__name__)


Credentials = Mapping[str, Mapping[str, str]]  # by destination, the fields of its auth's secret
_NONE_GIVEN: Final[Credentials] = {}


def publish_revision(
    *, pipe: Pipe, spec: Mapping[str, Any], based_on: int, author: User, credentials: Credentials = _NONE_GIVEN
) -> PipeRevision:
    """Store `spec` as the revision after `based_on`, and credentials for the addresses that it has.

    Nothing is deployed here: the provisioner finds the requested row. Two people editing the same revision meet at
    the unique constraint; the later one gets RevisionConflict instead of overwriting the earlier.
    Raises SpecError, PipeClosed, RevisionConflict, PipeRevision.DoesNotExist (nothing to build on); CredentialNeeded if
    a destination's endpoint changes and no credential for the new one is stored or given; InvalidValue for one that is
    given and does not fit.
    """
    checked = checked_spec(spec, owner=pipe.tenant_id)
    pipe.revisions.get(number=based_on)
    try:
        with transaction.atomic():
            check_for_tenant(
                pipe.tenant_id, checked, pipe.id
            )  # first: whoever opens a pipe holds its tenant first, too
            # The conditional update also holds the row, so that nobody closes the pipe in between.
            if not Pipe.objects.filter(id=pipe.id).exclude(state=Pipe.State.CLOSED).update(version=F("version") + 1):
                raise PipeClosed(f"{pipe.name} is closed. Open it again before you publish a revision.")
            _check_credentials(checked, credentials)
            if needed := [one for one in needed_credentials(pipe, checked) if one.destination not in credentials]:
                raise CredentialNeeded(needed)
            revision = store_revision(pipe=pipe, number=based_on + 1, spec=checked, author=author)
            _store_credentials(revision, credentials)
    except IntegrityError as exc:
        raise RevisionConflict(
            f"{pipe.name} is already past revision {based_on}. Read the newest one and make your change to it."
        ) from exc
    log.info("revision published", tenant=pipe.tenant_id, pipe=pipe.id, revision=revision.number, by=author.username)
    return revision


def checked_spec(document: Mapping[str, Any], *, owner: str = "") -> PipeSpec:
    """Return the spec a document means. Raises SpecError also for what parses, but cannot be stored or published.

    It is checked in a sandbox worker first, for `owner`, because expressions and patterns cost what their author likes.
    Raises DestinationForbidden for a destination that no lane would connect to; SandboxRefused.
    """
    spec = checked_spec_of(document, owner=owner)
    try:
        text = msgspec.json.encode(spec)
        whole = parse_pipe_spec(text) == spec  # infinity, for one, is written as null
    except (OverflowError, UnicodeEncodeError, RecursionError) as exc:
        raise SpecError("$", "holds a value that JSON cannot carry: half a character, or levels beyond number") from exc
    if not whole or _NUL.search(text):
        raise SpecError("$", "must not carry infinite numbers or the character U+0000")
    check_destinations(spec)
    return spec


def needed_credentials(pipe: Pipe, spec: PipeSpec) -> list[NeededCredential]:
    """Return the destinations that sign in with a stored credential and get an endpoint that it was not entered for."""
    found = []
    for row in pipe.destinations.exclude(credentials=[]).order_by("name"):
        to = spec.destinations.get(row.name)
        if not isinstance(to, HttpDestination):
            continue
        config = msgspec.to_builtins(to)
        if (fields := needed_credential(config)) and not row.credential_for(config):
            found.append(NeededCredential(row.name, fields, to.url))
    return found


def _check_credentials(spec: PipeSpec, credentials: Credentials) -> None:
    for name, credential in credentials.items():
        to = spec.destinations.get(name)
        if to is None or not needed_credential(config := msgspec.to_builtins(to)):
            raise InvalidValue("credentials", f"{name}: no destination of this name signs in with a credential")
        try:
            check_credential(config, credential)
        except InvalidValue as exc:
            raise InvalidValue("credentials", f"{name}: {exc.field} {exc.reason}") from exc


def _store_credentials(revision: PipeRevision, credentials: Credentials) -> None:
    rows = dict(revision.pipe.destinations.filter(name__in=credentials).values_list("name", "id"))
    for name, credential in credentials.items():
        store_credential(row_id=rows[name], config=revision.spec["destinations"][name], credential=credential)


def check_revision(*, pipe: Pipe, spec: Mapping[str, Any]) -> PipeSpec:
    """The spec of a revision that could be published now. Stores nothing; raises SpecError."""
    checked = checked_spec(spec, owner=pipe.tenant_id)
    check_for_tenant(pipe.tenant_id, checked, pipe.id)
    return checked


@transaction.atomic
def check_for_tenant(tenant_id: str, spec: PipeSpec, pipe_id: str = "") -> None:
    """Raise SpecError for a table or a topic that the tenant has not, or for more than its quota allows.

    The tables are held while a transaction lasts. `pipe_id`: the pipe whose next revision it is.
    """
    check_tables(tenant_id, spec)
    check_sources(tenant_id, spec)
    check_spec_within_quota(tenant_id, spec, pipe_id)


@transaction.atomic
def store_revision(*, pipe: Pipe, number: int, spec: PipeSpec, author: User) -> PipeRevision:
    """The revision's row, and rows for sources and destinations that are named for the first time."""
    document = spec_to_builtins(spec)
    revision = PipeRevision.objects.create(pipe=pipe, number=number, spec=document, author=author)
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
    return revision


@transaction.atomic
def adopt_live_spec(*, revision: PipeRevision, now: datetime | None = None) -> bool:
    """Make a ramping revision its pipe's live one; destinations take over its addresses. Called by the provisioner.

    Safe to run twice: states move by conditional update, and a destination that has its config already keeps its
    version. False if the revision was neither ramping nor live, and nothing was done.
    """
    others = PipeRevision.objects.filter(pipe_id=revision.pipe_id, state=State.LIVE).exclude(id=revision.id)
    mine = PipeRevision.objects.filter(id=revision.id)
    if not mine.filter(state__in=[State.RAMPING, State.LIVE]).exists():
        return False
    others.update(state=State.RETIRED)
    mine.filter(state=State.RAMPING).update(state=State.LIVE, state_reason="", live_at=now or timezone.now())
    republish_pipe(pipe_id=revision.pipe_id)
    take_over(revision.pipe_id, revision.spec["destinations"])
    revision.refresh_from_db()
    return True


def take_over(pipe_id: str, wanted: Mapping[str, Any], *, remove: bool = True) -> None:
    """Give the pipe's destinations these addresses; those not named are removed, unless `remove` says to leave them.

    A paused or suspended destination stays so: whoever mends its address still says when it goes on.
    """
    active, removed = Destination.State.ACTIVE, Destination.State.REMOVED
    for row in Destination.objects.filter(pipe_id=pipe_id):
        if row.name not in wanted and not remove:
            continue
        config = wanted.get(row.name, row.config)
        state = removed if row.name not in wanted else active if row.state == removed else row.state
        if moved := row.state != state:
            move_destination(row=row, was=[row.state], becomes=state)
        if row.config != config:
            Destination.objects.filter(id=row.id).update(config=config, version=F("version") + (0 if moved else 1))
