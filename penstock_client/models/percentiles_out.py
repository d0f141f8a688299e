from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="PercentilesOut")


@_attrs_define
class PercentilesOut:
    """Distribution of lags or durations; every percentile but the maximum is within 1 % of the exact one.

    Attributes:
        p50_us (int): Median in microseconds.
        p95_us (int): 95th percentile in microseconds.
        p99_us (int): 99th percentile in microseconds.
        max_us (int): Maximum in microseconds.
        count (int): Number of messages measured; a repeat counts again.
    """

    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int
    count: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        p50_us = self.p50_us

        p95_us = self.p95_us

        p99_us = self.p99_us

        max_us = self.max_us

        count = self.count

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "p50_us": p50_us,
                "p95_us": p95_us,
                "p99_us": p99_us,
                "max_us": max_us,
                "count": count,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        p50_us = d.pop("p50_us")

        p95_us = d.pop("p95_us")

        p99_us = d.pop("p99_us")

        max_us = d.pop("max_us")

        count = d.pop("count")

        percentiles_out = cls(
            p50_us=p50_us,
            p95_us=p95_us,
            p99_us=p99_us,
            max_us=max_us,
            count=count,
        )

        percentiles_out.additional_properties = d
        return percentiles_out

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
