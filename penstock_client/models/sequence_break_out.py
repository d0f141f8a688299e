from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="SequenceBreakOut")


@_attrs_define
class SequenceBreakOut:
    """One event that does not follow the earlier ones of its key.

    Attributes:
        kind (str): * `gap` - Gap
            * `out-of-order` - Out of order
            * `repeated` - Repeated
        source (str): Name of the source in the spec.
        key (str): Masked if the pipe masks it.
        number (str): Number of the event, or the time of its TimeUuid.
        previous (str): Highest earlier number of the key, or the latest time.
        type_ (str): * `number` - number
            * `time` - time
        missing (int): Of a gap, how many of its numbers have not arrived so far; else 0.
        missing_ranges (list[list[str]]): First and last number of each run that is missing.
        position (str): Position of the event.
        at (datetime.datetime): Ingest time of the event.
    """

    kind: str
    source: str
    key: str
    number: str
    previous: str
    type_: str
    missing: int
    missing_ranges: list[list[str]]
    position: str
    at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        source = self.source

        key = self.key

        number = self.number

        previous = self.previous

        type_ = self.type_

        missing = self.missing

        missing_ranges = []
        for missing_ranges_item_data in self.missing_ranges:
            missing_ranges_item = missing_ranges_item_data

            missing_ranges.append(missing_ranges_item)

        position = self.position

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "source": source,
                "key": key,
                "number": number,
                "previous": previous,
                "type": type_,
                "missing": missing,
                "missing_ranges": missing_ranges,
                "position": position,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        source = d.pop("source")

        key = d.pop("key")

        number = d.pop("number")

        previous = d.pop("previous")

        type_ = d.pop("type")

        missing = d.pop("missing")

        missing_ranges = []
        _missing_ranges = d.pop("missing_ranges")
        for missing_ranges_item_data in _missing_ranges:
            missing_ranges_item = cast(list[str], missing_ranges_item_data)

            missing_ranges.append(missing_ranges_item)

        position = d.pop("position")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        sequence_break_out = cls(
            kind=kind,
            source=source,
            key=key,
            number=number,
            previous=previous,
            type_=type_,
            missing=missing,
            missing_ranges=missing_ranges,
            position=position,
            at=at,
        )

        sequence_break_out.additional_properties = d
        return sequence_break_out

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
