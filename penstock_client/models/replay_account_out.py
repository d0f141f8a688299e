from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.replay_account_out_bins import ReplayAccountOutBins
    from ..models.replay_account_out_destinations import ReplayAccountOutDestinations


T = TypeVar("T", bound="ReplayAccountOut")


@_attrs_define
class ReplayAccountOut:
    """Account of a replay: the messages of the selected events by bin.

    Attributes:
        is_final (bool): True when nothing is queued or waits for a retry, or 24 hours after the end. Then `lost` is
            final.
        asked (int): Events selected, as the ledger has them.
        bins (ReplayAccountOutBins): Messages by bin, over all destinations.
        destinations (ReplayAccountOutDestinations): Messages by destination and bin; an empty name has those that ended
            before one was chosen.
    """

    is_final: bool
    asked: int
    bins: ReplayAccountOutBins
    destinations: ReplayAccountOutDestinations
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.replay_account_out_bins import ReplayAccountOutBins  # noqa: PLC0415
        from ..models.replay_account_out_destinations import ReplayAccountOutDestinations  # noqa: PLC0415

        is_final = self.is_final

        asked = self.asked

        bins = self.bins.to_dict()

        destinations = self.destinations.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "is_final": is_final,
                "asked": asked,
                "bins": bins,
                "destinations": destinations,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.replay_account_out_bins import ReplayAccountOutBins  # noqa: PLC0415
        from ..models.replay_account_out_destinations import ReplayAccountOutDestinations  # noqa: PLC0415

        d = dict(src_dict)
        is_final = d.pop("is_final")

        asked = d.pop("asked")

        bins = ReplayAccountOutBins.from_dict(d.pop("bins"))

        destinations = ReplayAccountOutDestinations.from_dict(d.pop("destinations"))

        replay_account_out = cls(
            is_final=is_final,
            asked=asked,
            bins=bins,
            destinations=destinations,
        )

        replay_account_out.additional_properties = d
        return replay_account_out

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
