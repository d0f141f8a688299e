from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.amount_out import AmountOut


T = TypeVar("T", bound="DayOut")


@_attrs_define
class DayOut:
    """Usage of a pipe on one day.

    Attributes:
        day (datetime.date): Day in UTC.
        amount (AmountOut): Events accepted, requests sent, and CPU used for them.
    """

    day: datetime.date
    amount: AmountOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.amount_out import AmountOut  # noqa: PLC0415

        day = self.day.isoformat()

        amount = self.amount.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "day": day,
                "amount": amount,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount_out import AmountOut  # noqa: PLC0415

        d = dict(src_dict)
        day = datetime.date.fromisoformat(d.pop("day"))

        amount = AmountOut.from_dict(d.pop("amount"))

        day_out = cls(
            day=day,
            amount=amount,
        )

        day_out.additional_properties = d
        return day_out

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
