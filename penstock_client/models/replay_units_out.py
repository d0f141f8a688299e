from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.minute_unit_out import MinuteUnitOut


T = TypeVar("T", bound="ReplayUnitsOut")


@_attrs_define
class ReplayUnitsOut:
    """Messages of a replay in one bin; `more` counts further ones.

    Attributes:
        bin_ (str): Bin of the ledger that holds the messages.
        results (list[MinuteUnitOut]): Rows of this page.
        more (int): Number of further rows that are not listed.
    """

    bin_: str
    results: list[MinuteUnitOut]
    more: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.minute_unit_out import MinuteUnitOut  # noqa: PLC0415

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
        bin_ = d.pop("bin")

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = MinuteUnitOut.from_dict(results_item_data)

            results.append(results_item)

        more = d.pop("more")

        replay_units_out = cls(
            bin_=bin_,
            results=results,
            more=more,
        )

        replay_units_out.additional_properties = d
        return replay_units_out

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
