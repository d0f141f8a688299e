from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="TableFeedOut")


@_attrs_define
class TableFeedOut:
    """A destination that writes the table.

    Attributes:
        pipe (str): Id of the pipe.
        pipe_name (str): Name of the pipe.
        destination (str): Name of the destination in the spec.
    """

    pipe: str
    pipe_name: str
    destination: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pipe = self.pipe

        pipe_name = self.pipe_name

        destination = self.destination

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "pipe_name": pipe_name,
                "destination": destination,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pipe = d.pop("pipe")

        pipe_name = d.pop("pipe_name")

        destination = d.pop("destination")

        table_feed_out = cls(
            pipe=pipe,
            pipe_name=pipe_name,
            destination=destination,
        )

        table_feed_out.additional_properties = d
        return table_feed_out

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
