"""Services of the sign-in by SAML: keep metadata current, hand a checked response over, use an assertion once."""

import hashlib
import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, transaction

from mgmt.errors import SsoError
from mgmt.models import SsoConnection, UsedAssertion
from mgmt.sso.provider_steps import provider_step
from mgmt.sso.saml.metadata import fetch_metadata, metadata_in
from mgmt.sso.saml.response import SamlAssertion, SamlParties
from mgmt.sso.services.connections import acs_url_of, entity_id_of, store_metadata
from mgmt.tenancy.secrets import decrypt, encrypt

REFRESH: Final = timedelta(days=1)
RETRY: Final = timedelta(hours=1)  # after a metadata URL did not answer
HANDOFF_VALID: Final = timedelta(seconds=60)
_REPLAYED: Final = "This response was used already. Sign in again."
_STALE: Final = "This sign-in has expired or was started in another browser. Start again."
log = structlog.get_logger(__name__)


class Handoff(NamedTuple):
    """Checked assertion between the provider's form, which comes without cookies, and the person's session.

    relay_state: the provider's; it is an address of Penstock, or the id of the request
    """

    assertion: SamlAssertion
    relay_state: str


def parties_of(connection: SsoConnection) -> SamlParties:
    """Return what a response to this connection has to name."""
    return SamlParties(
        issuer=connection.issuer,
        certificates=tuple(b64decode(one) for one in connection.certificates),
        entity_id=entity_id_of(connection.tenant_id),
        acs_url=acs_url_of(connection.tenant_id),
        subject_attribute=connection.subject_attribute,
        email_attribute=connection.email_attribute,
    )


def keep_metadata_current(*, connection: SsoConnection, now: datetime) -> None:
    """Read the metadata at its URL once a day: so a new certificate of the provider arrives before it is used.

    Raises SsoError if the metadata has expired. A URL that does not answer, or names another provider, changes nothing.
    """
    if _claim_refresh(connection, now):
        try:
            with provider_step(connection.tenant_id):
                content = fetch_metadata(connection.metadata_url)
            found = metadata_in(content, now=now, https_only=settings.PRODUCTION)
            if found.entity_id != connection.issuer:
                raise SsoError(f"The metadata is of the provider {found.entity_id!r}.")
        except SsoError as exc:
            log.warning("SAML metadata not read", tenant=connection.tenant_id, reason=str(exc))
            again_at = now - REFRESH + RETRY
            SsoConnection.objects.filter(id=connection.id).update(metadata_read_at=again_at)
        else:
            store_metadata(connection=connection, metadata=found)
    if connection.metadata_valid_until is not None and connection.metadata_valid_until <= now:
        raise SsoError(
            f"The metadata of the identity provider expired on {connection.metadata_valid_until:%Y-%m-%d}. An owner "
            "gets the current one from the provider and saves it on the page Single sign-on."
        )


def seal_handoff(*, connection: SsoConnection, handoff: Handoff, now: datetime) -> str:
    """Return a checked assertion as a token that is valid for a minute and for this connection."""
    found = handoff.assertion
    ends_at = found.session_ends_at.timestamp() if found.session_ends_at else None
    values = [*found[:4], found.replayable_until.timestamp(), ends_at, handoff.relay_state, now.timestamp()]
    return encrypt(json.dumps(values, ensure_ascii=False), _place(connection))


def open_handoff(*, connection: SsoConnection, token: str, now: datetime) -> Handoff:
    """Return the handoff in a token of `seal_handoff`. Raises SsoError."""
    try:
        values = json.loads(decrypt(token, _place(connection)))
    except (ImproperlyConfigured, ValueError) as exc:
        raise SsoError(_STALE) from exc
    assertion_id, subject, email, request_id, replayable_until, ends_at, relay_state, at = values
    if now - _time(at) > HANDOFF_VALID:
        raise SsoError(_STALE)
    assertion = SamlAssertion(
        id=assertion_id,
        subject=subject,
        email=email,
        request_id=request_id,
        replayable_until=_time(replayable_until),
        session_ends_at=None if ends_at is None else _time(ends_at),
    )
    return Handoff(assertion, relay_state)


@transaction.atomic
def use_assertion(*, connection: SsoConnection, assertion: SamlAssertion, now: datetime) -> None:
    """Use an assertion, which is possible once. Raises SsoError for one that was used.

    The row is kept for as long as a handoff of the assertion can still arrive.
    """
    rows = UsedAssertion.objects.filter(tenant=connection.tenant_id)
    rows.filter(expires_at__lt=now).delete()
    digest = hashlib.sha256(json.dumps([connection.issuer, assertion.id]).encode()).hexdigest()
    try:
        with transaction.atomic():
            expires_at = assertion.replayable_until + HANDOFF_VALID
            rows.create(tenant_id=connection.tenant_id, digest=digest, expires_at=expires_at)
    except IntegrityError as exc:
        raise SsoError(_REPLAYED) from exc


def _claim_refresh(connection: SsoConnection, now: datetime) -> bool:
    """Return True if this request is the one that reads the metadata; others go on with the stored one."""
    if not connection.metadata_url:
        return False
    due = SsoConnection.objects.filter(id=connection.id, metadata_read_at__lte=now - REFRESH)
    return bool(due.update(metadata_read_at=now))


def _time(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)


def _place(connection: SsoConnection) -> str:
    """Return the location to which a handoff is bound (dataplane.tables.sealed)."""
    return f"{connection.tenant_id}/{connection.id}/saml-response"
