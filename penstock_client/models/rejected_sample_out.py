from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="RejectedSampleOut")


@_attrs_define
class RejectedSampleOut:
    """A rejected event.

    Attributes:
        at (datetime.datetime): Time of the rejection.
        size_bytes (int): Size in bytes.
        body (str): Shortened, and without the values that the pipe masks; empty if it cannot be shown.
    """

    at: datetime.datetime
    size_bytes: int
    body: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        size_bytes = self.size_bytes

        body = self.body

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "size_bytes": size_bytes,
                "body": body,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        size_bytes = d.pop("size_bytes")

        body = d.pop("body")

        rejected_sample_out = cls(
            at=at,
            size_bytes=size_bytes,
            body=body,
        )

        rejected_sample_out.additional_properties = d
        return rejected_sample_out

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
