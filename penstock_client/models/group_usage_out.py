from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="GroupUsageOut")


@_attrs_define
class GroupUsageOut:
    """CPU time of the processes of one kind in a cell.

    Attributes:
        cell (str): Empty for ingest, which serves all cells.
        kind (str): Kind of process.
        cpu_us (int): CPU time in microseconds.
        idle_us (int): Part of `cpu_us` that belongs to no pipe.
    """

    cell: str
    kind: str
    cpu_us: int
    idle_us: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cell = self.cell

        kind = self.kind

        cpu_us = self.cpu_us

        idle_us = self.idle_us

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "cell": cell,
                "kind": kind,
                "cpu_us": cpu_us,
                "idle_us": idle_us,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cell = d.pop("cell")

        kind = d.pop("kind")

        cpu_us = d.pop("cpu_us")

        idle_us = d.pop("idle_us")

        group_usage_out = cls(
            cell=cell,
            kind=kind,
            cpu_us=cpu_us,
            idle_us=idle_us,
        )

        group_usage_out.additional_properties = d
        return group_usage_out

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
