from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="LeaseOut")


@_attrs_define
class LeaseOut:
    """Lease of the controller that is changing the cell.

    Attributes:
        holder (str): * `provision` - provisioning
            * `deploy` - deploying
            * `scale` - scaling
        what (str): Resource that is leased.
        taken_at (datetime.datetime): Time at which the lease was taken.
        until (datetime.datetime): Time at which the lease ends unless it is renewed.
    """

    holder: str
    what: str
    taken_at: datetime.datetime
    until: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        holder = self.holder

        what = self.what

        taken_at = self.taken_at.isoformat()

        until = self.until.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "holder": holder,
                "what": what,
                "taken_at": taken_at,
                "until": until,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        holder = d.pop("holder")

        what = d.pop("what")

        taken_at = datetime.datetime.fromisoformat(d.pop("taken_at"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        lease_out = cls(
            holder=holder,
            what=what,
            taken_at=taken_at,
            until=until,
        )

        lease_out.additional_properties = d
        return lease_out

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
