from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="SlowMessageOut")


@_attrs_define
class SlowMessageOut:
    """One message at one destination, with its duration.

    Attributes:
        position (str): See `GET /pipes/{pipe}/messages/{position}/`.
        child (int): Number of the child of an exploded message; 0 for any other.
        message_id (str): Id of the message, a TimeUuid. Requests carry it as `webhook-id`.
        minute (int): Minute in which the message counts.
        destination (str): Name of the destination in the spec.
        accepted_at (datetime.datetime | None): Time at which ingest accepted the message.
        attempts (int): Number of its recorded attempts.
        took_us (int): Duration by `measure`.
        bin_ (str): Where the message is now; empty if it is not counted there yet.
    """

    position: str
    child: int
    message_id: str
    minute: int
    destination: str
    accepted_at: datetime.datetime | None
    attempts: int
    took_us: int
    bin_: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        position = self.position

        child = self.child

        message_id = self.message_id

        minute = self.minute

        destination = self.destination

        accepted_at: None | str
        if isinstance(self.accepted_at, datetime.datetime):
            accepted_at = self.accepted_at.isoformat()
        else:
            accepted_at = self.accepted_at

        attempts = self.attempts

        took_us = self.took_us

        bin_ = self.bin_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "position": position,
                "child": child,
                "message_id": message_id,
                "minute": minute,
                "destination": destination,
                "accepted_at": accepted_at,
                "attempts": attempts,
                "took_us": took_us,
                "bin": bin_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        position = d.pop("position")

        child = d.pop("child")

        message_id = d.pop("message_id")

        minute = d.pop("minute")

        destination = d.pop("destination")

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

        attempts = d.pop("attempts")

        took_us = d.pop("took_us")

        bin_ = d.pop("bin")

        slow_message_out = cls(
            position=position,
            child=child,
            message_id=message_id,
            minute=minute,
            destination=destination,
            accepted_at=accepted_at,
            attempts=attempts,
            took_us=took_us,
            bin_=bin_,
        )

        slow_message_out.additional_properties = d
        return slow_message_out

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
