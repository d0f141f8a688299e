from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.sequence_break_out import SequenceBreakOut
    from ..models.sequence_source_out import SequenceSourceOut


T = TypeVar("T", bound="SequenceOut")


@_attrs_define
class SequenceOut:
    """Sequences of a pipe in a range: counts by source, and breaks, the newest first.

    Attributes:
        sources (list[SequenceSourceOut]): Sources by name.
        results (list[SequenceBreakOut]): Rows of this page.
    """

    sources: list[SequenceSourceOut]
    results: list[SequenceBreakOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.sequence_break_out import SequenceBreakOut  # noqa: PLC0415
        from ..models.sequence_source_out import SequenceSourceOut  # noqa: PLC0415

        sources = []
        for sources_item_data in self.sources:
            sources_item = sources_item_data.to_dict()
            sources.append(sources_item)

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sources": sources,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sequence_break_out import SequenceBreakOut  # noqa: PLC0415
        from ..models.sequence_source_out import SequenceSourceOut  # noqa: PLC0415

        d = dict(src_dict)
        sources = []
        _sources = d.pop("sources")
        for sources_item_data in _sources:
            sources_item = SequenceSourceOut.from_dict(sources_item_data)

            sources.append(sources_item)

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = SequenceBreakOut.from_dict(results_item_data)

            results.append(results_item)

        sequence_out = cls(
            sources=sources,
            results=results,
        )

        sequence_out.additional_properties = d
        return sequence_out

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
