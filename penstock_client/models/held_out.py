from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="HeldOut")


@_attrs_define
class HeldOut:
    """A held message. Its body is kept until it is released, or for the retention time of the topic.

    Attributes:
        id (int): Number of the held message.
        destination (str): Name of the destination in the spec.
        message_id (str): Id of the message, a TimeUuid. Requests carry it as `webhook-id`.
        key (str): Key of the message; empty if it has none.
        at (datetime.datetime): Time at which it was held.
    """

    id: int
    destination: str
    message_id: str
    key: str
    at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        destination = self.destination

        message_id = self.message_id

        key = self.key

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "destination": destination,
                "message_id": message_id,
                "key": key,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        destination = d.pop("destination")

        message_id = d.pop("message_id")

        key = d.pop("key")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        held_out = cls(
            id=id,
            destination=destination,
            message_id=message_id,
            key=key,
            at=at,
        )

        held_out.additional_properties = d
        return held_out

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
