from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.found_message_out import FoundMessageOut


T = TypeVar("T", bound="BodySearchOut")


@_attrs_define
class BodySearchOut:
    """Events whose body meets a condition: the newest minute first, in a minute by partition.

    Attributes:
        results (list[FoundMessageOut]): Rows of this page.
        searched (int): Events whose body was compared in this request.
        skipped (int): Events that could not be compared: no longer kept, larger than 64 KiB, or masked as a whole.
        total (int): Events of the whole time range.
        left (int): Events of the range that are not searched yet.
        cursor (None | str): Continues the search; null if the range is searched.
        stopped (str): Why it stopped, apart from the limits of a request; else empty.
    """

    results: list[FoundMessageOut]
    searched: int
    skipped: int
    total: int
    left: int
    cursor: None | str
    stopped: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.found_message_out import FoundMessageOut  # noqa: PLC0415

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        searched = self.searched

        skipped = self.skipped

        total = self.total

        left = self.left

        cursor: None | str
        cursor = self.cursor

        stopped = self.stopped

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "results": results,
                "searched": searched,
                "skipped": skipped,
                "total": total,
                "left": left,
                "cursor": cursor,
                "stopped": stopped,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.found_message_out import FoundMessageOut  # noqa: PLC0415

        d = dict(src_dict)
        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = FoundMessageOut.from_dict(results_item_data)

            results.append(results_item)

        searched = d.pop("searched")

        skipped = d.pop("skipped")

        total = d.pop("total")

        left = d.pop("left")

        def _parse_cursor(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        cursor = _parse_cursor(d.pop("cursor"))

        stopped = d.pop("stopped")

        body_search_out = cls(
            results=results,
            searched=searched,
            skipped=skipped,
            total=total,
            left=left,
            cursor=cursor,
            stopped=stopped,
        )

        body_search_out.additional_properties = d
        return body_search_out

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
