from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast


T = TypeVar("T", bound="LostMessageOut")


@_attrs_define
class LostMessageOut:
    """One lost message.

    Attributes:
        position (str): See `GET /pipes/{pipe}/messages/{position}/`.
        child (int): Number of the message among those that an explode step made.
        destination (str): Empty if it was lost before the route.
        last_seen (str): Last node that saw the message.
        last_seen_words (str): What happened there, in words.
        seen (list[str]): Nodes that saw it, in order of travel.
    """

    position: str
    child: int
    destination: str
    last_seen: str
    last_seen_words: str
    seen: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        position = self.position

        child = self.child

        destination = self.destination

        last_seen = self.last_seen

        last_seen_words = self.last_seen_words

        seen = self.seen

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "position": position,
                "child": child,
                "destination": destination,
                "last_seen": last_seen,
                "last_seen_words": last_seen_words,
                "seen": seen,
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

        seen = cast(list[str], d.pop("seen"))

        lost_message_out = cls(
            position=position,
            child=child,
            destination=destination,
            last_seen=last_seen,
            last_seen_words=last_seen_words,
            seen=seen,
        )

        lost_message_out.additional_properties = d
        return lost_message_out

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
