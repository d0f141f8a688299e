from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="FindingOut")


@_attrs_define
class FindingOut:
    """A finding, reported or silenced because a known event explains it. A pipe has at most one open per kind.

    Attributes:
        kind (str): * `quiet` - Quiet
            * `busy` - Busy
            * `failing` - Failing
            * `slow` - Slow
            * `missing` - Missing
            * `new` - New
            * `type` - Type
            * `skew` - Skew
        since (datetime.datetime): Start of the first block of five minutes in which it was seen.
        words (str): Newest value and usual range, as text.
        ended_at (datetime.datetime | None | Unset): End time; null while it lasts.
        told_at (datetime.datetime | None | Unset): Time at which it had lasted long enough to be reported; null if it
            was not reported.
        silenced (str | Unset): Known event that explains it; empty if there is none.
    """

    kind: str
    since: datetime.datetime
    words: str
    ended_at: datetime.datetime | None | Unset = UNSET
    told_at: datetime.datetime | None | Unset = UNSET
    silenced: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        since = self.since.isoformat()

        words = self.words

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        told_at: None | str | Unset
        if isinstance(self.told_at, Unset):
            told_at = UNSET
        elif isinstance(self.told_at, datetime.datetime):
            told_at = self.told_at.isoformat()
        else:
            told_at = self.told_at

        silenced = self.silenced

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "since": since,
                "words": words,
            }
        )
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at
        if told_at is not UNSET:
            field_dict["told_at"] = told_at
        if silenced is not UNSET:
            field_dict["silenced"] = silenced

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        words = d.pop("words")

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        def _parse_told_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                told_at_type_0 = datetime.datetime.fromisoformat(data)

                return told_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        told_at = _parse_told_at(d.pop("told_at", UNSET))

        silenced = d.pop("silenced", UNSET)

        finding_out = cls(
            kind=kind,
            since=since,
            words=words,
            ended_at=ended_at,
            told_at=told_at,
            silenced=silenced,
        )

        finding_out.additional_properties = d
        return finding_out

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
