from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="ComparisonCountsOut")


@_attrs_define
class ComparisonCountsOut:
    """Compared events by kind; each event has one.

    Attributes:
        same (int): Same destinations and same requests.
        changed (int): Same destinations, another request or body; or rejected by both, for another cause.
        rerouted (int): Other destinations, or none; also another number of messages.
        rejected (int): Dead in the draft, and not in the live revision.
        recovered (int): Dead in the live revision, and not in the draft.
    """

    same: int
    changed: int
    rerouted: int
    rejected: int
    recovered: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        same = self.same

        changed = self.changed

        rerouted = self.rerouted

        rejected = self.rejected

        recovered = self.recovered

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "same": same,
                "changed": changed,
                "rerouted": rerouted,
                "rejected": rejected,
                "recovered": recovered,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        same = d.pop("same")

        changed = d.pop("changed")

        rerouted = d.pop("rerouted")

        rejected = d.pop("rejected")

        recovered = d.pop("recovered")

        comparison_counts_out = cls(
            same=same,
            changed=changed,
            rerouted=rerouted,
            rejected=rejected,
            recovered=recovered,
        )

        comparison_counts_out.additional_properties = d
        return comparison_counts_out

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
