from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.bins_out import BinsOut


T = TypeVar("T", bound="DestinationBinsOut")


@_attrs_define
class DestinationBinsOut:
    """Bins of one destination.

    Attributes:
        name (str): Empty for messages that ended before a destination was chosen.
        bins (BinsOut): Number of messages in each bin; a message counts once for each destination.
    """

    name: str
    bins: BinsOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.bins_out import BinsOut  # noqa: PLC0415

        name = self.name

        bins = self.bins.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "bins": bins,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bins_out import BinsOut  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        bins = BinsOut.from_dict(d.pop("bins"))

        destination_bins_out = cls(
            name=name,
            bins=bins,
        )

        destination_bins_out.additional_properties = d
        return destination_bins_out

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
