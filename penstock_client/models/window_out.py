from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="WindowOut")


@_attrs_define
class WindowOut:
    """A window of the live revision.

    Attributes:
        name (str): Name of the window in the spec.
        span (Any): As in the spec.
        by (list[str]): Paths of the window's key.
        late_s (int): Events older than this many seconds are late and not aggregated.
        late (int): Events of the last day that were late. The pipe still processes them.
    """

    name: str
    span: Any
    by: list[str]
    late_s: int
    late: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        span = self.span

        by = self.by

        late_s = self.late_s

        late = self.late

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "span": span,
                "by": by,
                "late_s": late_s,
                "late": late,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        span = d.pop("span")

        by = cast(list[str], d.pop("by"))

        late_s = d.pop("late_s")

        late = d.pop("late")

        window_out = cls(
            name=name,
            span=span,
            by=by,
            late_s=late_s,
            late=late,
        )

        window_out.additional_properties = d
        return window_out

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
