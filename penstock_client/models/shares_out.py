from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.shares_out_shares import SharesOutShares


T = TypeVar("T", bound="SharesOut")


@_attrs_define
class SharesOut:
    """Breakdown of one group of minutes, for a chart over time.

    Attributes:
        minute (int): First minute of the group, as minutes since 1970-01-01T00:00Z.
        starts (datetime.datetime): Start of the group.
        shares (SharesOutShares): Share (0 to 1) of each slice at the 95th percentile; empty if nothing was delivered.
    """

    minute: int
    starts: datetime.datetime
    shares: SharesOutShares
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shares_out_shares import SharesOutShares  # noqa: PLC0415

        minute = self.minute

        starts = self.starts.isoformat()

        shares = self.shares.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "minute": minute,
                "starts": starts,
                "shares": shares,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shares_out_shares import SharesOutShares  # noqa: PLC0415

        d = dict(src_dict)
        minute = d.pop("minute")

        starts = datetime.datetime.fromisoformat(d.pop("starts"))

        shares = SharesOutShares.from_dict(d.pop("shares"))

        shares_out = cls(
            minute=minute,
            starts=starts,
            shares=shares,
        )

        shares_out.additional_properties = d
        return shares_out

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
