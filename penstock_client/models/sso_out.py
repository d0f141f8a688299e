from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.sso_certificate_out import SsoCertificateOut


T = TypeVar("T", bound="SsoOut")


@_attrs_define
class SsoOut:
    """Single sign-on of a tenant. The client secret is never returned.

    Attributes:
        protocol (str): * `oidc` - OpenID Connect
            * `saml` - SAML 2.0
        issuer (str): Issuer URL of the provider; with SAML, its entity ID.
        client_id (str): Client ID of the application at the provider; with SAML, empty.
        metadata_url (str): SAML: address of the provider's metadata; empty: it was pasted.
        metadata_valid_until (datetime.datetime | None): SAML: end of the metadata's validity; nobody signs in after it.
            Null: none.
        sso_url (str): SAML: address at the provider to which sign-ins are sent.
        certificates (list[SsoCertificateOut]): SAML: certificates with which the provider signs.
        subject_attribute (str): SAML: attribute that identifies a person; empty: the NameID.
        email_attribute (str): SAML: attribute with the e-mail address; empty: usual names.
        trusts_email (bool): SAML: true if addresses of the provider count as verified.
        idp_initiated (bool): SAML: true if the provider may start a sign-in.
        enabled (bool): True if people can sign in by it.
        join_policy (str): * `anyone` - Anyone
            * `invited` - Invited
        default_role (str): * `viewer` - Viewer
            * `operator` - Operator
            * `editor` - Editor
        require_sso (bool): True if members other than owners need single sign-on.
        redirect_uri (str): OpenID Connect: redirect URI to register.
        entity_id (str): SAML: entity ID (audience) to register, at which Penstock's metadata is.
        acs_url (str): SAML: assertion consumer service (ACS URL) to register.
        sign_in_url (str): Address at which people of the tenant sign in.
    """

    protocol: str
    issuer: str
    client_id: str
    metadata_url: str
    metadata_valid_until: datetime.datetime | None
    sso_url: str
    certificates: list[SsoCertificateOut]
    subject_attribute: str
    email_attribute: str
    trusts_email: bool
    idp_initiated: bool
    enabled: bool
    join_policy: str
    default_role: str
    require_sso: bool
    redirect_uri: str
    entity_id: str
    acs_url: str
    sign_in_url: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.sso_certificate_out import SsoCertificateOut  # noqa: PLC0415

        protocol = self.protocol

        issuer = self.issuer

        client_id = self.client_id

        metadata_url = self.metadata_url

        metadata_valid_until: None | str
        if isinstance(self.metadata_valid_until, datetime.datetime):
            metadata_valid_until = self.metadata_valid_until.isoformat()
        else:
            metadata_valid_until = self.metadata_valid_until

        sso_url = self.sso_url

        certificates = []
        for certificates_item_data in self.certificates:
            certificates_item = certificates_item_data.to_dict()
            certificates.append(certificates_item)

        subject_attribute = self.subject_attribute

        email_attribute = self.email_attribute

        trusts_email = self.trusts_email

        idp_initiated = self.idp_initiated

        enabled = self.enabled

        join_policy = self.join_policy

        default_role = self.default_role

        require_sso = self.require_sso

        redirect_uri = self.redirect_uri

        entity_id = self.entity_id

        acs_url = self.acs_url

        sign_in_url = self.sign_in_url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "protocol": protocol,
                "issuer": issuer,
                "client_id": client_id,
                "metadata_url": metadata_url,
                "metadata_valid_until": metadata_valid_until,
                "sso_url": sso_url,
                "certificates": certificates,
                "subject_attribute": subject_attribute,
                "email_attribute": email_attribute,
                "trusts_email": trusts_email,
                "idp_initiated": idp_initiated,
                "enabled": enabled,
                "join_policy": join_policy,
                "default_role": default_role,
                "require_sso": require_sso,
                "redirect_uri": redirect_uri,
                "entity_id": entity_id,
                "acs_url": acs_url,
                "sign_in_url": sign_in_url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sso_certificate_out import SsoCertificateOut  # noqa: PLC0415

        d = dict(src_dict)
        protocol = d.pop("protocol")

        issuer = d.pop("issuer")

        client_id = d.pop("client_id")

        metadata_url = d.pop("metadata_url")

        def _parse_metadata_valid_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                metadata_valid_until_type_0 = datetime.datetime.fromisoformat(data)

                return metadata_valid_until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        metadata_valid_until = _parse_metadata_valid_until(d.pop("metadata_valid_until"))

        sso_url = d.pop("sso_url")

        certificates = []
        _certificates = d.pop("certificates")
        for certificates_item_data in _certificates:
            certificates_item = SsoCertificateOut.from_dict(certificates_item_data)

            certificates.append(certificates_item)

        subject_attribute = d.pop("subject_attribute")

        email_attribute = d.pop("email_attribute")

        trusts_email = d.pop("trusts_email")

        idp_initiated = d.pop("idp_initiated")

        enabled = d.pop("enabled")

        join_policy = d.pop("join_policy")

        default_role = d.pop("default_role")

        require_sso = d.pop("require_sso")

        redirect_uri = d.pop("redirect_uri")

        entity_id = d.pop("entity_id")

        acs_url = d.pop("acs_url")

        sign_in_url = d.pop("sign_in_url")

        sso_out = cls(
            protocol=protocol,
            issuer=issuer,
            client_id=client_id,
            metadata_url=metadata_url,
            metadata_valid_until=metadata_valid_until,
            sso_url=sso_url,
            certificates=certificates,
            subject_attribute=subject_attribute,
            email_attribute=email_attribute,
            trusts_email=trusts_email,
            idp_initiated=idp_initiated,
            enabled=enabled,
            join_policy=join_policy,
            default_role=default_role,
            require_sso=require_sso,
            redirect_uri=redirect_uri,
            entity_id=entity_id,
            acs_url=acs_url,
            sign_in_url=sign_in_url,
        )

        sso_out.additional_properties = d
        return sso_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
