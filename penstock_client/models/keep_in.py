from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="KeepIn")


@_attrs_define
class KeepIn:
    """Dedication of a cell to one tenant, and its sleep.

    Attributes:
        tenant (None | str): Only this tenant's pipes are placed on the cell, and on no other. Null: pipes of all
            tenants.
        sleeps_after_s (int | None | Unset): 60 to 3600 seconds without work. Null: never.
    """

    tenant: None | str
    sleeps_after_s: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        tenant: None | str
        tenant = self.tenant

        sleeps_after_s: int | None | Unset
        if isinstance(self.sleeps_after_s, Unset):
            sleeps_after_s = UNSET
        else:
            sleeps_after_s = self.sleeps_after_s

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tenant": tenant,
            }
        )
        if sleeps_after_s is not UNSET:
            field_dict["sleeps_after_s"] = sleeps_after_s

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_tenant(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        tenant = _parse_tenant(d.pop("tenant"))

        def _parse_sleeps_after_s(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        sleeps_after_s = _parse_sleeps_after_s(d.pop("sleeps_after_s", UNSET))

        keep_in = cls(
            tenant=tenant,
            sleeps_after_s=sleeps_after_s,
        )

        keep_in.additional_properties = d
        return keep_in

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
