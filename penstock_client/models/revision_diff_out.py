from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.diff_line_out import DiffLineOut


T = TypeVar("T", bound="RevisionDiffOut")


@_attrs_define
class RevisionDiffOut:
    """Changes of a revision's spec, as lines of JSON.

    Attributes:
        number (int): Number, counted from 1.
        against (int | None): Revision that it is compared with; null for none.
        added (int): Number of added lines.
        removed (int): Number of removed lines.
        lines (list[DiffLineOut]): Lines of the comparison, in order.
    """

    number: int
    against: int | None
    added: int
    removed: int
    lines: list[DiffLineOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.diff_line_out import DiffLineOut  # noqa: PLC0415

        number = self.number

        against: int | None
        against = self.against

        added = self.added

        removed = self.removed

        lines = []
        for lines_item_data in self.lines:
            lines_item = lines_item_data.to_dict()
            lines.append(lines_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "against": against,
                "added": added,
                "removed": removed,
                "lines": lines,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.diff_line_out import DiffLineOut  # noqa: PLC0415

        d = dict(src_dict)
        number = d.pop("number")

        def _parse_against(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        against = _parse_against(d.pop("against"))

        added = d.pop("added")

        removed = d.pop("removed")

        lines = []
        _lines = d.pop("lines")
        for lines_item_data in _lines:
            lines_item = DiffLineOut.from_dict(lines_item_data)

            lines.append(lines_item)

        revision_diff_out = cls(
            number=number,
            against=against,
            added=added,
            removed=removed,
            lines=lines,
        )

        revision_diff_out.additional_properties = d
        return revision_diff_out

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
