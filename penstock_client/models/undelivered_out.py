from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.undelivered_cause_out import UndeliveredCauseOut


T = TypeVar("T", bound="UndeliveredOut")


@_attrs_define
class UndeliveredOut:
    """Undelivered messages of the last 24 hours by cause: those that need a person first, then by number.

    Attributes:
        messages (int): Messages of all causes.
        causes (int): Number of causes, also of those that are not listed.
        needs_you (int): Number of causes that need a person.
        since (datetime.datetime | None): Minute of the oldest message.
        results (list[UndeliveredCauseOut]): Rows of this page.
    """

    messages: int
    causes: int
    needs_you: int
    since: datetime.datetime | None
    results: list[UndeliveredCauseOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.undelivered_cause_out import UndeliveredCauseOut  # noqa: PLC0415

        messages = self.messages

        causes = self.causes

        needs_you = self.needs_you

        since: None | str
        if isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "messages": messages,
                "causes": causes,
                "needs_you": needs_you,
                "since": since,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.undelivered_cause_out import UndeliveredCauseOut  # noqa: PLC0415

        d = dict(src_dict)
        messages = d.pop("messages")

        causes = d.pop("causes")

        needs_you = d.pop("needs_you")

        def _parse_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        since = _parse_since(d.pop("since"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = UndeliveredCauseOut.from_dict(results_item_data)

            results.append(results_item)

        undelivered_out = cls(
            messages=messages,
            causes=causes,
            needs_you=needs_you,
            since=since,
            results=results,
        )

        undelivered_out.additional_properties = d
        return undelivered_out

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
