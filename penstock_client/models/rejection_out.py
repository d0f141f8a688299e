from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="RejectionOut")


@_attrs_define
class RejectionOut:
    """Events of one source that were rejected for one reason, at one place, from one sender.

    Attributes:
        id (int): Id.
        source (str): Name of the source in the spec.
        event_type (str): Empty if the source has one type, or the type is unknown.
        code (str): Code of the response that the sender got.
        pointer (str): JSON pointer into the event, with `*` for an index; empty for the whole event.
        detail (str): What was needed and what came, in the newest event.
        sender (str): API key in words, or the Kafka topic.
        stored (bool): True for records of a Kafka source, which are dead letters of the pipe.
        events (int): Number of events in the range.
        first_at (datetime.datetime): Time of the first one.
        last_at (datetime.datetime): Start of the newest minute with one.
    """

    id: int
    source: str
    event_type: str
    code: str
    pointer: str
    detail: str
    sender: str
    stored: bool
    events: int
    first_at: datetime.datetime
    last_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        source = self.source

        event_type = self.event_type

        code = self.code

        pointer = self.pointer

        detail = self.detail

        sender = self.sender

        stored = self.stored

        events = self.events

        first_at = self.first_at.isoformat()

        last_at = self.last_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "source": source,
                "event_type": event_type,
                "code": code,
                "pointer": pointer,
                "detail": detail,
                "sender": sender,
                "stored": stored,
                "events": events,
                "first_at": first_at,
                "last_at": last_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        source = d.pop("source")

        event_type = d.pop("event_type")

        code = d.pop("code")

        pointer = d.pop("pointer")

        detail = d.pop("detail")

        sender = d.pop("sender")

        stored = d.pop("stored")

        events = d.pop("events")

        first_at = datetime.datetime.fromisoformat(d.pop("first_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        rejection_out = cls(
            id=id,
            source=source,
            event_type=event_type,
            code=code,
            pointer=pointer,
            detail=detail,
            sender=sender,
            stored=stored,
            events=events,
            first_at=first_at,
            last_at=last_at,
        )

        rejection_out.additional_properties = d
        return rejection_out

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
