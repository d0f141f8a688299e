from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from ..types import UNSET, Unset
from typing import cast
import datetime


T = TypeVar("T", bound="ChosenIn")


@_attrs_define
class ChosenIn:
    """Selection of messages; an omitted field matches all. Times are whole minutes: `since` <= time < `until`.

    Attributes:
        destination (str): Empty for dead letters that failed in the pipe's steps: they run again through the live
            revision.
        kind (str | Unset): * `dead` - Dead
            * `held` - Held Default: 'dead'.
        cause (str | Unset): Only messages with this cause; empty for all. Default: ''.
        since (datetime.datetime | None | Unset): Only messages since this time; null for all.
        until (datetime.datetime | None | Unset): Only messages before this time; null for all.
        key (str | Unset): Only messages with this key; empty for all. Default: ''.
        ids (list[str] | Unset): Message ids (`webhook-id`). For held messages of an ordered destination, select a `key`
            instead.
    """

    destination: str
    kind: str | Unset = "dead"
    cause: str | Unset = ""
    since: datetime.datetime | None | Unset = UNSET
    until: datetime.datetime | None | Unset = UNSET
    key: str | Unset = ""
    ids: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        destination: str
        destination = self.destination

        kind = self.kind

        cause = self.cause

        since: None | str | Unset
        if isinstance(self.since, Unset):
            since = UNSET
        elif isinstance(self.since, datetime.datetime):
            since = self.since.isoformat()
        else:
            since = self.since

        until: None | str | Unset
        if isinstance(self.until, Unset):
            until = UNSET
        elif isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        key = self.key

        ids: list[str] | Unset = UNSET
        if not isinstance(self.ids, Unset):
            ids = self.ids

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "destination": destination,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if cause is not UNSET:
            field_dict["cause"] = cause
        if since is not UNSET:
            field_dict["since"] = since
        if until is not UNSET:
            field_dict["until"] = until
        if key is not UNSET:
            field_dict["key"] = key
        if ids is not UNSET:
            field_dict["ids"] = ids

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_destination(data: object) -> str:
            return cast(str, data)

        destination = _parse_destination(d.pop("destination"))

        kind = d.pop("kind", UNSET)

        cause = d.pop("cause", UNSET)

        def _parse_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                since_type_0 = datetime.datetime.fromisoformat(data)

                return since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        since = _parse_since(d.pop("since", UNSET))

        def _parse_until(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        until = _parse_until(d.pop("until", UNSET))

        key = d.pop("key", UNSET)

        ids = cast(list[str], d.pop("ids", UNSET))

        chosen_in = cls(
            destination=destination,
            kind=kind,
            cause=cause,
            since=since,
            until=until,
            key=key,
            ids=ids,
        )

        chosen_in.additional_properties = d
        return chosen_in

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
