from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="WaitingOut")


@_attrs_define
class WaitingOut:
    """Dead letters of one cause that can be redriven.

    Attributes:
        cause (str): Cause, one of a fixed list of codes.
        count (int): Number of messages.
        oldest (datetime.datetime): Time of the oldest message.
    """

    cause: str
    count: int
    oldest: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cause = self.cause

        count = self.count

        oldest = self.oldest.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "cause": cause,
                "count": count,
                "oldest": oldest,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cause = d.pop("cause")

        count = d.pop("count")

        oldest = datetime.datetime.fromisoformat(d.pop("oldest"))

        waiting_out = cls(
            cause=cause,
            count=count,
            oldest=oldest,
        )

        waiting_out.additional_properties = d
        return waiting_out

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
