from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="ShadowValueOut")


@_attrs_define
class ShadowValueOut:
    """Values of a field that differ in one message, as JSON; null if the field is missing. Masked ones are masked.

    Attributes:
        path (str): Empty for the whole body, if one of both is not an object.
        live (None | str): Value of the live revision; null if the field is absent.
        draft (None | str): Value of the draft; null if the field is absent.
    """

    path: str
    live: None | str
    draft: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        live: None | str
        live = self.live

        draft: None | str
        draft = self.draft

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "path": path,
                "live": live,
                "draft": draft,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        def _parse_live(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        live = _parse_live(d.pop("live"))

        def _parse_draft(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        draft = _parse_draft(d.pop("draft"))

        shadow_value_out = cls(
            path=path,
            live=live,
            draft=draft,
        )

        shadow_value_out.additional_properties = d
        return shadow_value_out

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
