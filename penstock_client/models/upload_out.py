from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.lookup_table_out import LookupTableOut


T = TypeVar("T", bound="UploadOut")


@_attrs_define
class UploadOut:
    """Result of an upload. `rows`: number of rows in the file.

    Attributes:
        rows (int): Number of rows.
        table (LookupTableOut): A look-up table.
    """

    rows: int
    table: LookupTableOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.lookup_table_out import LookupTableOut  # noqa: PLC0415

        rows = self.rows

        table = self.table.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "rows": rows,
                "table": table,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.lookup_table_out import LookupTableOut  # noqa: PLC0415

        d = dict(src_dict)
        rows = d.pop("rows")

        table = LookupTableOut.from_dict(d.pop("table"))

        upload_out = cls(
            rows=rows,
            table=table,
        )

        upload_out.additional_properties = d
        return upload_out

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
