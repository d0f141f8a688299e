from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.logged_event_out import LoggedEventOut


T = TypeVar("T", bound="EventLogOut")


@_attrs_define
class EventLogOut:
    """Events after a cursor. Those of one key are in the order in which they were stored.

    Attributes:
        results (list[LoggedEventOut]): Rows of this page.
        cursor (str): Send it as `after` to get the next events.
        more (bool): True if more events may follow now; false at the end of the log.
        gap (bool): True if events after the cursor of the request are no longer kept.
    """

    results: list[LoggedEventOut]
    cursor: str
    more: bool
    gap: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.logged_event_out import LoggedEventOut  # noqa: PLC0415

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        cursor = self.cursor

        more = self.more

        gap = self.gap

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "results": results,
                "cursor": cursor,
                "more": more,
                "gap": gap,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.logged_event_out import LoggedEventOut  # noqa: PLC0415

        d = dict(src_dict)
        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = LoggedEventOut.from_dict(results_item_data)

            results.append(results_item)

        cursor = d.pop("cursor")

        more = d.pop("more")

        gap = d.pop("gap")

        event_log_out = cls(
            results=results,
            cursor=cursor,
            more=more,
            gap=gap,
        )

        event_log_out.additional_properties = d
        return event_log_out

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
