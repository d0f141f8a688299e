from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="SsoIn")


@_attrs_define
class SsoIn:
    """Settings of the single sign-on of a tenant. Fields of the other protocol are ignored.

    Attributes:
        protocol (str | Unset): * `oidc` - OpenID Connect
            * `saml` - SAML 2.0 Default: 'oidc'.
        issuer (str | Unset): OpenID Connect: issuer URL of the provider. Default: ''.
        client_id (str | Unset): OpenID Connect: client ID of the application at the provider. Default: ''.
        client_secret (str | Unset): Leave it out to keep the stored one. Default: ''.
        metadata_url (str | Unset): SAML: address of the provider's metadata, which is read again once a day. Default:
            ''.
        metadata_xml (str | Unset): SAML: text of the provider's metadata. Leave out both to keep the stored metadata.
            Default: ''.
        subject_attribute (str | Unset): SAML: attribute that identifies a person for ever; empty: the NameID, which has
            to be persistent. Default: ''.
        email_attribute (str | Unset): SAML: attribute with the e-mail address; empty: the usual names, such as `email`
            and `mail`. Default: ''.
        trusts_email (bool | Unset): SAML: true if the provider sends verified addresses only, and its users cannot
            enter any. Default: False.
        idp_initiated (bool | Unset): SAML: true if the provider may start a sign-in, such as from its list of
            applications. Default: False.
        enabled (bool | Unset): True: people can sign in by it. The provider is tested first. Default: False.
        join_policy (str | Unset): * `anyone` - Anyone
            * `invited` - Invited Default: 'anyone'.
        default_role (str | Unset): * `viewer` - Viewer
            * `operator` - Operator
            * `editor` - Editor Default: 'viewer'.
    """

    protocol: str | Unset = "oidc"
    issuer: str | Unset = ""
    client_id: str | Unset = ""
    client_secret: str | Unset = ""
    metadata_url: str | Unset = ""
    metadata_xml: str | Unset = ""
    subject_attribute: str | Unset = ""
    email_attribute: str | Unset = ""
    trusts_email: bool | Unset = False
    idp_initiated: bool | Unset = False
    enabled: bool | Unset = False
    join_policy: str | Unset = "anyone"
    default_role: str | Unset = "viewer"
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        protocol = self.protocol

        issuer = self.issuer

        client_id = self.client_id

        client_secret = self.client_secret

        metadata_url = self.metadata_url

        metadata_xml = self.metadata_xml

        subject_attribute = self.subject_attribute

        email_attribute = self.email_attribute

        trusts_email = self.trusts_email

        idp_initiated = self.idp_initiated

        enabled = self.enabled

        join_policy = self.join_policy

        default_role = self.default_role

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if protocol is not UNSET:
            field_dict["protocol"] = protocol
        if issuer is not UNSET:
            field_dict["issuer"] = issuer
        if client_id is not UNSET:
            field_dict["client_id"] = client_id
        if client_secret is not UNSET:
            field_dict["client_secret"] = client_secret
        if metadata_url is not UNSET:
            field_dict["metadata_url"] = metadata_url
        if metadata_xml is not UNSET:
            field_dict["metadata_xml"] = metadata_xml
        if subject_attribute is not UNSET:
            field_dict["subject_attribute"] = subject_attribute
        if email_attribute is not UNSET:
            field_dict["email_attribute"] = email_attribute
        if trusts_email is not UNSET:
            field_dict["trusts_email"] = trusts_email
        if idp_initiated is not UNSET:
            field_dict["idp_initiated"] = idp_initiated
        if enabled is not UNSET:
            field_dict["enabled"] = enabled
        if join_policy is not UNSET:
            field_dict["join_policy"] = join_policy
        if default_role is not UNSET:
            field_dict["default_role"] = default_role

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        protocol = d.pop("protocol", UNSET)

        issuer = d.pop("issuer", UNSET)

        client_id = d.pop("client_id", UNSET)

        client_secret = d.pop("client_secret", UNSET)

        metadata_url = d.pop("metadata_url", UNSET)

        metadata_xml = d.pop("metadata_xml", UNSET)

        subject_attribute = d.pop("subject_attribute", UNSET)

        email_attribute = d.pop("email_attribute", UNSET)

        trusts_email = d.pop("trusts_email", UNSET)

        idp_initiated = d.pop("idp_initiated", UNSET)

        enabled = d.pop("enabled", UNSET)

        join_policy = d.pop("join_policy", UNSET)

        default_role = d.pop("default_role", UNSET)

        sso_in = cls(
            protocol=protocol,
            issuer=issuer,
            client_id=client_id,
            client_secret=client_secret,
            metadata_url=metadata_url,
            metadata_xml=metadata_xml,
            subject_attribute=subject_attribute,
            email_attribute=email_attribute,
            trusts_email=trusts_email,
            idp_initiated=idp_initiated,
            enabled=enabled,
            join_policy=join_policy,
            default_role=default_role,
        )

        sso_in.additional_properties = d
        return sso_in

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
