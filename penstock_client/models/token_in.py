from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="TokenIn")


@_attrs_define
class TokenIn:
    """API token to create.

    Attributes:
        name (str): The program that uses it, such as `GitHub Actions`.
        scope (str): * `read` - Read
            * `operate` - Operate
            * `publish` - Publish
            * `admin` - Admin
        pipe (None | str | Unset): Id of the only pipe it reaches. Default: all pipes, and what belongs to the tenant.
        service_account (None | str | Unset): Id of the service account whose token it is; owners only. Default: your
            own token.
        expires_in_days (int | None | Unset): Null: never, which only owners may choose. Default: 90.
    """

    name: str
    scope: str
    pipe: None | str | Unset = UNSET
    service_account: None | str | Unset = UNSET
    expires_in_days: int | None | Unset = 90
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        scope = self.scope

        pipe: None | str | Unset
        if isinstance(self.pipe, Unset):
            pipe = UNSET
        else:
            pipe = self.pipe

        service_account: None | str | Unset
        if isinstance(self.service_account, Unset):
            service_account = UNSET
        else:
            service_account = self.service_account

        expires_in_days: int | None | Unset
        if isinstance(self.expires_in_days, Unset):
            expires_in_days = UNSET
        else:
            expires_in_days = self.expires_in_days

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "scope": scope,
            }
        )
        if pipe is not UNSET:
            field_dict["pipe"] = pipe
        if service_account is not UNSET:
            field_dict["service_account"] = service_account
        if expires_in_days is not UNSET:
            field_dict["expires_in_days"] = expires_in_days

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        scope = d.pop("scope")

        def _parse_pipe(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        pipe = _parse_pipe(d.pop("pipe", UNSET))

        def _parse_service_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        service_account = _parse_service_account(d.pop("service_account", UNSET))

        def _parse_expires_in_days(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expires_in_days = _parse_expires_in_days(d.pop("expires_in_days", UNSET))

        token_in = cls(
            name=name,
            scope=scope,
            pipe=pipe,
            service_account=service_account,
            expires_in_days=expires_in_days,
        )

        token_in.additional_properties = d
        return token_in

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
