from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="SuspendedOut")


@_attrs_define
class SuspendedOut:
    """A suspended destination.

    Attributes:
        pipe (str): Id of the pipe.
        destination (str): Name of the destination in the spec.
        cause (str): Cause, one of a fixed list of codes.
        reason (str): Reason, for people.
        since (datetime.datetime): Time since which the destination is suspended.
    """

    pipe: str
    destination: str
    cause: str
    reason: str
    since: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pipe = self.pipe

        destination = self.destination

        cause = self.cause

        reason = self.reason

        since = self.since.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pipe": pipe,
                "destination": destination,
                "cause": cause,
                "reason": reason,
                "since": since,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pipe = d.pop("pipe")

        destination = d.pop("destination")

        cause = d.pop("cause")

        reason = d.pop("reason")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        suspended_out = cls(
            pipe=pipe,
            destination=destination,
            cause=cause,
            reason=reason,
            since=since,
        )

        suspended_out.additional_properties = d
        return suspended_out

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
