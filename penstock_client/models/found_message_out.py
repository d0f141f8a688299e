from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="FoundMessageOut")


@_attrs_define
class FoundMessageOut:
    """Message that a search has found.

    Attributes:
        pipe (str): Id of the pipe.
        position (str): Position of the event: generation, partition and offset.
        child (int): Number of the child of an exploded message; 0 for any other.
        url (str): Path of the message's journey.
        message_id (str): Id of the message, a TimeUuid. Requests carry it as `webhook-id`.
        accepted_at (datetime.datetime | None): Time at which ingest accepted it.
        minute (int): Minute in which it counts.
        source (str): Name of the source in the spec.
        revision (int): Revision that processes it.
        state (str): State in words, such as `delivered` or `delivered to 1 of 2`.
        last_seen (str): Last node that saw it, if it is lost.
        last_seen_words (str): What happened there, in words; empty if it is not lost.
    """

    pipe: str
    position: str
    child: int
    url: str
    message_id: str
    accepted_at: datetime.datetime | None
    minute: int
    source: str
    revision: int
    state: str
    last_seen: str
    last_seen_words: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pipe = self.pipe

        position = self.position

        child = self.child

        url = self.url

        message_id = self.message_id

        accepted_at: None | str
        if isinstance(self.accepted_at, datetime.datetime):
            accepted_at = self.accepted_at.isoformat()
        else:
            accepted_at = self.accepted_at

        minute = self.minute

        source = self.source

        revision = self.revision

        state = self.state

        last_seen = self.last_seen

        last_seen_words = self.last_seen_words

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "position": position,
                "child": child,
                "url": url,
                "message_id": message_id,
                "accepted_at": accepted_at,
                "minute": minute,
                "source": source,
                "revision": revision,
                "state": state,
                "last_seen": last_seen,
                "last_seen_words": last_seen_words,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pipe = d.pop("pipe")

        position = d.pop("position")

        child = d.pop("child")

        url = d.pop("url")

        message_id = d.pop("message_id")

        def _parse_accepted_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                accepted_at_type_0 = datetime.datetime.fromisoformat(data)

                return accepted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        accepted_at = _parse_accepted_at(d.pop("accepted_at"))

        minute = d.pop("minute")

        source = d.pop("source")

        revision = d.pop("revision")

        state = d.pop("state")

        last_seen = d.pop("last_seen")

        last_seen_words = d.pop("last_seen_words")

        found_message_out = cls(
            pipe=pipe,
            position=position,
            child=child,
            url=url,
            message_id=message_id,
            accepted_at=accepted_at,
            minute=minute,
            source=source,
            revision=revision,
            state=state,
            last_seen=last_seen,
            last_seen_words=last_seen_words,
        )

        found_message_out.additional_properties = d
        return found_message_out

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
