from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset


T = TypeVar("T", bound="PatchedPipeChangeIn")


@_attrs_define
class PatchedPipeChangeIn:
    """Change of a pipe's name, or of the loss above which you are alerted.

    Attributes:
        name (str | Unset): Name.
        loss_threshold_percent (float | Unset): Loss of a minute in percent; 0: any lost message.
    """

    name: str | Unset = UNSET
    loss_threshold_percent: float | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        loss_threshold_percent = self.loss_threshold_percent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if loss_threshold_percent is not UNSET:
            field_dict["loss_threshold_percent"] = loss_threshold_percent

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name", UNSET)

        loss_threshold_percent = d.pop("loss_threshold_percent", UNSET)

        patched_pipe_change_in = cls(
            name=name,
            loss_threshold_percent=loss_threshold_percent,
        )

        patched_pipe_change_in.additional_properties = d
        return patched_pipe_change_in

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
