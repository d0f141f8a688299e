"""Services of idempotency keys: find and store the response of the first request.

Source: draft-ietf-httpapi-idempotency-key-header-08.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db import connection

from mgmt.errors import IdempotencyKeyInUseError, IdempotencyKeyReusedError, RolesChangedError
from mgmt.models import IdempotentResponse, User
from mgmt.tenancy.row_scope import all_tenants
from mgmt.tenancy.secrets import decrypt, encrypt

KEYS_FOR: Final = timedelta(hours=24)


@dataclass(frozen=True)
class KeyedRequest:
    """Request with an idempotency key. Keys of other users, and of other API tokens of the user, are other keys.

    A token may see less than its user, so a response never passes from one token to another.

    fingerprint: SHA-256 of all that makes the request the same request
    """

    user: User
    key: str
    fingerprint: str

    @property
    def token(self) -> str:
        """The id of the API token that authenticates the request; empty for none."""
        return self.user.grant.token_id if self.user.grant else ""

    @property
    def place(self) -> str:
        """The place to which the stored body is bound (dataplane.tables.sealed)."""
        return response_place(self.user.pk, self.token, self.key)


class StoredResponse(NamedTuple):
    """Response of the first request; `body` is the text that was sent, empty for none."""

    status: int
    headers: Mapping[str, str]
    body: str


def response_place(user_id: int, token: str, key: str) -> str:
    """Return the place of a stored body. The key is hashed: a client chooses its characters."""
    return f"user {user_id} {token}/idempotency {hashlib.sha256(key.encode()).hexdigest()}/response"


def claim_key(request: KeyedRequest, now: datetime) -> StoredResponse | None:
    """Claim the key for the rest of the transaction. Return the stored response, or None for the first request.

    An advisory lock instead of a row: others cannot see a row before this transaction ends, and the unique constraint
    would make them wait for that instead of answering at once. Postgres releases it with the transaction, also after a
    crash. Raises IdempotencyKeyInUseError, IdempotencyKeyReusedError, RolesChangedError.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 1))", [request.place])
        (is_taken,) = cursor.fetchone()
    if not is_taken:
        raise IdempotencyKeyInUseError("The first request with this Idempotency-Key is still running. Try again.")
    row = IdempotentResponse.objects.filter(user=request.user, token=request.token, key=request.key).first()
    if row is None:
        return None
    if row.created_at <= now - KEYS_FOR:
        row.delete()
        return None
    if row.fingerprint != request.fingerprint:
        raise IdempotencyKeyReusedError("This Idempotency-Key belongs to a different request. Use a new key.")
    if row.roles != _roles_of(request.user):
        raise RolesChangedError("Your roles have changed since this request. Read the state, then use a new key.")
    return StoredResponse(row.status, row.headers, decrypt(row.body, request.place))


def store_response(request: KeyedRequest, response: StoredResponse, now: datetime) -> None:
    """Store the response of the first request. Call this in the transaction of `claim_key`."""
    IdempotentResponse.objects.create(
        user=request.user,
        token=request.token,
        key=request.key,
        fingerprint=request.fingerprint,
        roles=_roles_of(request.user),
        status=response.status,
        headers=dict(response.headers),
        body=encrypt(response.body, request.place),
        created_at=now,
    )


@all_tenants("authentication")
def _roles_of(user: User) -> str:
    """Return the SHA-256 of what the user may do: a response is replayed only to one who may still do the same."""
    roles = sorted(user.memberships.values_list("tenant_id", "role"))
    return hashlib.sha256(json.dumps([roles, user.sso_connection_id]).encode()).hexdigest()
