from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.lookup_row_out import LookupRowOut


T = TypeVar("T", bound="LookupRowPageOut")


@_attrs_define
class LookupRowPageOut:
    """Rows in key order.

    Attributes:
        rows (list[LookupRowOut]): Rows in the order of their keys.
        after (str): Send it as `after` to get the next rows. Empty: there are none.
    """

    rows: list[LookupRowOut]
    after: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.lookup_row_out import LookupRowOut  # noqa: PLC0415

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        after = self.after

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "rows": rows,
                "after": after,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.lookup_row_out import LookupRowOut  # noqa: PLC0415

        d = dict(src_dict)
        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = LookupRowOut.from_dict(rows_item_data)

            rows.append(rows_item)

        after = d.pop("after")

        lookup_row_page_out = cls(
            rows=rows,
            after=after,
        )

        lookup_row_page_out.additional_properties = d
        return lookup_row_page_out

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
