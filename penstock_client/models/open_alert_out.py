from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime


T = TypeVar("T", bound="OpenAlertOut")


@_attrs_define
class OpenAlertOut:
    """An open alert; see `GET /pipes/{pipe}/alerts/{alert}/` for its details.

    Attributes:
        id (str): Id of the alert.
        pipe (str): Id of the pipe.
        destination (str): Name of the destination in the spec.
        cause (str): Cause, one of a fixed list of codes.
        state (str): `opened` or `acknowledged`.
        count (int): Number of messages.
        opened_at (datetime.datetime): Time at which it was opened.
    """

    id: str
    pipe: str
    destination: str
    cause: str
    state: str
    count: int
    opened_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        pipe = self.pipe

        destination = self.destination

        cause = self.cause

        state = self.state

        count = self.count

        opened_at = self.opened_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "pipe": pipe,
                "destination": destination,
                "cause": cause,
                "state": state,
                "count": count,
                "opened_at": opened_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        pipe = d.pop("pipe")

        destination = d.pop("destination")

        cause = d.pop("cause")

        state = d.pop("state")

        count = d.pop("count")

        opened_at = datetime.datetime.fromisoformat(d.pop("opened_at"))

        open_alert_out = cls(
            id=id,
            pipe=pipe,
            destination=destination,
            cause=cause,
            state=state,
            count=count,
            opened_at=opened_at,
        )

        open_alert_out.additional_properties = d
        return open_alert_out

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
