from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="ServiceAccountOut")


@_attrs_define
class ServiceAccountOut:
    """Service account: a user for programs, which never signs in.

    Attributes:
        id (str): Id.
        name (str): Name.
        username (str): As it is shown as an author.
        role (str): * `viewer` - Viewer
            * `operator` - Operator
            * `editor` - Editor
            * `owner` - Owner
        is_active (bool): False while it is disabled: its tokens are refused.
        created_at (datetime.datetime): Time of creation.
        created_by (None | str | Unset): User who created it; null if the user was deleted.
    """

    id: str
    name: str
    username: str
    role: str
    is_active: bool
    created_at: datetime.datetime
    created_by: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        name = self.name

        username = self.username

        role = self.role

        is_active = self.is_active

        created_at = self.created_at.isoformat()

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
                "username": username,
                "role": role,
                "is_active": is_active,
                "created_at": created_at,
            }
        )
        if created_by is not UNSET:
            field_dict["created_by"] = created_by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        username = d.pop("username")

        role = d.pop("role")

        is_active = d.pop("is_active")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_created_by(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        created_by = _parse_created_by(d.pop("created_by", UNSET))

        service_account_out = cls(
            id=id,
            name=name,
            username=username,
            role=role,
            is_active=is_active,
            created_at=created_at,
            created_by=created_by,
        )

        service_account_out.additional_properties = d
        return service_account_out

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
