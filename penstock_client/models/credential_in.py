from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="CredentialIn")


@_attrs_define
class CredentialIn:
    """Secret of a destination's authentication; the required fields depend on its kind.

    Attributes:
        value (str | Unset): Value of the header, for `header`, or token, for `bearer`.
        password (str | Unset): Password, for `basic`, and for a destination of type `postgres`.
        client_secret (str | Unset): Secret of the client, for `oauth2`.
        certificate (str | Unset): PEM.
        key (str | Unset): PEM.
        secret_access_key (str | Unset): Secret of the access key, for a destination of type `s3`.
    """

    value: str | Unset = UNSET
    password: str | Unset = UNSET
    client_secret: str | Unset = UNSET
    certificate: str | Unset = UNSET
    key: str | Unset = UNSET
    secret_access_key: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        value = self.value

        password = self.password

        client_secret = self.client_secret

        certificate = self.certificate

        key = self.key

        secret_access_key = self.secret_access_key

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if value is not UNSET:
            field_dict["value"] = value
        if password is not UNSET:
            field_dict["password"] = password
        if client_secret is not UNSET:
            field_dict["client_secret"] = client_secret
        if certificate is not UNSET:
            field_dict["certificate"] = certificate
        if key is not UNSET:
            field_dict["key"] = key
        if secret_access_key is not UNSET:
            field_dict["secret_access_key"] = secret_access_key

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        value = d.pop("value", UNSET)

        password = d.pop("password", UNSET)

        client_secret = d.pop("client_secret", UNSET)

        certificate = d.pop("certificate", UNSET)

        key = d.pop("key", UNSET)

        secret_access_key = d.pop("secret_access_key", UNSET)

        credential_in = cls(
            value=value,
            password=password,
            client_secret=client_secret,
            certificate=certificate,
            key=key,
            secret_access_key=secret_access_key,
        )

        credential_in.additional_properties = d
        return credential_in

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
