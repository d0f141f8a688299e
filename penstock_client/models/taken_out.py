from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.taken_out_bins import TakenOutBins
    from ..models.unit_out import UnitOut


T = TypeVar("T", bound="TakenOut")


@_attrs_define
class TakenOut:
    """Units that a ramping revision processed: a count for each bin, and the newest units that match the request.

    Attributes:
        bins (TakenOutBins): Number of messages by bin of the ledger.
        units (list[UnitOut]): Messages.
    """

    bins: TakenOutBins
    units: list[UnitOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.taken_out_bins import TakenOutBins  # noqa: PLC0415
        from ..models.unit_out import UnitOut  # noqa: PLC0415

        bins = self.bins.to_dict()

        units = []
        for units_item_data in self.units:
            units_item = units_item_data.to_dict()
            units.append(units_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bins": bins,
                "units": units,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.taken_out_bins import TakenOutBins  # noqa: PLC0415
        from ..models.unit_out import UnitOut  # noqa: PLC0415

        d = dict(src_dict)
        bins = TakenOutBins.from_dict(d.pop("bins"))

        units = []
        _units = d.pop("units")
        for units_item_data in _units:
            units_item = UnitOut.from_dict(units_item_data)

            units.append(units_item)

        taken_out = cls(
            bins=bins,
            units=units,
        )

        taken_out.additional_properties = d
        return taken_out

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
