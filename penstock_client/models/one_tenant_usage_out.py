from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.amount_out import AmountOut
    from ..models.day_out import DayOut
    from ..models.pipe_share_out import PipeShareOut


T = TypeVar("T", bound="OneTenantUsageOut")


@_attrs_define
class OneTenantUsageOut:
    """Usage of a tenant's pipes, by day and by pipe.

    Attributes:
        range_ (str): Time range of the figures.
        total (AmountOut): Events accepted, requests sent, and CPU used for them.
        days (list[DayOut]): Newest day first; days without usage are omitted.
        pipes (list[PipeShareOut]): Most CPU time first.
        more_pipes (int): Number of further pipes that are not listed.
    """

    range_: str
    total: AmountOut
    days: list[DayOut]
    pipes: list[PipeShareOut]
    more_pipes: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.amount_out import AmountOut  # noqa: PLC0415
        from ..models.day_out import DayOut  # noqa: PLC0415
        from ..models.pipe_share_out import PipeShareOut  # noqa: PLC0415

        range_ = self.range_

        total = self.total.to_dict()

        days = []
        for days_item_data in self.days:
            days_item = days_item_data.to_dict()
            days.append(days_item)

        pipes = []
        for pipes_item_data in self.pipes:
            pipes_item = pipes_item_data.to_dict()
            pipes.append(pipes_item)

        more_pipes = self.more_pipes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "range": range_,
                "total": total,
                "days": days,
                "pipes": pipes,
                "more_pipes": more_pipes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount_out import AmountOut  # noqa: PLC0415
        from ..models.day_out import DayOut  # noqa: PLC0415
        from ..models.pipe_share_out import PipeShareOut  # noqa: PLC0415

        d = dict(src_dict)
        range_ = d.pop("range")

        total = AmountOut.from_dict(d.pop("total"))

        days = []
        _days = d.pop("days")
        for days_item_data in _days:
            days_item = DayOut.from_dict(days_item_data)

            days.append(days_item)

        pipes = []
        _pipes = d.pop("pipes")
        for pipes_item_data in _pipes:
            pipes_item = PipeShareOut.from_dict(pipes_item_data)

            pipes.append(pipes_item)

        more_pipes = d.pop("more_pipes")

        one_tenant_usage_out = cls(
            range_=range_,
            total=total,
            days=days,
            pipes=pipes,
            more_pipes=more_pipes,
        )

        one_tenant_usage_out.additional_properties = d
        return one_tenant_usage_out

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
