"""Services of destinations: pause, suspend and resume them, and rotate their secrets without a gap."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from dataplane.spec import destination_of, endpoint_of
from dataplane.tables.sealed import credential_place, signing_place
from mgmt.audit.services import record
from mgmt.errors import DestinationRemovedError, InvalidValue
from mgmt.models import Destination, Pipe, User
from mgmt.tenancy.secrets import decrypt, encrypt, new_signing_secret

log = structlog.get_logger(__name__)
DestinationState = Destination.State

MAX_SECRETS = 2  # messages are signed with each, so that the receiver can change to the new one at any time
MAX_CREDENTIAL_CHARS: Final = 20_000
MAX_CREDENTIALS: Final = 2  # of one destination: for the current endpoint, and for the next or the former one
# Fields of the secret of each kind of auth (dataplane.tables.records.DestinationRecord.credential).
CREDENTIAL_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "header": ("value",),
    "basic": ("password",),
    "bearer": ("value",),
    "oauth2": ("client_secret",),
    "mtls": ("certificate", "key"),
    "aws": ("secret_access_key",),
    "postgres": ("password",),
}
_ACTIONS: Final = {
    DestinationState.ACTIVE: "destination.resumed",
    DestinationState.PAUSED: "destination.paused",
    DestinationState.SUSPENDED: "destination.suspended",
    DestinationState.REMOVED: "destination.removed",
}
_ON_ONE_LINE: Final = frozenset({"value", "password", "client_secret", "secret_access_key"})


def pause_destination(*, destination: Destination, by: User | None = None) -> bool:
    """Pause a destination; its messages are held. Returns False if it was paused. Raises DestinationRemovedError."""
    return _change_state(
        destination, [DestinationState.ACTIVE, DestinationState.SUSPENDED], DestinationState.PAUSED, by
    )


def resume_destination(*, destination: Destination, by: User | None = None) -> bool:
    """Resume a destination; its held messages are released automatically, in order. Returns False if it was active.

    Raises DestinationRemovedError.
    """
    return _change_state(
        destination, [DestinationState.PAUSED, DestinationState.SUSPENDED], DestinationState.ACTIVE, by
    )


def suspend_destination(*, pipe_id: str, name: str, of_version: int, cause: str, reason: str) -> bool:
    """Suspend a destination whose messages a lane holds for `cause`. Returns False if the row has changed since.

    `of_version`: version of the record on which the lane decided. A later version comes from a resume or a new
    address, which also clears the lane's decision.
    """
    row = Destination.objects.filter(pipe_id=pipe_id, name=name, version=of_version).first()
    return row is not None and change_destination_state(
        row=row, was=[DestinationState.ACTIVE], becomes=DestinationState.SUSPENDED, cause=cause, reason=reason
    )


def reactivate_destination(*, pipes: QuerySet[Pipe], since: datetime) -> list[Destination]:
    """Resume the destinations of these pipes that were suspended after `since`, and return them.

    Used after the rollback of a revision or a release. A destination that fails for another reason is suspended again.
    """
    suspended = Destination.objects.filter(pipe__in=pipes, state=DestinationState.SUSPENDED, state_since__gte=since)
    return [
        row
        for row in suspended
        if change_destination_state(row=row, was=[DestinationState.SUSPENDED], becomes=DestinationState.ACTIVE)
    ]


@transaction.atomic
def change_destination_state(
    *,
    row: Destination,
    was: Sequence[str],
    becomes: str,
    by: User | None = None,
    cause: str = "",
    reason: str = "",
) -> bool:
    """Change the state if it is one of `was`; return True if it changed. The Provisioner publishes the row."""
    before = row.state
    moved = Destination.objects.filter(id=row.id, state__in=was).update(
        state=becomes,
        state_cause=cause[:40],
        state_reason=reason[:200],
        state_since=timezone.now(),
        state_by=by,
        probe="",
        version=F("version") + 1,
    )
    row.refresh_from_db()
    if moved:
        after = {"state": row.state} | ({"cause": row.state_cause, "reason": row.state_reason} if cause else {})
        action = _ACTIONS[DestinationState(row.state)]
        record(pipe=row.pipe, by=by, action=action, target=row, before={"state": before}, after=after)
        log.info("destination state changed", pipe=row.pipe_id, destination=row.name, state=row.state, cause=cause)
    return moved == 1


@transaction.atomic
def rotate_signing_secret(*, destination: Destination, by: User | None = None) -> tuple[Destination, str]:
    """Add a new signing secret and keep the newest old one. Return the row and the secret, which is not shown again.

    Takes a lock, because no constraint can guard a list inside one column, and two concurrent rotations must not drop
    each other's secret while both are shown as valid.
    """
    row = Destination.objects.select_for_update().get(id=destination.id)
    secret = new_signing_secret()
    row.secrets = [encrypt(secret, signing_place(row.pipe_id, row.name)), *row.secrets][:MAX_SECRETS]
    row.version = F("version") + 1
    row.save(update_fields=["secrets", "version"])
    row.refresh_from_db()
    record(pipe=row.pipe, by=by, action="signing_secret.rotated", target=row)
    log.info("signing secret rotated", pipe=row.pipe_id, destination=row.name)
    return row, secret


def signing_secrets(*, destination: Destination) -> list[str]:
    """Return the current signing secrets, newest first. Show them only in the response that created them."""
    place = signing_place(destination.pipe_id, destination.name)
    return [decrypt(token, place) for token in destination.secrets]


def set_credential(*, destination: Destination, credential: Mapping[str, str], by: User | None = None) -> None:
    """Store the credential of the destination's auth for its current endpoint; it is never shown again.

    Raises InvalidValue, DestinationRemovedError.
    """
    _refuse_removed(destination)
    if not needed_credential(destination.config):
        raise InvalidValue(
            "credential", "the destination's auth needs no credential; publish a revision with another auth first"
        )
    check_credential(destination.config, credential)
    with transaction.atomic():
        store_credential(row_id=destination.id, config=destination.config, credential=credential)
        record(pipe=destination.pipe, by=by, action="credential.set", target=destination)
    destination.refresh_from_db()


@transaction.atomic
def clear_credential(*, destination: Destination, by: User | None = None) -> None:
    """Delete the credentials of all endpoints. A destination whose auth needs one is sent nothing until it has one."""
    Destination.objects.filter(id=destination.id).update(credentials=[], version=F("version") + 1)
    destination.refresh_from_db()
    record(pipe=destination.pipe, by=by, action="credential.cleared", target=destination)
    log.info("credential cleared", pipe=destination.pipe_id, name=destination.name)


def store_credential(*, row_id: int, config: Mapping[str, Any], credential: Mapping[str, str]) -> None:
    """Store a checked credential for the endpoint of `config`, the current one or that of a revision to come.

    Takes a lock, because no constraint can guard a list inside one column. Call it in a transaction.
    """
    row = Destination.objects.select_for_update().get(id=row_id)
    endpoint = endpoint_of(destination_of(config))
    text = msgspec.json.encode(dict(credential)).decode()
    token = encrypt(with_endpoint(text, endpoint), credential_place(row.pipe_id, row.name))
    others = [pair for pair in row.credentials if pair[0] != endpoint]
    live = endpoint_of(destination_of(row.config))
    kept = sorted(others, key=lambda pair: pair[0] != live)[: MAX_CREDENTIALS - 1]
    Destination.objects.filter(id=row.id).update(credentials=[[endpoint, token], *kept], version=F("version") + 1)
    log.info("credential stored", pipe=row.pipe_id, name=row.name)


def with_endpoint(credential: str, endpoint: str) -> str:
    """Return a credential, as JSON, extended by the endpoint that it was entered for."""
    named: dict[str, str] = msgspec.json.decode(credential)
    return msgspec.json.encode(named | {"endpoint": endpoint}).decode()


def needed_credential(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of the secret that the auth of a destination's config needs."""
    auth = getattr(destination_of(config), "auth", None)
    return CREDENTIAL_FIELDS[str(auth.__struct_config__.tag)] if auth is not None else ()


def check_credential(config: Mapping[str, Any], credential: Mapping[str, str]) -> None:
    """Raise InvalidValue for a field that the auth of a destination's config does not need, or that cannot be sent."""
    needed = needed_credential(config)
    for field in {*needed, *credential}:
        _check_field(field, credential.get(field, ""), needed)


def _change_state(destination: Destination, was: Sequence[str], becomes: str, by: User | None) -> bool:
    moved = change_destination_state(row=destination, was=was, becomes=becomes, by=by)
    _refuse_removed(destination)
    return moved


def _refuse_removed(destination: Destination) -> None:
    if destination.state == DestinationState.REMOVED:
        raise DestinationRemovedError(f"{destination.name} was removed. Publish a revision that includes it again.")


def _check_field(field: str, value: str, needed: Sequence[str]) -> None:
    if field not in needed:
        raise InvalidValue(field, f"is not a field of this credential, which needs {', '.join(needed)}")
    if not 1 <= len(value) <= MAX_CREDENTIAL_CHARS:
        raise InvalidValue(field, f"needs 1 to {MAX_CREDENTIAL_CHARS} characters, got {len(value)}")
    if field in _ON_ONE_LINE and not (value.isascii() and value.isprintable()):
        raise InvalidValue(field, "needs printable ASCII on one line")
