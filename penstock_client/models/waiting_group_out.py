from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="WaitingGroupOut")


@_attrs_define
class WaitingGroupOut:
    """Dead letters or held messages of one destination and cause that no move has taken.

    Attributes:
        kind (str): * `dead` - Dead
            * `held` - Held
        destination (str): Empty for messages that wait or ended before the route.
        cause (str): Empty for held messages.
        count (int): Number of messages.
        oldest (datetime.datetime): Minute in which the oldest of them became dead or held.
    """

    kind: str
    destination: str
    cause: str
    count: int
    oldest: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        destination = self.destination

        cause = self.cause

        count = self.count

        oldest = self.oldest.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "destination": destination,
                "cause": cause,
                "count": count,
                "oldest": oldest,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        destination = d.pop("destination")

        cause = d.pop("cause")

        count = d.pop("count")

        oldest = datetime.datetime.fromisoformat(d.pop("oldest"))

        waiting_group_out = cls(
            kind=kind,
            destination=destination,
            cause=cause,
            count=count,
            oldest=oldest,
        )

        waiting_group_out.additional_properties = d
        return waiting_group_out

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
