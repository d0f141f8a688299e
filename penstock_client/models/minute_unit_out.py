from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="MinuteUnitOut")


@_attrs_define
class MinuteUnitOut:
    """One message, or one child of an exploded message, on its path to one destination.

    Attributes:
        position (str): See `GET /pipes/{pipe}/messages/{position}/`.
        child (int): Number of the part of an exploded event, from 0; 0 for an event that was not exploded.
        destination (str): Empty if it ended before a destination was chosen.
        last_seen (str): Last node that saw a lost message; empty in other bins.
        last_seen_words (str): What happened there, in words; empty if it is not lost.
    """

    position: str
    child: int
    destination: str
    last_seen: str
    last_seen_words: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        position = self.position

        child = self.child

        destination = self.destination

        last_seen = self.last_seen

        last_seen_words = self.last_seen_words

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "position": position,
                "child": child,
                "destination": destination,
                "last_seen": last_seen,
                "last_seen_words": last_seen_words,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        position = d.pop("position")

        child = d.pop("child")

        destination = d.pop("destination")

        last_seen = d.pop("last_seen")

        last_seen_words = d.pop("last_seen_words")

        minute_unit_out = cls(
            position=position,
            child=child,
            destination=destination,
            last_seen=last_seen,
            last_seen_words=last_seen_words,
        )

        minute_unit_out.additional_properties = d
        return minute_unit_out

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
