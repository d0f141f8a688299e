"""Services of a tenant's connection: test, save, remove it, and require it of members."""

from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import structlog
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction

from mgmt.audit.services import record
from mgmt.errors import InvalidValue, SecondFactorNeededError, SsoError
from mgmt.models import Membership, SsoConnection, Tenant, User
from mgmt.quotas.services import hold_tenant
from mgmt.sso.http import why_not
from mgmt.sso.oidc import check_client, discover, fetch_keys
from mgmt.sso.provider_steps import provider_step
from mgmt.sso.queries import connection_of
from mgmt.sso.saml.metadata import MOST_BYTES, SamlMetadata, facts_of_certificate, fetch_metadata, metadata_in
from mgmt.tenancy.queries import has_owner_with_own_means, has_second_factor
from mgmt.tenancy.secrets import decrypt, encrypt, reencrypt

Protocol = SsoConnection.Protocol
_OIDC_FIELDS: Final = ("issuer", "client_id", "client_secret")
_SAML_FIELDS: Final = (
    "metadata_url",
    "metadata_xml",
    "subject_attribute",
    "email_attribute",
    "trusts_email",
    "idp_initiated",
)
_ENTERED: Final = (
    "protocol",
    "client_id",
    "enabled",
    "join_policy",
    "default_role",
    "metadata_url",
    "subject_attribute",
    "email_attribute",
    "trusts_email",
    "idp_initiated",
)
_MOST_ATTRIBUTE_CHARS: Final = 200
_MOST_URL_CHARS: Final = 1_000
log = structlog.get_logger(__name__)


class SsoSettings(NamedTuple):
    """Settings of a connection as an owner enters them; those of the other protocol are ignored.

    client_secret: "" keeps the stored one
    metadata_url, metadata_xml: address or text of the SAML provider's metadata; without both, the stored one is kept
    """

    issuer: str = ""
    client_id: str = ""
    client_secret: str = ""
    enabled: bool = False
    join_policy: str = SsoConnection.JoinPolicy.ANYONE
    default_role: str = Membership.Role.VIEWER
    protocol: str = Protocol.OIDC
    metadata_url: str = ""
    metadata_xml: str = ""
    subject_attribute: str = ""
    email_attribute: str = ""
    trusts_email: bool = False
    idp_initiated: bool = False


def redirect_uri_of(tenant: Tenant) -> str:
    """Return the address to which the provider sends people back; it is known before the connection exists."""
    return f"{settings.PENSTOCK_WEB_URL}/sso/{tenant.id}/callback/"


def sign_in_url_of(tenant: Tenant) -> str:
    """Return the address that starts the sign-in of a tenant's people, also from the provider's list of apps."""
    return f"{settings.PENSTOCK_WEB_URL}/sso/{tenant.id}/"


def entity_id_of(tenant_id: str) -> str:
    """Return the entity ID of a tenant's SAML service, at which its metadata is."""
    return f"{settings.PENSTOCK_WEB_URL}/sso/{tenant_id}/saml/metadata/"


def acs_url_of(tenant_id: str) -> str:
    """Return the address to which a SAML provider posts its responses (assertion consumer service)."""
    return f"{settings.PENSTOCK_WEB_URL}/sso/{tenant_id}/saml/acs/"


def client_secret_of(connection: SsoConnection) -> str:
    """Return the decrypted client secret; "" with SAML. Raises as mgmt.tenancy.secrets.decrypt."""
    if connection.protocol == Protocol.SAML:
        return ""
    return decrypt(connection.client_secret, _place(connection))


def test_connection(*, tenant: Tenant, values: SsoSettings, now: datetime) -> None:
    """Check that the provider can be used with these settings. Stores nothing. Raises InvalidValue, SsoError.

    All requests to an OpenID Connect provider are one step, as in `provider_step`. Of a SAML provider, the metadata is
    read: what it answers to a sign-in shows in the browser only.
    """
    values = checked(values)
    stored = connection_of(tenant.id)
    if values.protocol == Protocol.SAML:
        _metadata_for(tenant, stored, values, now)
        return
    secret = values.client_secret or _stored_secret(stored, values.issuer)
    with provider_step(tenant.id):
        metadata = discover(values.issuer)
        fetch_keys(metadata)
        redirect_uri = redirect_uri_of(tenant)
        check_client(metadata, client_id=values.client_id, client_secret=secret, redirect_uri=redirect_uri)


def save_connection(*, tenant: Tenant, values: SsoSettings, by: User, now: datetime) -> SsoConnection:
    """Create or change the connection of a tenant. It is tested first if it is to be enabled.

    Another issuer makes another connection: a subject of the earlier issuer means nothing to the new one, so identities
    and sessions of the earlier one end. Raises InvalidValue, SsoError; that also if no owner could sign in any more.
    """
    values = checked(values)
    metadata = None
    if values.protocol == Protocol.SAML:
        metadata = _metadata_for(tenant, connection_of(tenant.id), values, now)
    elif values.enabled:
        test_connection(tenant=tenant, values=values, now=now)
    with transaction.atomic():
        hold_tenant(tenant.id)
        stored = connection_of(tenant.id)
        after = _entered(values) | (_read(metadata) if metadata else {"issuer": values.issuer, "certificates": []})
        if stored is not None and not (values.enabled and _keeps_way_in(stored, after)):
            need_another_way_in(stored)
        secret = "" if metadata else values.client_secret or _stored_secret(stored, values.issuer)
        if stored is not None and not _is_same_provider(stored, after):
            _delete(stored, by)
            stored = None
        row = stored or SsoConnection(tenant=tenant, created_at=now)
        before = _audited(row) if stored else {}
        for name, value in after.items():
            setattr(row, name, value)
        row.metadata_read_at = now if row.metadata_url else None
        row.client_secret = encrypt(secret, _place(row)) if secret else ""
        row.save()
        changed_secret = {"client_secret": "new"} if values.client_secret else {}
        record(
            tenant=tenant,
            by=by,
            action="sso.configured",
            target=row,
            before=before,
            after=_audited(row) | changed_secret,
        )
        if not row.enabled:
            _stop_requiring(tenant, by)
    log.info("single sign-on configured", tenant=tenant.id, enabled=row.enabled, by=by.get_username())
    return row


def store_metadata(*, connection: SsoConnection, metadata: SamlMetadata) -> None:
    """Store what a SAML provider publishes at the stored address, for nobody in particular.

    Stores nothing if an owner has changed or removed the connection since the document was read.
    """
    with transaction.atomic():
        hold_tenant(connection.tenant_id)
        row = SsoConnection.objects.filter(id=connection.id, metadata_url=connection.metadata_url).first()
        if row is None:
            return
        before = _audited(row)
        for name, value in _read(metadata).items():
            setattr(row, name, value)
            setattr(connection, name, value)
        row.save(update_fields=list(_read(metadata)))
        record(tenant=row.tenant_id, by=None, action="sso.configured", target=row, before=before, after=_audited(row))


@transaction.atomic
def remove_connection(*, connection: SsoConnection, by: User) -> None:
    """Remove a connection with its identities. Accounts remain, and their sessions by single sign-on reach nothing.

    Raises SsoError if no owner could sign in any more.
    """
    hold_tenant(connection.tenant_id)
    need_another_way_in(connection)
    _stop_requiring(connection.tenant, by)
    _delete(connection, by)


@transaction.atomic
def set_require_sso(*, tenant: Tenant, required: bool, by: User) -> None:
    """Require single sign-on of the members that are not owners, or no longer. Safe to repeat.

    Raises SsoError without an enabled connection or an owner who can sign in otherwise, SecondFactorNeededError if
    `by` has no second factor: owners sign in without single sign-on only with one.
    """
    hold_tenant(tenant.id)
    if required and not SsoConnection.objects.filter(tenant=tenant, enabled=True).exists():
        raise SsoError("Enable single sign-on first.")
    if required and not has_second_factor(by):
        raise SecondFactorNeededError(
            "Set up a second factor for your own account first: with it, owners can sign in if the provider fails."
        )
    if required:
        _need_owner_with_own_means(tenant.id)
    _require(tenant, by, required=required)


@transaction.atomic
def rotate_client_secret(row_id: str) -> None:
    """Encrypt a client secret with the first key. For manage.py rotate_secrets."""
    row = SsoConnection.objects.select_for_update().get(id=row_id)
    if not row.client_secret:  # SAML has none
        return
    row.client_secret = reencrypt(row.client_secret, _place(row))
    row.save(update_fields=["client_secret"])


def checked(values: SsoSettings) -> SsoSettings:
    """Return the settings of their protocol without surrounding white space. Raises InvalidValue."""
    if values.protocol not in Protocol.values:
        raise InvalidValue("protocol", f"needs one of {', '.join(Protocol.values)}")
    others = _OIDC_FIELDS if values.protocol == Protocol.SAML else _SAML_FIELDS
    ignored = {name: SsoSettings._field_defaults[name] for name in others}
    texts = {name: value.strip() for name, value in values._asdict().items() if isinstance(value, str)}
    values = SsoSettings(**values._asdict() | texts | ignored)
    if values.protocol == Protocol.SAML:
        _check_saml(values)
    else:
        _check_oidc(values)
    if values.join_policy not in SsoConnection.JoinPolicy.values:
        raise InvalidValue("join_policy", f"needs one of {', '.join(SsoConnection.JoinPolicy.values)}")
    roles = [role for role in Membership.Role.values if role != Membership.Role.OWNER]
    if values.default_role not in roles:
        raise InvalidValue("default_role", f"needs one of {', '.join(roles)}")
    return values


def _check_oidc(values: SsoSettings) -> None:
    is_url = values.issuer.startswith(("https://", "http://")) and values.issuer.isprintable()
    if not is_url or len(values.issuer) > 300:
        raise InvalidValue("issuer", "needs the issuer URL of the provider, such as https://login.example.com")
    if why := why_not(values.issuer):
        raise InvalidValue("issuer", why)
    if not values.client_id or len(values.client_id) > 191 or not values.client_id.isprintable():
        raise InvalidValue("client_id", "needs the client ID in one line of at most 191 characters")
    if len(values.client_secret) > 1_000 or not values.client_secret.isprintable():
        raise InvalidValue("client_secret", "needs the client secret in one line of at most 1,000 characters")


def _check_saml(values: SsoSettings) -> None:
    url = values.metadata_url
    if url and values.metadata_xml:
        raise InvalidValue("metadata_xml", "needs to be empty if there is a metadata URL")
    if url and not (url.startswith(("https://", "http://")) and url.isprintable() and len(url) <= _MOST_URL_CHARS):
        raise InvalidValue("metadata_url", "needs an address, such as https://login.example.com/metadata")
    if url and (why := why_not(url) or _has_login(url)):
        raise InvalidValue("metadata_url", why)
    if len(values.metadata_xml) > MOST_BYTES:
        raise InvalidValue("metadata_xml", f"needs at most {MOST_BYTES // 1024} KiB")
    for name in ("subject_attribute", "email_attribute"):
        text = getattr(values, name)
        if len(text) > _MOST_ATTRIBUTE_CHARS or not text.isprintable():
            raise InvalidValue(name, f"needs the name of an attribute of at most {_MOST_ATTRIBUTE_CHARS} characters")


def _has_login(url: str) -> str:
    """Return why a URL with a password cannot be stored, as the page and the audit log show it; else ""."""
    return "needs to be without user name and password" if "@" in urlsplit(url).netloc else ""


def _metadata_for(tenant: Tenant, stored: SsoConnection | None, values: SsoSettings, now: datetime) -> SamlMetadata:
    """Return the metadata that the settings name, or else the stored one. Raises InvalidValue, SsoError."""
    if values.metadata_url:
        with provider_step(tenant.id):
            content = fetch_metadata(values.metadata_url)
    elif values.metadata_xml:
        content = values.metadata_xml.encode("utf-8", "replace")
    elif stored is not None and stored.protocol == Protocol.SAML:
        return SamlMetadata(stored.issuer, stored.sso_url, stored.certificates, stored.metadata_valid_until)
    else:
        raise InvalidValue("metadata_url", "needs the address or the text of the provider's metadata")
    return metadata_in(content, now=now, https_only=settings.PRODUCTION)


def _entered(values: SsoSettings) -> dict[str, Any]:
    return {name: getattr(values, name) for name in _ENTERED}


def _read(metadata: SamlMetadata) -> dict[str, Any]:
    return {
        "issuer": metadata.entity_id,
        "sso_url": metadata.sso_url,
        "certificates": metadata.certificates,
        "metadata_valid_until": metadata.valid_until,
    }


def _audited(row: SsoConnection) -> dict[str, Any]:
    """Return the values for the audit log; of certificates the fingerprints, which owners can compare."""
    others = ("client_id",) if row.protocol == Protocol.SAML else _SAML_FIELDS
    values = {name: getattr(row, name) for name in ("issuer", *_ENTERED) if name not in others}
    if row.protocol == Protocol.SAML:
        fingerprints = [facts_of_certificate(one).fingerprint for one in row.certificates]
        values |= {"sso_url": row.sso_url, "certificates": fingerprints}
    return values


def _is_same_provider(stored: SsoConnection, after: dict[str, Any]) -> bool:
    """Return True if a subject means the same person as before."""
    return all(getattr(stored, name) == after[name] for name in ("protocol", "issuer", "subject_attribute"))


def _keeps_way_in(stored: SsoConnection, after: dict[str, Any]) -> bool:
    """Return True if people who can sign in now can do so afterwards; subjects may depend on the client."""
    same = all(getattr(stored, name) == after.get(name, "") for name in ("client_id", "sso_url"))
    return same and _is_same_provider(stored, after) and set(stored.certificates) <= set(after["certificates"])


def _stored_secret(stored: SsoConnection | None, issuer: str) -> str:
    """Return the stored secret, which is sent only to the issuer that it was entered for. Raises InvalidValue."""
    if stored is None or stored.protocol != Protocol.OIDC:
        raise InvalidValue("client_secret", "needs the client secret")
    if stored.issuer != issuer:
        raise InvalidValue("client_secret", "must be entered again: a stored secret is sent only to its issuer")
    return client_secret_of(stored)


def need_another_way_in(connection: SsoConnection) -> None:
    """Raise SsoError if owners sign in by this connection only. The caller holds the tenant."""
    if connection.enabled:
        _need_owner_with_own_means(connection.tenant_id)


def _need_owner_with_own_means(tenant_id: str) -> None:
    if not has_owner_with_own_means(tenant_id):
        raise SsoError(
            "No owner could sign in without single sign-on. First give an account with a password, a passkey or a "
            "confirmed e-mail address the role owner."
        )


def _delete(connection: SsoConnection, by: User) -> None:
    SocialAccount.objects.filter(provider=connection.id).delete()
    before = {"issuer": connection.issuer}
    record(tenant=connection.tenant_id, by=by, action="sso.removed", target=connection, before=before)
    SsoConnection.objects.filter(id=connection.id).delete()


def _stop_requiring(tenant: Tenant, by: User) -> None:
    """Without the connection, a requirement would lock the members out."""
    _require(tenant, by, required=False)


def _require(tenant: Tenant, by: User, *, required: bool) -> None:
    tenant.refresh_from_db(fields=["require_sso"])
    before, after = {"require_sso": tenant.require_sso}, {"require_sso": required}
    record(tenant=tenant, by=by, action="tenant.changed", target=tenant, before=before, after=after)
    Tenant.objects.filter(id=tenant.id).update(require_sso=required)
    tenant.require_sso = required


def _place(connection: SsoConnection) -> str:
    """Return the location to which the client secret is bound (dataplane.tables.sealed)."""
    return f"{connection.tenant_id}/{connection.id}/client-secret"
