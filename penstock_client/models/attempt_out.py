from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.attempt_out_phases_us import AttemptOutPhasesUs


T = TypeVar("T", bound="AttemptOut")


@_attrs_define
class AttemptOut:
    """One attempt to deliver one message to one destination.

    Attributes:
        id (int): Id of the attempt.
        at (datetime.datetime): Start of the attempt.
        message_id (str): Id of the message, a TimeUuid. Requests carry it as `webhook-id`.
        position (str): See `GET /pipes/{pipe}/messages/{position}/`.
        minute (int): Minute in which the message counts.
        destination (str): Name of the destination in the spec.
        revision (int): Number of the revision.
        number (int): 1 for the first attempt of the message.
        outcome (str): * `delivered` - delivered
            * `retry` - retry
            * `parked` - parked
            * `dead` - dead
            * `cancelled` - cancelled
        status (int): HTTP status; 0 without a response.
        reason (str): Cause, and details after a colon; empty if it was delivered.
        address (str): IP address of the destination.
        total_us (int): Duration of the attempt.
        phases_us (AttemptOutPhasesUs): Duration of each phase, in order.
        next_at (datetime.datetime | None): Time of the scheduled retry.
        gives_up_at (datetime.datetime | None): Time after which no retry is scheduled.
        answer (str): Beginning of the response, secrets masked.
    """

    id: int
    at: datetime.datetime
    message_id: str
    position: str
    minute: int
    destination: str
    revision: int
    number: int
    outcome: str
    status: int
    reason: str
    address: str
    total_us: int
    phases_us: AttemptOutPhasesUs
    next_at: datetime.datetime | None
    gives_up_at: datetime.datetime | None
    answer: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.attempt_out_phases_us import AttemptOutPhasesUs  # noqa: PLC0415

        id = self.id

        at = self.at.isoformat()

        message_id = self.message_id

        position = self.position

        minute = self.minute

        destination = self.destination

        revision = self.revision

        number = self.number

        outcome = self.outcome

        status = self.status

        reason = self.reason

        address = self.address

        total_us = self.total_us

        phases_us = self.phases_us.to_dict()

        next_at: None | str
        if isinstance(self.next_at, datetime.datetime):
            next_at = self.next_at.isoformat()
        else:
            next_at = self.next_at

        gives_up_at: None | str
        if isinstance(self.gives_up_at, datetime.datetime):
            gives_up_at = self.gives_up_at.isoformat()
        else:
            gives_up_at = self.gives_up_at

        answer = self.answer

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "at": at,
                "message_id": message_id,
                "position": position,
                "minute": minute,
                "destination": destination,
                "revision": revision,
                "number": number,
                "outcome": outcome,
                "status": status,
                "reason": reason,
                "address": address,
                "total_us": total_us,
                "phases_us": phases_us,
                "next_at": next_at,
                "gives_up_at": gives_up_at,
                "answer": answer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_out_phases_us import AttemptOutPhasesUs  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        message_id = d.pop("message_id")

        position = d.pop("position")

        minute = d.pop("minute")

        destination = d.pop("destination")

        revision = d.pop("revision")

        number = d.pop("number")

        outcome = d.pop("outcome")

        status = d.pop("status")

        reason = d.pop("reason")

        address = d.pop("address")

        total_us = d.pop("total_us")

        phases_us = AttemptOutPhasesUs.from_dict(d.pop("phases_us"))

        def _parse_next_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                next_at_type_0 = datetime.datetime.fromisoformat(data)

                return next_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        next_at = _parse_next_at(d.pop("next_at"))

        def _parse_gives_up_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                gives_up_at_type_0 = datetime.datetime.fromisoformat(data)

                return gives_up_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        gives_up_at = _parse_gives_up_at(d.pop("gives_up_at"))

        answer = d.pop("answer")

        attempt_out = cls(
            id=id,
            at=at,
            message_id=message_id,
            position=position,
            minute=minute,
            destination=destination,
            revision=revision,
            number=number,
            outcome=outcome,
            status=status,
            reason=reason,
            address=address,
            total_us=total_us,
            phases_us=phases_us,
            next_at=next_at,
            gives_up_at=gives_up_at,
            answer=answer,
        )

        attempt_out.additional_properties = d
        return attempt_out

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
