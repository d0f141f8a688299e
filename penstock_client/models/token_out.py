from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="TokenOut")


@_attrs_define
class TokenOut:
    """API token, without its text, which is not stored.

    Attributes:
        id (str): Id.
        name (str): Name.
        prefix (str): Its first characters.
        scope (str): * `read` - Read
            * `operate` - Operate
            * `publish` - Publish
            * `admin` - Admin
        pipe (None | str): The only pipe it reaches; null: all.
        user (str): User name of its person or service account.
        created_at (datetime.datetime): Time of creation.
        expires_at (datetime.datetime | None): Null: never.
        last_used_at (datetime.datetime | None): To the minute; null: never.
        last_used_from (str): Address of that request; empty: never used.
        revoked_at (datetime.datetime | None): Time of the revocation; null while it can be used.
        service_account (None | str | Unset): Null if it is a person's.
        created_by (None | str | Unset): User who created it; null if the user was deleted.
    """

    id: str
    name: str
    prefix: str
    scope: str
    pipe: None | str
    user: str
    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    last_used_at: datetime.datetime | None
    last_used_from: str
    revoked_at: datetime.datetime | None
    service_account: None | str | Unset = UNSET
    created_by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        name = self.name

        prefix = self.prefix

        scope = self.scope

        pipe: None | str
        pipe = self.pipe

        user = self.user

        created_at = self.created_at.isoformat()

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        last_used_at: None | str
        if isinstance(self.last_used_at, datetime.datetime):
            last_used_at = self.last_used_at.isoformat()
        else:
            last_used_at = self.last_used_at

        last_used_from = self.last_used_from

        revoked_at: None | str
        if isinstance(self.revoked_at, datetime.datetime):
            revoked_at = self.revoked_at.isoformat()
        else:
            revoked_at = self.revoked_at

        service_account: None | str | Unset
        if isinstance(self.service_account, Unset):
            service_account = UNSET
        else:
            service_account = self.service_account

        created_by: None | str | Unset
        if isinstance(self.created_by, Unset):
            created_by = UNSET
        else:
            created_by = self.created_by

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "prefix": prefix,
                "scope": scope,
                "pipe": pipe,
                "user": user,
                "created_at": created_at,
                "expires_at": expires_at,
                "last_used_at": last_used_at,
                "last_used_from": last_used_from,
                "revoked_at": revoked_at,
            }
        )
        if service_account is not UNSET:
            field_dict["service_account"] = service_account
        if created_by is not UNSET:
            field_dict["created_by"] = created_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        prefix = d.pop("prefix")

        scope = d.pop("scope")

        def _parse_pipe(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        pipe = _parse_pipe(d.pop("pipe"))

        user = d.pop("user")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        def _parse_last_used_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_used_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_used_at = _parse_last_used_at(d.pop("last_used_at"))

        last_used_from = d.pop("last_used_from")

        def _parse_revoked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                revoked_at_type_0 = datetime.datetime.fromisoformat(data)

                return revoked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        revoked_at = _parse_revoked_at(d.pop("revoked_at"))

        def _parse_service_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        service_account = _parse_service_account(d.pop("service_account", UNSET))

        def _parse_created_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        created_by = _parse_created_by(d.pop("created_by", UNSET))

        token_out = cls(
            id=id,
            name=name,
            prefix=prefix,
            scope=scope,
            pipe=pipe,
            user=user,
            created_at=created_at,
            expires_at=expires_at,
            last_used_at=last_used_at,
            last_used_from=last_used_from,
            revoked_at=revoked_at,
            service_account=service_account,
            created_by=created_by,
        )

        token_out.additional_properties = d
        return token_out

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
