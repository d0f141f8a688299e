from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast


T = TypeVar("T", bound="KeyIn")


@_attrs_define
class KeyIn:
    """API key to create.

    Attributes:
        source (str): Name of a source of the pipe, whose events the key may send.
        label (str | Unset): Label of the key, for people; may be empty. Default: ''.
        expires_in_days (int | None | Unset): Default: never.
        use (str | Unset): * `key` - key
            * `url` - url Default: 'key'.
    """

    source: str
    label: str | Unset = ""
    expires_in_days: int | None | Unset = UNSET
    use: str | Unset = "key"
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        source = self.source

        label = self.label

        expires_in_days: int | None | Unset
        if isinstance(self.expires_in_days, Unset):
            expires_in_days = UNSET
        else:
            expires_in_days = self.expires_in_days

        use = self.use

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "source": source,
            }
        )
        if label is not UNSET:
            field_dict["label"] = label
        if expires_in_days is not UNSET:
            field_dict["expires_in_days"] = expires_in_days
        if use is not UNSET:
            field_dict["use"] = use

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        source = d.pop("source")

        label = d.pop("label", UNSET)

        def _parse_expires_in_days(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expires_in_days = _parse_expires_in_days(d.pop("expires_in_days", UNSET))

        use = d.pop("use", UNSET)

        key_in = cls(
            source=source,
            label=label,
            expires_in_days=expires_in_days,
            use=use,
        )

        key_in.additional_properties = d
        return key_in

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
