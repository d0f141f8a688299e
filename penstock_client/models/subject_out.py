from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="SubjectOut")


@_attrs_define
class SubjectOut:
    """Subject of the schema registry.

    Attributes:
        id (str): Id of the subject.
        tenant (str): Id of the tenant.
        name (str): Name of the subject; the wire API uses it, too.
        type_ (None | str): Null before the first version.
        versions (int): Number of versions.
        newest_version (int | None): Number of the newest version; null if there is none.
        compatibility (str): * `NONE` - NONE
            * `BACKWARD` - BACKWARD
            * `BACKWARD_TRANSITIVE` - BACKWARD_TRANSITIVE
            * `FORWARD` - FORWARD
            * `FORWARD_TRANSITIVE` - FORWARD_TRANSITIVE
            * `FULL` - FULL
            * `FULL_TRANSITIVE` - FULL_TRANSITIVE
        own_compatibility (bool): False if the level is the tenant's default.
        owner (str): Owner of the subject, for people: a team or an address.
        created_at (datetime.datetime): Time of creation.
        deprecated_at (datetime.datetime | None): Time of the deprecation; null if it is not deprecated.
    """

    id: str
    tenant: str
    name: str
    type_: None | str
    versions: int
    newest_version: int | None
    compatibility: str
    own_compatibility: bool
    owner: str
    created_at: datetime.datetime
    deprecated_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        tenant = self.tenant

        name = self.name

        type_: None | str
        type_ = self.type_

        versions = self.versions

        newest_version: int | None
        newest_version = self.newest_version

        compatibility = self.compatibility

        own_compatibility = self.own_compatibility

        owner = self.owner

        created_at = self.created_at.isoformat()

        deprecated_at: None | str
        if isinstance(self.deprecated_at, datetime.datetime):
            deprecated_at = self.deprecated_at.isoformat()
        else:
            deprecated_at = self.deprecated_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "tenant": tenant,
                "name": name,
                "type": type_,
                "versions": versions,
                "newest_version": newest_version,
                "compatibility": compatibility,
                "own_compatibility": own_compatibility,
                "owner": owner,
                "created_at": created_at,
                "deprecated_at": deprecated_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        tenant = d.pop("tenant")

        name = d.pop("name")

        def _parse_type_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        type_ = _parse_type_(d.pop("type"))

        versions = d.pop("versions")

        def _parse_newest_version(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        newest_version = _parse_newest_version(d.pop("newest_version"))

        compatibility = d.pop("compatibility")

        own_compatibility = d.pop("own_compatibility")

        owner = d.pop("owner")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_deprecated_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deprecated_at_type_0 = datetime.datetime.fromisoformat(data)

                return deprecated_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        deprecated_at = _parse_deprecated_at(d.pop("deprecated_at"))

        subject_out = cls(
            id=id,
            tenant=tenant,
            name=name,
            type_=type_,
            versions=versions,
            newest_version=newest_version,
            compatibility=compatibility,
            own_compatibility=own_compatibility,
            owner=owner,
            created_at=created_at,
            deprecated_at=deprecated_at,
        )

        subject_out.additional_properties = d
        return subject_out

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
