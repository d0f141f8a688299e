from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset


T = TypeVar("T", bound="SequenceSourceOut")


@_attrs_define
class SequenceSourceOut:
    """Counts of one source with a sequence.

    Attributes:
        source (str): Name of the source in the spec.
        path (str): Path of the number; empty if the source has no sequence any more.
        compared (int): Events whose number was compared with the earlier ones of its key.
        gaps (int): Events before which numbers were missing when they arrived.
        out_of_order (int): Events that arrived after a higher number, or a later TimeUuid, of their key.
        repeated (int): Events whose number had arrived before.
    """

    source: str
    path: str
    compared: int
    gaps: int
    out_of_order: int
    repeated: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        source = self.source

        path = self.path

        compared = self.compared

        gaps = self.gaps

        out_of_order = self.out_of_order

        repeated = self.repeated

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "source": source,
                "path": path,
                "compared": compared,
                "gaps": gaps,
                "out_of_order": out_of_order,
                "repeated": repeated,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        source = d.pop("source")

        path = d.pop("path")

        compared = d.pop("compared")

        gaps = d.pop("gaps")

        out_of_order = d.pop("out_of_order")

        repeated = d.pop("repeated")

        sequence_source_out = cls(
            source=source,
            path=path,
            compared=compared,
            gaps=gaps,
            out_of_order=out_of_order,
            repeated=repeated,
        )

        sequence_source_out.additional_properties = d
        return sequence_source_out

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
