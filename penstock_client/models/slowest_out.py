from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.slow_message_out import SlowMessageOut


T = TypeVar("T", bound="SlowestOut")


@_attrs_define
class SlowestOut:
    """Slowest messages of a time range.

    Attributes:
        range_ (str): Empty if `since` and `until` name the range.
        stage (str): Empty for the whole delivery.
        measure (str): * `whole` - whole
            * `requests` - requests
            * `between` - between
        is_cut (bool): True if the range has more attempts than were searched.
        results (list[SlowMessageOut]): Rows of this page.
    """

    range_: str
    stage: str
    measure: str
    is_cut: bool
    results: list[SlowMessageOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.slow_message_out import SlowMessageOut  # noqa: PLC0415

        range_ = self.range_

        stage = self.stage

        measure = self.measure

        is_cut = self.is_cut

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "range": range_,
                "stage": stage,
                "measure": measure,
                "is_cut": is_cut,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.slow_message_out import SlowMessageOut  # noqa: PLC0415

        d = dict(src_dict)
        range_ = d.pop("range")

        stage = d.pop("stage")

        measure = d.pop("measure")

        is_cut = d.pop("is_cut")

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = SlowMessageOut.from_dict(results_item_data)

            results.append(results_item)

        slowest_out = cls(
            range_=range_,
            stage=stage,
            measure=measure,
            is_cut=is_cut,
            results=results,
        )

        slowest_out.additional_properties = d
        return slowest_out

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
