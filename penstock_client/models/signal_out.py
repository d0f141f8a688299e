from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="SignalOut")


@_attrs_define
class SignalOut:
    """A signal and its usual range; a field is empty while there is too little history.

    Attributes:
        name (str): Name.
        now (str): Value in the newest five minutes that were judged.
        usual (str): Range that contains eight of ten blocks of five minutes.
        told (str): Values that become a finding if they occur in two blocks in a row.
        basis (str): Hours with which the value is compared.
    """

    name: str
    now: str
    usual: str
    told: str
    basis: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        now = self.now

        usual = self.usual

        told = self.told

        basis = self.basis

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "now": now,
                "usual": usual,
                "told": told,
                "basis": basis,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        now = d.pop("now")

        usual = d.pop("usual")

        told = d.pop("told")

        basis = d.pop("basis")

        signal_out = cls(
            name=name,
            now=now,
            usual=usual,
            told=told,
            basis=basis,
        )

        signal_out.additional_properties = d
        return signal_out

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
