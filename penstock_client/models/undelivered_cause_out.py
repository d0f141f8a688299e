from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="UndeliveredCauseOut")


@_attrs_define
class UndeliveredCauseOut:
    """Undelivered messages of one pipe, destination and cause in the last 24 hours.

    Attributes:
        pipe (str): Id of the pipe.
        pipe_name (str): Name of the pipe.
        destination (str): Empty for messages that ended before a destination was chosen.
        bin_ (str): * `dead` - dead
            * `held` - held
            * `retrying` - retrying
            * `lost` - lost
        cause (str): Code of the cause; empty if it has no help page.
        count (int): Number of messages.
        since (datetime.datetime): Minute of the oldest of them.
        status (int): HTTP status of the newest failure; 0 for none.
        reason (str): Reason of the newest failure.
        next_at (datetime.datetime | None): Time of the next attempt.
        needs_you (bool): True if nothing more happens automatically.
        summary (str): What happened, in words.
        next_step (str): What to do.
    """

    pipe: str
    pipe_name: str
    destination: str
    bin_: str
    cause: str
    count: int
    since: datetime.datetime
    status: int
    reason: str
    next_at: datetime.datetime | None
    needs_you: bool
    summary: str
    next_step: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pipe = self.pipe

        pipe_name = self.pipe_name

        destination = self.destination

        bin_ = self.bin_

        cause = self.cause

        count = self.count

        since = self.since.isoformat()

        status = self.status

        reason = self.reason

        next_at: None | str
        if isinstance(self.next_at, datetime.datetime):
            next_at = self.next_at.isoformat()
        else:
            next_at = self.next_at

        needs_you = self.needs_you

        summary = self.summary

        next_step = self.next_step

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "pipe_name": pipe_name,
                "destination": destination,
                "bin": bin_,
                "cause": cause,
                "count": count,
                "since": since,
                "status": status,
                "reason": reason,
                "next_at": next_at,
                "needs_you": needs_you,
                "summary": summary,
                "next_step": next_step,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pipe = d.pop("pipe")

        pipe_name = d.pop("pipe_name")

        destination = d.pop("destination")

        bin_ = d.pop("bin")

        cause = d.pop("cause")

        count = d.pop("count")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        status = d.pop("status")

        reason = d.pop("reason")

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

        needs_you = d.pop("needs_you")

        summary = d.pop("summary")

        next_step = d.pop("next_step")

        undelivered_cause_out = cls(
            pipe=pipe,
            pipe_name=pipe_name,
            destination=destination,
            bin_=bin_,
            cause=cause,
            count=count,
            since=since,
            status=status,
            reason=reason,
            next_at=next_at,
            needs_you=needs_you,
            summary=summary,
            next_step=next_step,
        )

        undelivered_cause_out.additional_properties = d
        return undelivered_cause_out

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
