from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.waiting_group_out import WaitingGroupOut


T = TypeVar("T", bound="WaitingGroupsOut")


@_attrs_define
class WaitingGroupsOut:
    """Counts of a pipe's dead letters and held messages.

    Attributes:
        dead (int): Number of dead letters.
        held (int): Number of held messages.
        results (list[WaitingGroupOut]): Rows of this page.
    """

    dead: int
    held: int
    results: list[WaitingGroupOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.waiting_group_out import WaitingGroupOut  # noqa: PLC0415

        dead = self.dead

        held = self.held

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "dead": dead,
                "held": held,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.waiting_group_out import WaitingGroupOut  # noqa: PLC0415

        d = dict(src_dict)
        dead = d.pop("dead")

        held = d.pop("held")

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = WaitingGroupOut.from_dict(results_item_data)

            results.append(results_item)

        waiting_groups_out = cls(
            dead=dead,
            held=held,
            results=results,
        )

        waiting_groups_out.additional_properties = d
        return waiting_groups_out

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
