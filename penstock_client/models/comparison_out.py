from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.compared_example_out import ComparedExampleOut
    from ..models.comparison_counts_out import ComparisonCountsOut


T = TypeVar("T", bound="ComparisonOut")


@_attrs_define
class ComparisonOut:
    """Comparison of a draft with the live revision on the newest events.

    Attributes:
        live (int): Number of the live revision.
        found (int): Events that were found, at most 100.
        compared (int): Events that were compared.
        summary (str): Summary in a sentence.
        counts (ComparisonCountsOut): Compared events by kind; each event has one.
        examples (list[ComparedExampleOut]): Up to 10 of each kind, newest first.
        left_out (list[str]): Events that were found and not compared, with the reason.
        notes (list[str]): What is not compared.
    """

    live: int
    found: int
    compared: int
    summary: str
    counts: ComparisonCountsOut
    examples: list[ComparedExampleOut]
    left_out: list[str]
    notes: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.compared_example_out import ComparedExampleOut  # noqa: PLC0415
        from ..models.comparison_counts_out import ComparisonCountsOut  # noqa: PLC0415

        live = self.live

        found = self.found

        compared = self.compared

        summary = self.summary

        counts = self.counts.to_dict()

        examples = []
        for examples_item_data in self.examples:
            examples_item = examples_item_data.to_dict()
            examples.append(examples_item)

        left_out = self.left_out

        notes = self.notes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "live": live,
                "found": found,
                "compared": compared,
                "summary": summary,
                "counts": counts,
                "examples": examples,
                "left_out": left_out,
                "notes": notes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.compared_example_out import ComparedExampleOut  # noqa: PLC0415
        from ..models.comparison_counts_out import ComparisonCountsOut  # noqa: PLC0415

        d = dict(src_dict)
        live = d.pop("live")

        found = d.pop("found")

        compared = d.pop("compared")

        summary = d.pop("summary")

        counts = ComparisonCountsOut.from_dict(d.pop("counts"))

        examples = []
        _examples = d.pop("examples")
        for examples_item_data in _examples:
            examples_item = ComparedExampleOut.from_dict(examples_item_data)

            examples.append(examples_item)

        left_out = cast(list[str], d.pop("left_out"))

        notes = cast(list[str], d.pop("notes"))

        comparison_out = cls(
            live=live,
            found=found,
            compared=compared,
            summary=summary,
            counts=counts,
            examples=examples,
            left_out=left_out,
            notes=notes,
        )

        comparison_out.additional_properties = d
        return comparison_out

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
