from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="PartOut")


@_attrs_define
class PartOut:
    """One slice of the time from ingest to the destination's response.

    Attributes:
        name (str): Name of the part of the time.
        mean_us (int): The means of all slices add up to `mean_us` of the whole.
        p95_us (int): Time that the slice adds at the 95th percentile of the whole; these add up to it.
        share (float): Share of the whole at its 95th percentile, 0 to 1.
    """

    name: str
    mean_us: int
    p95_us: int
    share: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        mean_us = self.mean_us

        p95_us = self.p95_us

        share = self.share

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "mean_us": mean_us,
                "p95_us": p95_us,
                "share": share,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        mean_us = d.pop("mean_us")

        p95_us = d.pop("p95_us")

        share = d.pop("share")

        part_out = cls(
            name=name,
            mean_us=mean_us,
            p95_us=p95_us,
            share=share,
        )

        part_out.additional_properties = d
        return part_out

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
