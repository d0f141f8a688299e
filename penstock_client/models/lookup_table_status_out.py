from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="LookupTableStatusOut")


@_attrs_define
class LookupTableStatusOut:
    """Rows, last change and lag of a table.

    Attributes:
        stream_fed (bool): True if a pipe writes the table or has written it: its rows are read from a host of the data
            plane.
        rows (int | None): Number of rows; null while they are being counted.
        changed_at (datetime.datetime | None): Last change: for a stream-fed table, when the newest event that changed a
            row was received.
        lag_s (float | None): Seconds since the host last had every change of all tables; null for other tables.
    """

    stream_fed: bool
    rows: int | None
    changed_at: datetime.datetime | None
    lag_s: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stream_fed = self.stream_fed

        rows: int | None
        rows = self.rows

        changed_at: None | str
        if isinstance(self.changed_at, datetime.datetime):
            changed_at = self.changed_at.isoformat()
        else:
            changed_at = self.changed_at

        lag_s: float | None
        lag_s = self.lag_s

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stream_fed": stream_fed,
                "rows": rows,
                "changed_at": changed_at,
                "lag_s": lag_s,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        stream_fed = d.pop("stream_fed")

        def _parse_rows(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        rows = _parse_rows(d.pop("rows"))

        def _parse_changed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                changed_at_type_0 = datetime.datetime.fromisoformat(data)

                return changed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        changed_at = _parse_changed_at(d.pop("changed_at"))

        def _parse_lag_s(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        lag_s = _parse_lag_s(d.pop("lag_s"))

        lookup_table_status_out = cls(
            stream_fed=stream_fed,
            rows=rows,
            changed_at=changed_at,
            lag_s=lag_s,
        )

        lookup_table_status_out.additional_properties = d
        return lookup_table_status_out

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
