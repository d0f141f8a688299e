"""Bodies of the API: the single sign-on of a tenant and its e-mail domains."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mgmt.models import Membership, SsoConnection, SsoDomain
from mgmt.sso.domain_records import record_name
from mgmt.sso.saml.metadata import facts_of_certificate
from mgmt.sso.services.connections import acs_url_of, entity_id_of, redirect_uri_of, sign_in_url_of

_ROLES: Final = [choice for choice in Membership.Role.choices if choice[0] != Membership.Role.OWNER]


class SsoDomainOut(serializers.Serializer[Any]):
    """An e-mail domain of a tenant, with the DNS record that verifies it."""

    domain = serializers.CharField()
    record_name = serializers.SerializerMethodField(help_text="Name of the TXT record that verifies the domain.")
    record_value = serializers.CharField(source="token", help_text="Value of the TXT record.")
    verified_at = serializers.DateTimeField(allow_null=True, help_text="Null: not verified.")

    def get_record_name(self, row: SsoDomain) -> str:
        """Return the name of the record."""
        return record_name(row.domain)


class SsoDomainIn(serializers.Serializer[Any]):
    """A domain to add."""

    domain = serializers.CharField(max_length=254)


class SsoIn(serializers.Serializer[Any]):
    """Settings of the single sign-on of a tenant. Fields of the other protocol are ignored."""

    protocol = serializers.ChoiceField(
        SsoConnection.Protocol.choices,
        default=SsoConnection.Protocol.OIDC,
        help_text="`oidc` is OpenID Connect, `saml` is SAML 2.0.",
    )
    issuer = serializers.CharField(
        max_length=300,
        required=False,
        default="",
        allow_blank=True,
        help_text="OpenID Connect: issuer URL of the provider.",
    )
    client_id = serializers.CharField(
        max_length=191,
        required=False,
        default="",
        allow_blank=True,
        help_text="OpenID Connect: client ID of the application at the provider.",
    )
    client_secret = serializers.CharField(
        max_length=1_000, required=False, default="", allow_blank=True, help_text="Leave it out to keep the stored one."
    )
    metadata_url = serializers.CharField(
        max_length=1_000,
        required=False,
        default="",
        allow_blank=True,
        help_text="SAML: address of the provider's metadata, which is read again once a day.",
    )
    metadata_xml = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="SAML: text of the provider's metadata. Leave out both to keep the stored metadata.",
    )
    subject_attribute = serializers.CharField(
        max_length=200,
        required=False,
        default="",
        allow_blank=True,
        help_text="SAML: attribute that identifies a person for ever; empty: the NameID, which has to be persistent.",
    )
    email_attribute = serializers.CharField(
        max_length=200,
        required=False,
        default="",
        allow_blank=True,
        help_text="SAML: attribute with the e-mail address; empty: the usual names, such as `email` and `mail`.",
    )
    trusts_email = serializers.BooleanField(
        default=False,
        help_text="SAML: true if the provider sends verified addresses only, and its users cannot enter any.",
    )
    idp_initiated = serializers.BooleanField(
        default=False,
        help_text="SAML: true if the provider may start a sign-in, such as from its list of applications.",
    )
    enabled = serializers.BooleanField(
        default=False, help_text="True: people can sign in by it. The provider is tested first."
    )
    join_policy = serializers.ChoiceField(
        SsoConnection.JoinPolicy.choices,
        default=SsoConnection.JoinPolicy.ANYONE,
        help_text="`anyone` makes a member of each person whom the provider signs in; `invited` needs an invitation.",
    )
    default_role = serializers.ChoiceField(
        _ROLES, default=Membership.Role.VIEWER, help_text="Role of people who join without an invitation."
    )


class SsoCertificateOut(serializers.Serializer[Any]):
    """A certificate with which a SAML provider signs."""

    fingerprint = serializers.CharField(help_text="SHA-256 of the certificate.")
    expires_at = serializers.DateTimeField(help_text="End of its validity, which is shown only: its key keeps working.")


class SsoOut(serializers.Serializer[Any]):
    """Single sign-on of a tenant. The client secret is never returned."""

    protocol = serializers.ChoiceField(SsoConnection.Protocol.choices, help_text="`oidc` or `saml`.")
    issuer = serializers.CharField(help_text="Issuer URL of the provider; with SAML, its entity ID.")
    client_id = serializers.CharField(help_text="Client ID of the application at the provider; with SAML, empty.")
    metadata_url = serializers.CharField(help_text="SAML: address of the provider's metadata; empty: it was pasted.")
    metadata_valid_until = serializers.DateTimeField(
        allow_null=True, help_text="SAML: end of the metadata's validity; nobody signs in after it. Null: none."
    )
    sso_url = serializers.CharField(help_text="SAML: address at the provider to which sign-ins are sent.")
    certificates = serializers.SerializerMethodField(help_text="SAML: certificates with which the provider signs.")
    subject_attribute = serializers.CharField(help_text="SAML: attribute that identifies a person; empty: the NameID.")
    email_attribute = serializers.CharField(help_text="SAML: attribute with the e-mail address; empty: usual names.")
    trusts_email = serializers.BooleanField(help_text="SAML: true if addresses of the provider count as verified.")
    idp_initiated = serializers.BooleanField(help_text="SAML: true if the provider may start a sign-in.")
    enabled = serializers.BooleanField(help_text="True if people can sign in by it.")
    join_policy = serializers.ChoiceField(
        SsoConnection.JoinPolicy.choices, help_text="Who becomes a member at the first sign-in."
    )
    default_role = serializers.ChoiceField(_ROLES, help_text="Role of people who join without an invitation.")
    require_sso = serializers.BooleanField(
        source="tenant.require_sso", help_text="True if members other than owners need single sign-on."
    )
    redirect_uri = serializers.SerializerMethodField(help_text="OpenID Connect: redirect URI to register.")
    entity_id = serializers.SerializerMethodField(
        help_text="SAML: entity ID (audience) to register, at which Penstock's metadata is."
    )
    acs_url = serializers.SerializerMethodField(help_text="SAML: assertion consumer service (ACS URL) to register.")
    sign_in_url = serializers.SerializerMethodField(help_text="Address at which people of the tenant sign in.")

    @extend_schema_field(SsoCertificateOut(many=True))  # type: ignore[untyped-decorator]  # drf-spectacular's is not typed
    def get_certificates(self, row: SsoConnection) -> list[dict[str, Any]]:
        """Return the facts about each certificate."""
        facts = [facts_of_certificate(one) for one in row.certificates]
        return [dict(SsoCertificateOut(one._asdict()).data) for one in facts]

    def get_redirect_uri(self, row: SsoConnection) -> str:
        """Return the address of the callback."""
        return redirect_uri_of(row.tenant)

    def get_entity_id(self, row: SsoConnection) -> str:
        """Return the entity ID of the tenant's service."""
        return entity_id_of(row.tenant_id)

    def get_acs_url(self, row: SsoConnection) -> str:
        """Return the address for responses."""
        return acs_url_of(row.tenant_id)

    def get_sign_in_url(self, row: SsoConnection) -> str:
        """Return the address of the sign-in."""
        return sign_in_url_of(row.tenant)


class RequireSsoIn(serializers.Serializer[Any]):
    """Requirement of single sign-on."""

    require_sso = serializers.BooleanField(help_text="True: members other than owners need single sign-on.")
