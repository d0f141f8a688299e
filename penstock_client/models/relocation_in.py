from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="RelocationIn")


@_attrs_define
class RelocationIn:
    """Migration of a pipe to start.

    Attributes:
        pipe (str): Id of the pipe to migrate.
        cell (str): Id of the target cell.
        reason (str): Kept in the audit.
    """

    pipe: str
    cell: str
    reason: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pipe = self.pipe

        cell = self.cell

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "cell": cell,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pipe = d.pop("pipe")

        cell = d.pop("cell")

        reason = d.pop("reason")

        relocation_in = cls(
            pipe=pipe,
            cell=cell,
            reason=reason,
        )

        relocation_in.additional_properties = d
        return relocation_in

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
