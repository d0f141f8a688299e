from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.minute_unit_out import MinuteUnitOut


T = TypeVar("T", bound="MinuteUnitsOut")


@_attrs_define
class MinuteUnitsOut:
    """Messages of one minute in one bin.

    Attributes:
        minute (int): Number of the minute since 1970-01-01T00:00Z.
        bin_ (str): Bin of the ledger that holds the messages.
        results (list[MinuteUnitOut]): Rows of this page.
        more (int): Number of further messages that are not listed.
    """

    minute: int
    bin_: str
    results: list[MinuteUnitOut]
    more: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.minute_unit_out import MinuteUnitOut  # noqa: PLC0415

        minute = self.minute

        bin_ = self.bin_

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        more = self.more

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "minute": minute,
                "bin": bin_,
                "results": results,
                "more": more,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.minute_unit_out import MinuteUnitOut  # noqa: PLC0415

        d = dict(src_dict)
        minute = d.pop("minute")

        bin_ = d.pop("bin")

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = MinuteUnitOut.from_dict(results_item_data)

            results.append(results_item)

        more = d.pop("more")

        minute_units_out = cls(
            minute=minute,
            bin_=bin_,
            results=results,
            more=more,
        )

        minute_units_out.additional_properties = d
        return minute_units_out

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
