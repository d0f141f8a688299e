from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.event_type_out import EventTypeOut


T = TypeVar("T", bound="EventTypesOut")


@_attrs_define
class EventTypesOut:
    """Event types of a source.

    Attributes:
        version (int): Grows with each change; 0 if they were never set.
        type_from (str): Place of an event's type: `field:<path>`, a field of the event such as `field:meta.kind`;
            `header:<name>`, a header of the request or Kafka record, where `ce-type` is the attribute of a CloudEvent; or
            empty, if the source has one event type.
        types (list[EventTypeOut]): Event types of the source.
    """

    version: int
    type_from: str
    types: list[EventTypeOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.event_type_out import EventTypeOut  # noqa: PLC0415

        version = self.version

        type_from = self.type_from

        types = []
        for types_item_data in self.types:
            types_item = types_item_data.to_dict()
            types.append(types_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "type_from": type_from,
                "types": types,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.event_type_out import EventTypeOut  # noqa: PLC0415

        d = dict(src_dict)
        version = d.pop("version")

        type_from = d.pop("type_from")

        types = []
        _types = d.pop("types")
        for types_item_data in _types:
            types_item = EventTypeOut.from_dict(types_item_data)

            types.append(types_item)

        event_types_out = cls(
            version=version,
            type_from=type_from,
            types=types,
        )

        event_types_out.additional_properties = d
        return event_types_out

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
