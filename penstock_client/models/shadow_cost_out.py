from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="ShadowCostOut")


@_attrs_define
class ShadowCostOut:
    """CPU time of the live revision and of the draft, measured for some of the events.

    Attributes:
        events (int): Events of which both were timed.
        live_us (float): Microseconds per event of the live revision.
        draft_us (float): Microseconds per event of the draft.
    """

    events: int
    live_us: float
    draft_us: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        events = self.events

        live_us = self.live_us

        draft_us = self.draft_us

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "events": events,
                "live_us": live_us,
                "draft_us": draft_us,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        events = d.pop("events")

        live_us = d.pop("live_us")

        draft_us = d.pop("draft_us")

        shadow_cost_out = cls(
            events=events,
            live_us=live_us,
            draft_us=draft_us,
        )

        shadow_cost_out.additional_properties = d
        return shadow_cost_out

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
