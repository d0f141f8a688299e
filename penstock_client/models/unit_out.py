from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="UnitOut")


@_attrs_define
class UnitOut:
    """A unit that the ramping revision processed, and its bin now.

    Attributes:
        position (str): `generation-partition-offset` of the ingest record.
        child (int): Number of the part of an exploded event, from 0; 0 for an event that was not exploded.
        destination (str): Empty: no destination was chosen yet.
        bin_ (str): * `delivered` - delivered
            * `filtered` - filtered
            * `duplicate` - duplicate
            * `dead` - dead
            * `cancelled` - cancelled
            * `held` - held
            * `retrying` - retrying
            * `queued` - queued
            * `lost` - lost
    """

    position: str
    child: int
    destination: str
    bin_: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        position = self.position

        child = self.child

        destination = self.destination

        bin_ = self.bin_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "position": position,
                "child": child,
                "destination": destination,
                "bin": bin_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        position = d.pop("position")

        child = d.pop("child")

        destination = d.pop("destination")

        bin_ = d.pop("bin")

        unit_out = cls(
            position=position,
            child=child,
            destination=destination,
            bin_=bin_,
        )

        unit_out.additional_properties = d
        return unit_out

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
