from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="ShadowResultsOut")


@_attrs_define
class ShadowResultsOut:
    """Messages of one destination by result: those of the draft, compared with what the pipe has sent.

    Attributes:
        equal (int): The draft would send the same body.
        different (int): Both send it, with different bodies.
        only_live (int): The live revision has sent it, and the draft would not.
        only_draft (int): The draft would send it, and the live revision has ended it in a step or route.
        not_sent (int): Both would send it, but no delivery was found: it is held, is a duplicate, still waits, or was
            sent much later than its event.
    """

    equal: int
    different: int
    only_live: int
    only_draft: int
    not_sent: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        equal = self.equal

        different = self.different

        only_live = self.only_live

        only_draft = self.only_draft

        not_sent = self.not_sent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "equal": equal,
                "different": different,
                "only_live": only_live,
                "only_draft": only_draft,
                "not_sent": not_sent,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        equal = d.pop("equal")

        different = d.pop("different")

        only_live = d.pop("only_live")

        only_draft = d.pop("only_draft")

        not_sent = d.pop("not_sent")

        shadow_results_out = cls(
            equal=equal,
            different=different,
            only_live=only_live,
            only_draft=only_draft,
            not_sent=not_sent,
        )

        shadow_results_out.additional_properties = d
        return shadow_results_out

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
