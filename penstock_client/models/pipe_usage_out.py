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


T = TypeVar("T", bound="PipeUsageOut")


@_attrs_define
class PipeUsageOut:
    """Usage of a pipe by day, newest first; days without usage are omitted.

    Attributes:
        total (AmountOut): Events accepted, requests sent, and CPU used for them.
        results (list[DayOut]): Rows of this page.
    """

    total: AmountOut
    results: list[DayOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.amount_out import AmountOut  # noqa: PLC0415
        from ..models.day_out import DayOut  # noqa: PLC0415

        total = self.total.to_dict()

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "total": total,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.amount_out import AmountOut  # noqa: PLC0415
        from ..models.day_out import DayOut  # noqa: PLC0415

        d = dict(src_dict)
        total = AmountOut.from_dict(d.pop("total"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = DayOut.from_dict(results_item_data)

            results.append(results_item)

        pipe_usage_out = cls(
            total=total,
            results=results,
        )

        pipe_usage_out.additional_properties = d
        return pipe_usage_out

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
