from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="IgnoredFieldOut")


@_attrs_define
class IgnoredFieldOut:
    """A numeric field whose drift opens no alert.

    Attributes:
        id (str): Id of the ignored field.
        source (str): Name of the source in the spec.
        field (str): Path of the field, names joined by dots.
        by (str): User who ignores it.
        at (datetime.datetime): Time since which it is ignored.
    """

    id: str
    source: str
    field: str
    by: str
    at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        source = self.source

        field = self.field

        by = self.by

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "source": source,
                "field": field,
                "by": by,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        source = d.pop("source")

        field = d.pop("field")

        by = d.pop("by")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        ignored_field_out = cls(
            id=id,
            source=source,
            field=field,
            by=by,
            at=at,
        )

        ignored_field_out.additional_properties = d
        return ignored_field_out

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
